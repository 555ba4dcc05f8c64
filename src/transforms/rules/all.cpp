// All: a truth value has no derivative. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void All::vjp(const Call&, const Sym&, Cotangents&) {}
Sym All::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym All::batch(const BatchCall& c) { return batch_reduce(c); }

}  // namespace sinter::transforms::rules
