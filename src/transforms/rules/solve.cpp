// Solve: of a x = b, b gets s = solve(a^H, g) and a gets -s x^H (differentiate da x + a dx = db). Layer: transforms.
#include "transforms/rules/products.h"

namespace sinter::transforms::rules {

void Solve::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Sym s = solve(adjoint(c.in(0)), g);
  to.add(1, s);
  if (to.wanted(0)) to.add(0, -matmul(s, adjoint(c.out())));
}
Sym Solve::jvp(const Call& c, std::span<const Sym> t) {
  const Sym moved = t[0] ? -matmul(t[0], c.out()) : kZero;
  return solve(c.in(0), sum_of(moved, t[1]));
}

// One matrix for all examples is factored once: their right sides stand side by side.
Sym Solve::batch(const BatchCall& c) {
  const Sym a = c.in(0), b = c.in(1);
  if (c.node.type.shape.size() == 2 && !c.is_batched(0)) {
    const Dim n = b.size(1), k = b.size(2);
    const Sym wide = reshape(move_axis(b, 0, 1), {n, c.size * k});
    return move_axis(reshape(solve(a, wide), {n, c.size, k}), 1, 0);
  }
  return solve(c.spread(0), c.spread(1));
}

}  // namespace sinter::transforms::rules
