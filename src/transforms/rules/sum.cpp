// Sum: every element gets the cotangent. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Sum::vjp(const Call& c, const Sym& g, Cotangents& to) {
  to.add(0, spread_over(cast_back(g, c.in(0).dtype()), c.in(0).shape(), c.axes()));
}
Sym Sum::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym Sum::batch(const BatchCall& c) { return batch_reduce(c); }

}  // namespace sinter::transforms::rules
