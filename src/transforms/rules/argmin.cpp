// ArgMin: a position has no derivative. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void ArgMin::vjp(const Call&, const Sym&, Cotangents&) {}
Sym ArgMin::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym ArgMin::batch(const BatchCall& c) { return batch_position(c); }

}  // namespace sinter::transforms::rules
