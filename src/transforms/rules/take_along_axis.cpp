// TakeAlong: cotangents add up at the elements that were read, clamped indices included. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void TakeAlong::vjp(const Call& c, const Sym& g, Cotangents& to) {
  if (!to.wanted(0)) return;
  const Shape operand = c.in(0).shape();
  to.add(0, scatter_zeros(operand, positions(c.in(1), operand[c.axis()]), g, c.axis()));
}
Sym TakeAlong::jvp(const Call& c, std::span<const Sym> t) { return t[0] ? c.again({t[0], c.in(1)}) : kZero; }
Sym TakeAlong::batch(const BatchCall& c) { return take_along(c.spread(0), c.spread(1), c.axis() + 1); }

}  // namespace sinter::transforms::rules
