// Functions that become graphs inside of an operation: branches, loops, rules of derivatives. Nothing here is for users.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sinter/detail/core.h"

namespace sinter::detail {

struct Recording;
using Leaves = std::vector<Array>;
using LeafFunction = Body<Leaves(std::span<const Array>)>;

// A function, traced without data on arrays like these: a graph, and the arrays that it uses besides.
using TracedBody = std::shared_ptr<const Recording>;
// `loop`: it will run several times, and may draw no random numbers from the thread's generator.
SINTER_API TracedBody trace_body(const char* what, std::span<const Array> arguments, LeafFunction f, bool loop);

SINTER_API Leaves call_cond(const Array& condition, std::span<const Array> arguments, const TracedBody& yes, const TracedBody& no);
SINTER_API Leaves call_while(const TracedBody& condition, const TracedBody& body, std::span<const Array> init, std::int64_t max_steps);
struct ScanShape {
  const char* what;
  std::int64_t length;  // -1: that of the sequences
  bool reverse;
  std::int64_t checkpoint_every;
};
// body: carries, then one element of each sequence -> carries, then one element of each output. Gives the carries, and the outputs stacked.
SINTER_API Leaves call_scan(const ScanShape& shape, LeafFunction body, std::span<const Array> init, std::span<const Array> sequences);

// A transform or a trace is at work on this thread: rules are noted for it, or for one to come.
SINTER_API bool rules_matter();
SINTER_API Leaves call_checkpoint(std::span<const Array> arguments, LeafFunction f);
// back: residuals, then a cotangent of each output -> one of each argument.
SINTER_API Leaves note_vjp(std::span<const Array> outputs, std::span<const Array> residuals, std::span<const Array> arguments,
                           LeafFunction back);
// along: arguments, then a tangent of each -> one of each output.
SINTER_API Leaves note_jvp(std::span<const Array> outputs, std::span<const Array> arguments, LeafFunction along);
// batched: arguments with the batch along axis 0 -> outputs with it along axis 0.
SINTER_API Leaves note_vmap(std::span<const Array> outputs, std::span<const Array> arguments, LeafFunction batched);

// Trees of arguments, as one list of arrays and back.
template <class... A>
Leaves flatten_all(const A&... trees) {
  Leaves all;
  [[maybe_unused]] auto add = [&](const auto& tree) {
    Leaves own = tree_flatten(tree);
    all.insert(all.end(), own.begin(), own.end());
  };
  (add(trees), ...);
  return all;
}
// Takes what `like` needs off the front.
template <class T>
T take_tree(const T& like, std::span<const Array>& leaves) {
  std::size_t n = tree_flatten(like).size();
  T tree = tree_unflatten(like, leaves.first(n));
  leaves = leaves.subspan(n);
  return tree;
}
template <class... A>
std::tuple<A...> take_trees(std::span<const Array>& leaves, const A&... like) {
  return std::tuple<A...>{take_tree(like, leaves)...};  // braces: left to right
}

}  // namespace sinter::detail
