// Elementwise: derivatives from the gradient columns of elementwise.def, and the batch rule of elementwise operations. Layer: transforms.
#pragma once
#include "transforms/rules.h"

namespace sinter::transforms {

void vjp_elementwise(const Call& c, const Sym& g, Cotangents& to);
Sym jvp_elementwise(const Call& c, std::span<const Sym> tangents);
Sym batch_elementwise(const BatchCall& c);

}  // namespace sinter::transforms
