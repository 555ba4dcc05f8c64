#include "passes/fold.h"

#include <algorithm>

#include "base/symbols.h"
#include "graph/interpret.h"
#include "ops/elements.h"
#include "passes/pass.h"
#include "passes/views.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

constexpr std::int64_t kMaxElements = 16;  // of a Constant, graph.h

bool is_foldable(Op op) {
  switch (ops::info(op).kind) {
    case ops::OpKind::Elementwise:
    case ops::OpKind::View: return true;
    case ops::OpKind::Map: return op != Op::Arange && op != Op::RandomBits && op != Op::Copy;  // these cost less than memory, or ask for it
    default: return false;
  }
}

}  // namespace

Id fold_node(Graph& g, const Node& n) {
  if (n.in.empty() || !is_foldable(n.op)) return graph::kKeep;
  bool single = true;
  for (Id in : n.in) {
    if (g[in].op != Op::Constant || base::changes(g[in].attrs)) return graph::kKeep;
    single = single && g[in].attrs.size() == 1;
  }
  // One element everywhere stays one, whatever the shape.
  if (single && (ops::is_elementwise(n.op) || n.op == Op::Cast)) {
    std::uint64_t words[3], result = 0;
    std::span<const std::uint64_t> operands[3];
    for (std::size_t i = 0; i < n.in.size(); ++i) {
      words[i] = static_cast<std::uint64_t>(g[n.in[i]].attrs[0]);
      operands[i] = {&words[i], 1};
    }
    const Dtype t = g[n.in.back()].type.dtype;
    if (n.op == Op::Cast)
      ops::convert_elements(t, n.type.dtype, operands[0], {&result, 1});
    else
      ops::evaluate(n.op, t, {operands, n.in.size()}, {&result, 1});
    return g.add({Op::Constant, {}, {static_cast<std::int64_t>(result)}, n.type});
  }
  if (single && ops::info(n.op).kind == ops::OpKind::View) return g.add({Op::Constant, {}, g[n.in[0]].attrs, n.type});
  const auto few = [](const Shape& s) { return s.product() <= kMaxElements; };
  if (!few(n.type.shape) || n.type.shape.product() == 0) return graph::kKeep;
  for (Id in : n.in)
    if (!few(g[in].type.shape)) return graph::kKeep;
  Graph alone;
  Node copy = n;
  for (Id& in : copy.in) in = alone.add(g[in]);
  alone.set_outputs({alone.add(std::move(copy))});
  std::vector<std::uint64_t> words = graph::to_words(graph::interpret(alone, {})[0]);
  if (std::equal(words.begin() + 1, words.end(), words.begin())) words.resize(1);
  return g.add({Op::Constant, {}, ops::Attrs(words.begin(), words.end()), n.type});
}

Graph fold(const Graph& source, Context&) {
  return rewrite_around_products(source, [](Graph& g, const Node& n) { return fold_node(g, n); });
}

}  // namespace sinter::passes
