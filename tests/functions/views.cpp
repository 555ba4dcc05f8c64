// Shapes and views: expression and result, as MLX and NumPy print it.
#include "functions/cases.h"

namespace {

TEST(Functions, views) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([[1, 2],\n       [3, 4],\n       [5, 6]], dtype=int32)", reshape(m, {3, -1})),
      CASE("array([0, 1, 2, ..., 21, 22, 23], dtype=int32)", reshape(t3, {-1})),
      CASE("array([[0, 1, 2, ..., 9, 10, 11],\n       [12, 13, 14, ..., 21, 22, 23]], dtype=int32)", flatten(t3, 1)),
      CASE("array([3], dtype=int32)", flatten(Array(3))),
      CASE("array([[1],\n       [2],\n       [3]], dtype=int32)", unflatten(v, 0, {3, -1})),
      CASE("array([1, 2, 3], dtype=int32)", squeeze(reshape(v, {1, 3, 1}))),
      CASE("array([[1, 2, 3]], dtype=int32)", squeeze(reshape(v, {1, 3, 1}), -1)),
      CASE("array([[[1],\n        [2],\n        [3]]], dtype=int32)", expand_dims(v, {0, 2})),
      CASE("array([[1],\n       [2],\n       [3]], dtype=int32)", expand_dims(v, -1)),
      CASE("array([[1, 4],\n       [2, 5],\n       [3, 6]], dtype=int32)", transpose(m)),
      CASE("array([[12, 20, 28],\n"
           "       [14, 22, 30],\n"
           "       [16, 24, 32],\n"
           "       [18, 26, 34]], dtype=int32)",
           sum(transpose(t3, {2, 0, 1}), 1)),
      CASE("array([[0, 12, 4, 16, 8, 20],\n"
           "       [1, 13, 5, 17, 9, 21],\n"
           "       [2, 14, 6, 18, 10, 22],\n"
           "       [3, 15, 7, 19, 11, 23]], dtype=int32)",
           t3.T().reshape({4, 6})),
      CASE("array([[1, 4],\n       [2, 5],\n       [3, 6]], dtype=int32)", swapaxes(m, 0, -1)),
      CASE("array([[0, 1, 2, ..., 9, 10, 11],\n"
           "       [12, 13, 14, ..., 21, 22, 23]], dtype=int32)",
           moveaxis(t3, 0, -1).reshape({12, 2}).T()),
      CASE("array([[1, 2, 3],\n       [1, 2, 3]], dtype=int32)", broadcast_to(v, {2, 3})),
      CASE("array([2, 3], dtype=int32)", slice(v, {1}, {3})),
      CASE("array([3, 2, 1], dtype=int32)", slice(v, {-1}, {-4}, {-1})),
      CASE("array([[[3, 1],\n"
           "        [11, 9]],\n"
           "       [[15, 13],\n"
           "        [23, 21]]], dtype=int32)",
           slice(t3, {0, 0, 3}, {2, 9, 0}, {1, 2, -2})),
      CASE("array([[4, 5, 6]], dtype=int32)", slice(m, {1}, {2})),
      CASE("array([[6, 5, 4],\n       [3, 2, 1]], dtype=int32)", flip(m)),
      CASE("array([[3, 2, 1],\n       [6, 5, 4]], dtype=int32)", flip(m, 1)),
      CASE("array([[1, 2],\n       [2, 3]], dtype=int32)", as_strided(v, {2, 2}, {1, 1}, 0)),
      CASE("array([4, 5, 6], dtype=int32)", as_strided(transpose(m), {3}, {2}, 1)),
      CASE("array([[1, 2, 3],\n       [4, 5, 6],\n       [1, 2, 3],\n       [4, 5, 6]], dtype=int32)", concatenate({m, m})),
      CASE("array([[1, 2, 3, 0.5, 1, 1.5],\n       [4, 5, 6, 2, 2.5, 3]], dtype=float32)", concatenate({m, m * 0.5}, 1)),
      CASE("array([[1, 2, 3],\n       [2, 3, 4]], dtype=int32)", stack({v, v + 1})),
      CASE("array([[1, 2],\n       [2, 3],\n       [3, 4]], dtype=int32)", stack({v, v + 1}, -1)),
      CASE("array([[2],\n       [5]], dtype=int32)", split(m, 3, 1)[1]),
      CASE("array([2, 3], dtype=int32)", split(v, {1})[1]),
      CASE("array([0, 1, 2, 3, 0], dtype=int32)", pad(v, 1)),
      CASE("array([[7, 7, 7, 7, 7],\n       [1, 2, 3, 7, 7],\n       [4, 5, 6, 7, 7]], dtype=int32)", pad(m, {{1, 0}, {0, 2}}, 7)),
  });
}

}  // namespace
