// Constant: no operands. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Constant::vjp(const Call&, const Sym&, Cotangents&) {}
Sym Constant::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym Constant::batch(const BatchCall& c) { return c.in(0); }

}  // namespace sinter::transforms::rules
