// Creation: expression and result, as MLX and NumPy print it.
#include "functions/cases.h"

namespace {

TEST(Functions, creation) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([[0, 0],\n       [0, 0]], dtype=float32)", zeros({2, 2})),
      CASE("array([1, 1, 1], dtype=int8)", ones({3}, int8)),
      CASE("array([2.5, 2.5], dtype=float32)", full({2}, 2.5)),
      CASE("array([[1, 2, 3],\n       [1, 2, 3]], dtype=int32)", full({2, 3}, v)),
      CASE("array([4, 4, 4], dtype=int32)", full_like(v, 4.7)),
      CASE("array([0, 1, 2, 3, 4], dtype=int32)", arange(5)),
      CASE("array([2, 5, 8], dtype=int32)", arange(2, 9, 3)),
      CASE("array([5, 3, 1], dtype=int32)", arange(5, 0, -2)),
      CASE("array([0, 0.25, 0.5, 0.75], dtype=float32)", arange(0.0, 1.0, 0.25)),
      CASE("array([0, 1, 2], dtype=float32)", arange(3, float32)),
      CASE("array([0, 0.25, 0.5, 0.75, 1], dtype=float32)", linspace(0, 1, 5)),
      CASE("array([2, 6, 10], dtype=int32)", linspace(2, 10, 3, int32)),
      CASE("array([[1, 0, 0],\n       [0, 1, 0],\n       [0, 0, 1]], dtype=float32)", eye(3)),
      CASE("array([[0, 1, 0],\n       [0, 0, 1]], dtype=int32)", eye(2, 3, 1, int32)),
      CASE("array([[0, 0, 0],\n       [1, 0, 0],\n       [1, 1, 0]], dtype=float32)", tri(3, 3, -1)),
      CASE("array([[1, 0, 0],\n       [4, 5, 0]], dtype=int32)", tril(m)),
      CASE("array([[0, 2, 3],\n       [0, 0, 6]], dtype=int32)", triu(m, 1)),
      CASE("array([[1, 2, 3],\n       [1, 2, 3],\n       [1, 2, 3],\n       [1, 2, 3]], dtype=int32)", meshgrid({v, f})[0]),
      CASE("array([[1.5, -2.5, 0.5, 3]], dtype=float32)", meshgrid({v, f}, true, "ij")[1]),
      CASE("array([0, 0.5, 1, 0.5, 0], dtype=float32)", hanning(5)),
      CASE("array([0.08, 0.77, 0.77, 0.08], dtype=float32)", hamming(4)),
      CASE("array([0, 0.5, 1, 0.5, 0], dtype=float32)", bartlett(5)),
  });
}

}  // namespace
