// Rules: what each operation does under differentiation and under vmap. Layer: transforms.
//
// An elementwise operation's derivative is the gradient column of its line in elementwise.def; its batch rule is one for all. A structured
// operation has a file rules/<operation>.cpp, which defines the three functions of its struct below; a missing one is a link error
// that names the operation. A node that holds graphs has several results, and so its rules take and give one Sym for each.
#pragma once
#include <span>
#include <type_traits>
#include <unordered_map>

#include "graph/bodies.h"
#include "transforms/sym.h"

namespace sinter::transforms {

using graph::is_differentiable;

/// What belongs to the results of nodes that have several: cotangents, tangents, or batched results.
using OfResults = std::unordered_map<Id, std::vector<Sym>>;

/// A node of the graph under construction. The node is a copy, for the graph grows.
struct Call {
  Graph* graph;
  Id id;
  Node node;
  const OfResults& of_results;  // for get

  Sym in(std::size_t i) const { return {graph, node.in[i]}; }
  Sym out() const { return {graph, id}; }
  const Shape& shape() const { return node.type.shape; }
  Dtype dtype() const { return node.type.dtype; }
  std::size_t axis() const { return static_cast<std::size_t>(node.attrs[0]); }
  /// The axes of a Reduce.
  Axes axes() const { return {node.attrs.begin() + 1, node.attrs.end()}; }
  /// The same operation, of the same result type, on other operands.
  Sym again(std::initializer_list<Sym> operands) const {
    std::vector<Id> ids;
    for (const Sym& s : operands) ids.push_back(s.id);
    return {graph, graph->add({node.op, std::move(ids), node.attrs, node.type})};
  }
};

/// The cotangents of all nodes. `shown`: the first node with the same elements for these sizes (shown_by), which gets what a node would
/// get. `taken`: where a node is under where() alone, the condition, of its shape, under which that takes it: elsewhere its cotangent is 0
/// and has to stay so, whatever the slopes are below it. Zero: no such condition.
struct Flow {
  std::vector<Sym> sums, taken;
  OfResults of_results;
  std::vector<char> active;  // nodes whose cotangents are of use
  std::vector<Id> shown;
};

/// Where a vjp rule leaves the cotangents of operands.
class Cotangents {
 public:
  /// `reached`: Flow::taken of each operand, for rules that say nothing of it; empty: none.
  Cotangents(Flow& flow, const Call& call, std::span<const Sym> reached = {}) : flow_(flow), call_(call), reached_(reached) {}
  /// Whether the operand's cotangent is of use. A rule need not ask, if it computes nothing in vain.
  bool wanted(std::size_t operand) const { return flow_.active[call_.node.in[operand]] != 0; }
  /// Flow::taken of the node itself.
  Sym taken() const { return flow_.taken[call_.id]; }
  /// Adds to the operand's cotangent: of the operand's type, or zero; and 0 where `taken`, if there is one, does not hold.
  void add(std::size_t operand, Sym cotangent, Sym taken = kZero);
  /// Of a get: adds to the cotangent of this result, of `count`, of its operand.
  void add_result(std::size_t result, std::size_t count, const Sym& cotangent);

 private:
  Flow& flow_;
  const Call& call_;
  std::span<const Sym> reached_;
};

/// A node of the source graph, whose operands stand in the batched graph: as they were, or with the batch axis first.
struct BatchCall {
  Graph* graph;
  const Node& node;
  Dim size;  // of the batch axis
  std::vector<Sym> operands;
  std::vector<char> batched;
  const OfResults& of_results;  // by node of the source, for get

