// Input: a leaf; vjp, jvp and vmap treat inputs themselves. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Input::vjp(const Call&, const Sym&, Cotangents&) {}
Sym Input::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym Input::batch(const BatchCall& c) { return c.in(0); }

}  // namespace sinter::transforms::rules
