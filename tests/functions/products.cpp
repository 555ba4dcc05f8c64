// Matrix products: expression and result, as MLX and NumPy print it.
#include "functions/cases.h"

namespace {

TEST(Functions, products) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([[7, 10],\n       [15, 22]], dtype=float32)", matmul(w, w)),
      CASE("array([14, 32], dtype=float32)", matmul(m.astype(float32), v.astype(float32))),
      CASE("array([7, 10], dtype=float32)", matmul(Array({1.0, 2.0}), w)),
      CASE("array(14, dtype=float32)", matmul(v.astype(float32), v.astype(float32))),
      CASE("array([[[3, 4],\n"
           "        [11, 16],\n"
           "        [19, 28]],\n"
           "       [[27, 40],\n"
           "        [35, 52],\n"
           "        [43, 64]]], dtype=float32)",
           matmul(reshape(arange(12.0), {2, 3, 2}), w)),
      CASE("array([[[[2, 3],\n"
           "         [6, 11]],\n"
           "        [[10, 19],\n"
           "         [14, 27]]],\n"
           "       [[[6, 7],\n"
           "         [26, 31]],\n"
           "        [[46, 55],\n"
           "         [66, 79]]]], dtype=float32)",
           matmul(reshape(arange(8.0), {2, 2, 2}), reshape(arange(8.0), {2, 1, 2, 2}))),
      CASE("array([[8, 11],\n       [16, 23]], dtype=float32)", addmm(Array(1.0), w, w)),
      CASE("array([[17, 26],\n       [33, 50]], dtype=float32)", addmm(Array({1.0, 2.0}), w, w, 2, 3)),
  });
}

}  // namespace
