// Derivatives and batching of products, for Matmul and AddMM. Layer: transforms.
#pragma once
#include "transforms/rules.h"

namespace sinter::transforms {

/// The conjugate transpose of the last two axes.
Sym adjoint(const Sym& x);
/// Cotangents of operands `first` and `first + 1`, whose product has the cotangent g.
void vjp_product(const Call& c, const Sym& g, std::size_t first, Cotangents& to);
/// The tangent of the product of operands `first` and `first + 1`.
Sym jvp_product(const Call& c, std::span<const Sym> tangents, std::size_t first);

}  // namespace sinter::transforms
