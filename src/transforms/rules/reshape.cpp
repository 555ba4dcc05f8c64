// Reshape. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Reshape::vjp(const Call& c, const Sym& g, Cotangents& to) { to.add(0, reshape(g, c.in(0).shape())); }
Sym Reshape::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym Reshape::batch(const BatchCall& c) { return reshape(c.in(0), c.shape()); }

}  // namespace sinter::transforms::rules
