// Reading at computed places: expression and result, as MLX and NumPy print it.
#include "functions/cases.h"

namespace {

TEST(Functions, indexing) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([4, 5, 6], dtype=int32)", take(m, 1, 0)),
      CASE("array(5, dtype=int32)", take(m, 4)),
      CASE("array([3, 6], dtype=int32)", take(m, -1, -1)),
      CASE("array([[1, 3],\n       [3, 2]], dtype=int32)", take(v, Array({{0, 2}, {-1, 1}}))),
      CASE("array([[[4, 5, 6, 7],\n"
           "        [0, 1, 2, 3]],\n"
           "       [[16, 17, 18, 19],\n"
           "        [12, 13, 14, 15]]], dtype=int32)",
           take(t3, Array({1, 0}), 1)),
      CASE("array([[3],\n       [4]], dtype=int32)", take_along_axis(m, Array({{2}, {0}}), 1)),
      CASE("array([[1, 5, 3]], dtype=int32)", take_along_axis(m, Array({{0, 1, 0}}), 0)),
      CASE("array([[0, 1, 0, 0],\n       [0, 0, 1, 0],\n       [0, 0, 0, 1]], dtype=float32)", one_hot(v, 4)),
  });
}

}  // namespace