  Sym in(std::size_t i) const { return operands[i]; }
  bool is_batched(std::size_t i) const { return batched[i] != 0; }
  /// The number of elements of one example of the operand.
  Dim elements(std::size_t i) const;
  /// The operand with the batch axis, whether it had it or is repeated along it.
  Sym spread(std::size_t i) const;
  /// With size-1 axes behind the batch axis, so that `rank` axes follow it.
  Sym aligned(std::size_t i, std::size_t rank) const;
  /// The batched shape of the result.
  Shape shape() const { return with_batch(node.type.shape); }
  Shape with_batch(Shape s) const {
    s.insert(0, size);
    return s;
  }
  std::size_t axis() const { return static_cast<std::size_t>(node.attrs[0]); }
  /// The operation with other attributes; the result has this shape.
  Sym make(std::initializer_list<Sym> operands, ops::Attrs attrs, Shape shape) const;
  Sym make(std::vector<Id> operands, ops::Attrs attrs, Shape shape) const;
};

/// A rule's cotangent argument and result: one Sym, or one for each result of the node.
template <ops::OpKind kind>
inline constexpr bool kSeveral = kind == ops::OpKind::Region || kind == ops::OpKind::Custom;
template <ops::OpKind kind>
using CotangentOf = std::conditional_t<kSeveral<kind>, std::span<const Sym>, const Sym&>;
template <ops::OpKind kind>
using ResultOf = std::conditional_t<kSeveral<kind>, std::vector<Sym>, Sym>;

/// vjp: adds the cotangent of each wanted operand, given that of the result, g.
/// jvp: the tangent of the result, given those of the operands, some of which are zero (not all).
/// batch: the result with the batch axis first; one operand at least is batched.
namespace rules {
#define STRUCTURED(Name, function, operands, attributes, kind)                            \
  struct Name {                                                                           \
    static void vjp(const Call& c, CotangentOf<ops::OpKind::kind> g, Cotangents& to);     \
    static ResultOf<ops::OpKind::kind> jvp(const Call& c, std::span<const Sym> tangents); \
    static ResultOf<ops::OpKind::kind> batch(const BatchCall& c);                         \
  };
#include "ops/structured.def"
#undef STRUCTURED
}  // namespace rules

template <ops::OpKind kind>
struct RuleOf {
  void (*vjp)(const Call& c, CotangentOf<kind> g, Cotangents& to) = nullptr;
  ResultOf<kind> (*jvp)(const Call& c, std::span<const Sym> tangents) = nullptr;
  ResultOf<kind> (*batch)(const BatchCall& c) = nullptr;
};
using Rule = RuleOf<ops::OpKind::Elementwise>;
using BodyRule = RuleOf<ops::OpKind::Region>;
/// Of operations with one result, and of those that hold graphs.
const Rule& rule_of(Op op);
const BodyRule& body_rule_of(Op op);

// ---- what several rules share ----------------------------------------------------------------------------------------------------------

/// float32 for the halves: sums of many terms are kept in it.
inline Dtype wide_dtype(Dtype t) { return is_half(t) ? Dtype::float32 : t; }
/// A cotangent brought back through a cast from `t`: a real operand of a complex result gets the real part.
Sym cast_back(const Sym& g, Dtype t);
/// 0, ..., as attributes: the attributes of a list, each axis one further.
ops::Attrs next_axes(ops::Ints axes);
/// Int64 positions, on the axis, that Take and TakeAlong read for these indices: negative ones from the end, clamped.
Sym positions(const Sym& indices, const Dim& size);
/// Zeros of the shape with updates added at int64 positions along an axis; halves accumulate in float32.
Sym scatter_zeros(const Shape& shape, const Sym& positions, const Sym& updates, std::size_t axis);
/// A reduced value back over the axes of `shape`.
Sym spread_over(const Sym& x, const Shape& shape, ops::Ints axes);
/// The batch rule of every Reduce.
Sym batch_reduce(const BatchCall& c);
/// Derivatives of Max and Min: equal extremes share evenly.
void vjp_extreme(const Call& c, const Sym& g, Cotangents& to);
Sym jvp_extreme(const Call& c, const Sym& tangent);
/// The batch rule of ArgMax and ArgMin.
Sym batch_position(const BatchCall& c);

}  // namespace sinter::transforms
