// ArgMax: a position has no derivative. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void ArgMax::vjp(const Call&, const Sym&, Cotangents&) {}
Sym ArgMax::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym ArgMax::batch(const BatchCall& c) { return batch_position(c); }

}  // namespace sinter::transforms::rules
