// PutAlong: an element that was replaced has no derivative, and of several updates for one place the last has it. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void PutAlong::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Sym indices = c.in(1);
  const Shape updates = indices.shape();
  if (to.wanted(0)) to.add(0, put_along(g, indices, literal(g, c.dtype(), 0, updates), c.axis()));
  if (!to.wanted(2) || c.shape().product() == 0) return;
  // Who came last at each place; an update that was dropped is nowhere.
  const Sym number = iota(g, Dtype::int64, updates, c.axis());
  const Sym last = put_along(literal(g, Dtype::int64, -1, c.shape()), indices, number, c.axis());
  to.add(2, where(take_along(last, indices, c.axis()) == number, take_along(g, indices, c.axis()), 0));
}
Sym PutAlong::jvp(const Call& c, std::span<const Sym> t) {
  const auto tangent = [&](std::size_t i) { return t[i] ? t[i] : literal(c.out(), c.dtype(), 0, c.in(i).shape()); };
  return c.again({tangent(0), c.in(1), tangent(2)});
}
Sym PutAlong::batch(const BatchCall& c) { return put_along(c.spread(0), c.spread(1), c.spread(2), c.axis() + 1); }

}  // namespace sinter::transforms::rules
