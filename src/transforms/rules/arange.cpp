// Arange: start + i * step is linear in both. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Arange::vjp(const Call& c, const Sym& g, Cotangents& to) {
  to.add(0, sum_to(g, {}));
  if (to.wanted(1)) to.add(1, sum_to(g * iota(g, g.dtype(), c.shape(), c.axis()), {}));
}
Sym Arange::jvp(const Call& c, std::span<const Sym> t) {
  const Sym zero = literal(c.out(), c.dtype(), 0);
  return c.again({t[0] ? t[0] : zero, t[1] ? t[1] : zero});
}
// In the order of operations that Arange itself has.
Sym Arange::batch(const BatchCall& c) {
  const Shape shape = c.shape();
  const std::size_t rank = shape.size() - 1;
  const Sym index = iota(c.in(0), c.node.type.dtype, shape, c.axis() + 1);
  return broadcast(c.aligned(0, rank), shape) + index * broadcast(c.aligned(1, rank), shape);
}

}  // namespace sinter::transforms::rules
