// RandomBits: bits have no derivative. A batched key is a key an example, each with the bits that it gives alone. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void RandomBits::vjp(const Call&, const Sym&, Cotangents&) {}
Sym RandomBits::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym RandomBits::batch(const BatchCall& c) { return c.make({c.in(0)}, c.node.attrs, c.shape()); }

}  // namespace sinter::transforms::rules
