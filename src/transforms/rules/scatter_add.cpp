// ScatterAdd: linear in the operand and in the updates; a dropped update has no cotangent. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void ScatterAdd::vjp(const Call& c, const Sym& g, Cotangents& to) {
  to.add(0, g);
  if (!to.wanted(2)) return;
  const Dim size = c.shape()[c.axis()];
  const Sym indices = c.in(1);
  if (size == 0) return;
  // TakeAlong clamps, and an update that was clamped is not there.
  Sym wide = indices.dtype() == Dtype::uint64 ? minimum(indices, size) : indices;
  wide = cast(wide, Dtype::int64);
  const Sym inside = is_signed(indices.dtype()) ? logical_and(wide >= -size, wide < size) : wide < size;
  to.add(2, where(inside, take_along(g, indices, c.axis()), 0));
}
Sym ScatterAdd::jvp(const Call& c, std::span<const Sym> t) {
  if (!t[2]) return t[0];
  return c.again({t[0] ? t[0] : literal(c.out(), c.dtype(), 0, c.shape()), c.in(1), t[2]});
}
Sym ScatterAdd::batch(const BatchCall& c) { return scatter_add(c.spread(0), c.spread(1), c.spread(2), c.axis() + 1); }

}  // namespace sinter::transforms::rules
