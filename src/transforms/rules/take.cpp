// Take: cotangents add up at the elements that were read, clamped indices included. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

namespace {

// (a, n, b): with the axes before, along and after the axis joined.
Shape three(const Shape& x, std::size_t axis, const Dim& n) {
  Dim before = 1, after = 1;
  for (std::size_t d = 0; d < x.size(); ++d)
    if (d != axis) (d < axis ? before : after) *= x[d];
  return {before, n, after};
}

}  // namespace

void Take::vjp(const Call& c, const Sym& g, Cotangents& to) {
  if (!to.wanted(0)) return;
  const Shape operand = c.in(0).shape();
  const Dim size = operand[c.axis()], count = c.in(1).shape().product();
  const Shape updates = three(operand, c.axis(), count);
  const Sym at = broadcast(reshape(positions(c.in(1), size), {1, count, 1}), updates);
  const Sym sums = scatter_zeros(three(operand, c.axis(), size), at, reshape(g, updates), 1);
  to.add(0, reshape(sums, operand));
}
Sym Take::jvp(const Call& c, std::span<const Sym> t) { return t[0] ? c.again({t[0], c.in(1)}) : kZero; }
Sym Take::batch(const BatchCall& c) {
  const std::size_t axis = c.axis();
  if (!c.is_batched(1)) return c.make({c.in(0), c.in(1)}, {static_cast<std::int64_t>(axis + 1)}, c.shape());
  if (!c.is_batched(0)) {  // the batch axis comes with the indices
    Shape shape = c.node.type.shape;
    shape.insert(axis, c.size);
    return move_axis(c.make({c.in(0), c.in(1)}, {static_cast<std::int64_t>(axis)}, std::move(shape)), axis, 0);
  }
  // Each example has its own indices: the same for every place off the axis.
  const Shape operand = c.in(0).shape();
  Shape places(Axes(operand.size(), 1)), full = operand;
  const Dim count = c.elements(1);
  places[0] = c.size;
  places[axis + 1] = full[axis + 1] = count;
  const Sym at = broadcast(reshape(c.in(1), places), full);
  return reshape(take_along(c.in(0), at, axis + 1), c.shape());
}

}  // namespace sinter::transforms::rules
