// Any: a truth value has no derivative. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Any::vjp(const Call&, const Sym&, Cotangents&) {}
Sym Any::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym Any::batch(const BatchCall& c) { return batch_reduce(c); }

}  // namespace sinter::transforms::rules
