// Copy: the same values; of a 0-d operand at every element. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Copy::vjp(const Call& c, const Sym& g, Cotangents& to) { to.add(0, sum_to(g, c.in(0).shape())); }
Sym Copy::jvp(const Call& c, std::span<const Sym> t) { return broadcast(t[0], c.shape()); }
Sym Copy::batch(const BatchCall& c) {
  const Shape shape = c.shape();
  return c.make({broadcast(c.aligned(0, shape.size() - 1), shape)}, {}, shape);
}

}  // namespace sinter::transforms::rules
