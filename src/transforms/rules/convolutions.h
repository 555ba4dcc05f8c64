// Derivatives and batching of the three convolutions, which are each other's derivatives (ops/convolution.h). Layer: transforms.
#pragma once
#include "transforms/rules.h"

namespace sinter::transforms {

void vjp_convolution(const Call& c, const Sym& g, Cotangents& to);
Sym jvp_convolution(const Call& c, std::span<const Sym> t);
Sym batch_convolution(const BatchCall& c);

}  // namespace sinter::transforms
