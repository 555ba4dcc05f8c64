// Matmul: of a b, a gets g b^H and b gets a^H g. Layer: transforms.
#include <utility>

#include "transforms/rules/products.h"

namespace sinter::transforms {

Sym swapped(const Sym& x) { return move_axis(x, x.rank() - 1, x.rank() - 2); }
Sym adjoint(const Sym& x) { return conj(swapped(x)); }

// Whether x exchanges its last two axes: a weight that is used transposed.
bool is_swapped(const Sym& x) {
  const Node& n = (*x.graph)[x.id];
  return n.op == Op::Transpose && n.attrs.back() == static_cast<std::int64_t>(x.rank()) - 2;
}
// a b, the cotangent of `operand`. Where that is a transpose, b^T a^T transposed: so that what comes out before the transpose has the
// layout of the weight, and nobody reads it across its rows.
Sym product_for(const Sym& operand, const Sym& a, const Sym& b) {
  return is_swapped(operand) ? swapped(matmul(swapped(b), swapped(a))) : matmul(a, b);
}

void vjp_product(const Call& c, const Sym& g, std::size_t first, Cotangents& to) {
  if (to.wanted(first)) to.add(first, product_for(c.in(first), g, adjoint(c.in(first + 1))));
  if (to.wanted(first + 1)) to.add(first + 1, product_for(c.in(first + 1), adjoint(c.in(first)), g));
}
Sym jvp_product(const Call& c, std::span<const Sym> t, std::size_t first) {
  const Sym left = t[first] ? matmul(t[first], c.in(first + 1)) : kZero;
  return sum_of(left, t[first + 1] ? matmul(c.in(first), t[first + 1]) : kZero);
}

namespace rules {

void Matmul::vjp(const Call& c, const Sym& g, Cotangents& to) { vjp_product(c, g, 0, to); }
Sym Matmul::jvp(const Call& c, std::span<const Sym> t) { return jvp_product(c, t, 0); }

// A batch of matrices times one matrix is one larger product.
Sym Matmul::batch(const BatchCall& c) {
  const Sym a = c.in(0), b = c.in(1);
  if (c.node.type.shape.size() == 2 && !c.is_batched(1)) {
    const Dim m = a.size(1), k = a.size(2);
    return reshape(matmul(reshape(a, {c.size * m, k}), b), c.shape());
  }
  if (c.node.type.shape.size() == 2 && !c.is_batched(0)) {
    const Dim m = a.size(0), k = b.size(1), n = b.size(2);
    const Sym wide = reshape(move_axis(b, 0, 1), {k, c.size * n});
    return move_axis(reshape(matmul(a, wide), {m, c.size, n}), 1, 0);
  }
  return matmul(c.spread(0), c.spread(1));
}

}  // namespace rules
}  // namespace sinter::transforms
