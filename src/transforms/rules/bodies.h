// What the rules of nodes that hold graphs share: the derivative of a body as a body, and a new body made of others. Layer: transforms.
#pragma once
#include "transforms/rules.h"
#include "transforms/transforms.h"

namespace sinter::transforms {

using graph::Body;
using graph::Type;
using Ids = std::span<const Id>;
using Slots = std::vector<std::int64_t>;

/// A body under construction: inputs first, in the order of their slots.
class NewBody {
 public:
  explicit NewBody(std::string name) { g.name = std::move(name); }
  Id input(Type t) { return g.add({Op::Input, {}, {slots_++}, std::move(t)}); }
  std::vector<Id> inputs(const Graph& like, Ids nodes) {
    std::vector<Id> ids;
    for (Id id : nodes) ids.push_back(input(like[id].type));
    return ids;
  }
  Body finish(std::vector<Id> outputs) {
    g.set_outputs(std::move(outputs));
    return graph::rewrite(g, [](Graph&, const Node&) { return graph::kKeep; });
  }
  Graph g;

 private:
  std::int64_t slots_ = 0;
};

inline void append(std::vector<Id>& to, Ids more) { to.insert(to.end(), more.begin(), more.end()); }
inline Ids part(const std::vector<Id>& ids, std::size_t begin, std::size_t count) { return Ids(ids).subspan(begin, count); }

/// A node that holds graphs.
Sym add_bodies(Graph& g, Op op, std::vector<Id> operands, ops::Attrs attrs, std::vector<Body> bodies);
/// Result i of it.
inline Sym result(const Sym& node, std::size_t i) { return {node.graph, graph::result(*node.graph, node.id, i)}; }
/// Its first results.
std::vector<Sym> results_of(const Sym& node, std::size_t count);
/// Results, from the first on, of a node whose body is tangents_of(body), at the places of body's outputs that they belong to.
std::vector<Sym> tangents_in_place(const Sym& node, const Graph& body);
Sym zeros(Graph& g, const Type& t);
std::vector<Id> ids_of(std::span<const Sym> list);

/// Slots `first`, ... that are wanted: an operand each from `operand` on.
Slots wanted_slots(const Cotangents& to, std::size_t operand, std::size_t count, std::size_t first);

/// The body's gradients with respect to the inputs `wrt` alone, as outputs: (inputs, cotangents of `outputs`) -> gradients. Its outputs are
/// floating or complex.
Graph gradients_of(const Graph& body, std::span<const std::size_t> outputs, std::span<const std::int64_t> wrt);
/// The tangents of the body's floating and complex outputs alone: (inputs, tangents of `wrt`) -> tangents.
Graph tangents_of(const Graph& body, std::span<const std::int64_t> wrt);

/// Which outputs of a body are floating or complex.
std::vector<std::size_t> differentiable_outputs(const Graph& body);

/// Carries, which are input slots from `first` on and the first outputs, that the slots given in `of` reach in any number of steps.
std::vector<char> reached_carries(const Graph& body, std::size_t first, std::size_t carries, Slots of);

/// The batch rule of custom_vjp and custom_jvp: all but the last operands, the constants, become batched.
std::vector<Sym> batch_custom(const BatchCall& c, std::size_t constants);

/// One axis each: 0 or kNotBatched.
std::vector<std::int64_t> batch_axes(std::span<const char> batched);

}  // namespace sinter::transforms
