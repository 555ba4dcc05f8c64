// Barrier: operand 0; operand 1 says when. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Barrier::vjp(const Call&, const Sym& g, Cotangents& to) { to.add(0, g); }
Sym Barrier::jvp(const Call&, std::span<const Sym> t) { return t[0]; }
Sym Barrier::batch(const BatchCall& c) { return c.make({c.spread(0), c.in(1)}, {}, c.shape()); }

}  // namespace sinter::transforms::rules
