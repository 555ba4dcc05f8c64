#include "transforms/rules.h"

#include <algorithm>

#include "transforms/elementwise.h"

namespace sinter::transforms {

namespace {

// The functions of a struct of rules, where they have the types that the table needs.
template <class R, class Rules>
constexpr R rule() {
  R r;
  if constexpr (std::is_same_v<decltype(r.vjp), decltype(&Rules::vjp)>) r = {Rules::vjp, Rules::jvp, Rules::batch};
  return r;
}
template <class R>
const R& structured_rule(Op op) {
  static constexpr R kRules[] = {
#define STRUCTURED(Name, ...) rule<R, rules::Name>(),
#include "ops/structured.def"
#undef STRUCTURED
  };
  return kRules[static_cast<std::size_t>(op) - (ops::all_ops().size() - std::size(kRules))];
}

}  // namespace

const Rule& rule_of(Op op) {
  static constexpr Rule kElementwise{vjp_elementwise, jvp_elementwise, batch_elementwise};
  return ops::is_elementwise(op) ? kElementwise : structured_rule<Rule>(op);
}
const BodyRule& body_rule_of(Op op) { return structured_rule<BodyRule>(op); }

void Cotangents::add(std::size_t operand, Sym cotangent, Sym taken) {
  if (!wanted(operand) || !cotangent) return;
  if (!reached_.empty()) taken = reached_[operand];
  const Id id = flow_.shown[call_.node.in[operand]];
  if (!flow_.active[id]) return;
  if (id != call_.node.in[operand]) {
    const Shape shape = (*call_.graph)[id].type.shape;
    cotangent = reshape(cotangent, shape);
    if (taken) taken = reshape(taken, shape);
  }
  Sym &sum = flow_.sums[id], &of_operand = flow_.taken[id];
  if (!sum)
    of_operand = taken;
  else if (of_operand && of_operand.id != taken.id)
    of_operand = taken ? logical_or(of_operand, taken) : kZero;
  sum = sum_of(sum, cotangent);
}
void Cotangents::add_result(std::size_t result, std::size_t count, const Sym& cotangent) {
  if (!wanted(0)) return;
  std::vector<Sym>& sums = flow_.of_results[call_.node.in[0]];
  sums.resize(count);
  sums[result] = sum_of(sums[result], cotangent);
}

Dim BatchCall::elements(std::size_t i) const {
  Dim n = 1;
  const Shape s = in(i).shape();
  for (std::size_t d = is_batched(i) ? 1 : 0; d < s.size(); ++d) n *= s[d];
  return n;
}

Sym BatchCall::spread(std::size_t i) const {
  if (is_batched(i)) return in(i);
  return broadcast(in(i), with_batch(in(i).shape()));
}

Sym BatchCall::aligned(std::size_t i, std::size_t rank) const {
  Shape s = in(i).shape();
  if (!is_batched(i)) return in(i);
  while (s.size() < rank + 1) s.insert(1, 1);
  return reshape(in(i), s);
}

Sym BatchCall::make(std::vector<Id> ids, ops::Attrs attrs, Shape shape) const {
  return {graph, graph->add({node.op, std::move(ids), std::move(attrs), {node.type.dtype, std::move(shape)}})};
}
Sym BatchCall::make(std::initializer_list<Sym> list, ops::Attrs attrs, Shape shape) const {
  std::vector<Id> ids;
  for (const Sym& s : list) ids.push_back(s.id);
  return make(std::move(ids), std::move(attrs), std::move(shape));
}

Sym cast_back(const Sym& g, Dtype t) { return cast(is_complex(g.dtype()) && !is_complex(t) ? real(g) : g, t); }

ops::Attrs next_axes(ops::Ints axes) {
  ops::Attrs next;
  for (const Dim& a : axes) next.push_back(a + 1);
  return next;
}

Sym positions(const Sym& indices, const Dim& size) {
  const Dim last = size == 0 ? Dim(0) : size - 1;
  // uint64 is cut before the cast, or it would turn negative.
  Sym i = indices.dtype() == Dtype::uint64 ? minimum(indices, last) : indices;
  i = cast(i, Dtype::int64);
  if (is_signed(indices.dtype())) i = where(i < 0, i + size, i);
  return minimum(maximum(i, 0), last);
}

Sym scatter_zeros(const Shape& shape, const Sym& positions, const Sym& updates, std::size_t axis) {
  const Dtype t = updates.dtype(), wide = wide_dtype(t);
  return cast(scatter_add(literal(updates, wide, 0, shape), positions, cast(updates, wide), axis), t);
}

Sym spread_over(const Sym& x, const Shape& shape, ops::Ints axes) { return broadcast(reshape(x, keep_axes(shape, axes)), shape); }

Sym batch_reduce(const BatchCall& c) {
  ops::Attrs attrs = next_axes(ops::Ints(c.node.attrs).subspan(1));
  attrs.insert(attrs.begin(), c.node.attrs[0]);
  return c.make({c.in(0)}, std::move(attrs), c.shape());
}

// The share of each element that equals the extreme, as a condition and a count of them over the folded axes. NaN equals nothing.
namespace {
struct Extremes {
  Sym hit, count;
};
Extremes extremes(const Call& c, Dtype wide) {
  const Sym x = c.in(0), hit = x == spread_over(c.out(), x.shape(), c.axes());
  const Sym one = literal(x, wide, 1);
  return {hit, sum(where(hit, one, literal(x, wide, 0)), c.axes())};
}
}  // namespace

void vjp_extreme(const Call& c, const Sym& g, Cotangents& to) {
  const Dtype wide = wide_dtype(c.dtype());
  const auto [hit, count] = extremes(c, wide);
  const Sym share = cast(cast(g, wide) / count, c.dtype()), zero = literal(g, c.dtype(), 0);
  // No element equals an extreme that is NaN; then all share what reaches it, unless nothing does.
  const Sym none = where(count == 0, where(g == 0, zero, literal(g, c.dtype(), std::nan(""))), zero);
  to.add(0, where(hit, spread_over(share, c.in(0).shape(), c.axes()), spread_over(none, c.in(0).shape(), c.axes())));
}
Sym jvp_extreme(const Call& c, const Sym& tangent) {
  const Dtype wide = wide_dtype(c.dtype());
  const auto [hit, count] = extremes(c, wide);
  return cast(sum(where(hit, cast(tangent, wide), 0), c.axes()) / count, c.dtype());
}

// One axis stays one; all of them become one, for positions count in row-major order.
Sym batch_position(const BatchCall& c) {
  if (c.node.attrs.size() == 2) return batch_reduce(c);
  const Sym flat = reshape(c.in(0), Shape{c.size, c.elements(0)});
  return c.make({flat}, {c.node.attrs[0], 1}, c.shape());
}

}  // namespace sinter::transforms
