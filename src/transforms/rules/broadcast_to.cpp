// Broadcast: cotangents are summed over the axes that it adds or stretches. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Broadcast::vjp(const Call& c, const Sym& g, Cotangents& to) { to.add(0, sum_to(g, c.in(0).shape())); }
Sym Broadcast::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym Broadcast::batch(const BatchCall& c) { return broadcast(c.aligned(0, c.node.type.shape.size()), c.shape()); }

}  // namespace sinter::transforms::rules
