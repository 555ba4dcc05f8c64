// Prod: each element gets the product of all others, computed without division, so that zeros are nothing special. Layer: transforms.
#include "transforms/rules/cumulative.h"

namespace sinter::transforms::rules {

namespace {

// The product of all other elements along the axis: of those before it and of those behind it.
Sym exclusive(const Sym& x, std::size_t axis) {
  return cumulate(Op::CumProd, x, {axis, false}, false) * cumulate(Op::CumProd, x, {axis, true}, false);
}

// For each element the product of all others over the axes, in the dtype in which the product is computed: of the others along the last
// axis and, since those of an axis further out come in whole products, of what is left when the last is folded. No step follows a size.
Sym others(const Call& c) {
  Sym x = cast(c.in(0), wide_dtype(c.dtype())), result;
  const Shape shape = x.shape();
  const Axes axes = c.axes();
  for (std::size_t i = axes.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const Sym along = exclusive(x, axis);
    result = result ? result * broadcast(along, shape) : along;
    if (i > 0) x = reshape({x.graph, graph::reduce(*x.graph, Op::Prod, x.id, {axes[i]}, x.dtype())}, keep_axes(x.shape(), {&axes[i], 1}));
  }
  return result;
}

}  // namespace

void Prod::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Shape operand = c.in(0).shape();
  if (operand.product() == 0) return;
  const Sym slope = conj(others(c));
  to.add(0, cast_back(slope * spread_over(cast(g, slope.dtype()), operand, c.axes()), c.in(0).dtype()));
}
Sym Prod::jvp(const Call& c, std::span<const Sym> t) {
  if (c.in(0).shape().product() == 0) return kZero;
  const Sym slope = others(c);
  return cast(sum(slope * cast(t[0], slope.dtype()), c.axes()), c.dtype());
}
Sym Prod::batch(const BatchCall& c) { return batch_reduce(c); }

}  // namespace sinter::transforms::rules
