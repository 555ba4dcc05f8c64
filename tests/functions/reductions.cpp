// Reductions: expression and result, as MLX and NumPy print it.
#include "functions/cases.h"

namespace {

TEST(Functions, reductions) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array(21, dtype=int32)", sum(m)),
      CASE("array([5, 7, 9], dtype=int32)", sum(m, 0)),
      CASE("array([6, 15], dtype=int32)", sum(m, -1)),
      CASE("array([[21]], dtype=int32)", sum(m, {0, 1}, true)),
      CASE("array([60, 92, 124], dtype=int32)", sum(t3, {0, 2})),
      CASE("array(2, dtype=int32)", sum(b)),
      CASE("array(300, dtype=uint32)", sum(u8)),
      CASE("array(200, dtype=int32)", sum(i8)),
      CASE("array([6, 120], dtype=int32)", prod(m, 1)),
      CASE("array(3.5, dtype=float32)", mean(m)),
      CASE("array([[2.5, 3.5, 4.5]], dtype=float32)", mean(m, 0, true)),
      CASE("array(2.91667, dtype=float32)", var(m)),
      CASE("array([1, 1], dtype=float32)", var(m, 1, false, 1)),
      CASE("array(2.01168, dtype=float32)", sinter::std(f)),
      CASE("array([2.32289], dtype=float32)", f.std({}, true, 1)),
      CASE("array([20, 21, 22, 23], dtype=int32)", max(t3, {0, 1})),
      CASE("array([[0, 4, 8],\n       [12, 16, 20]], dtype=int32)", min(t3, -1)),
      CASE("array(3, dtype=uint32)", argmax(f)),
      CASE("array([[0, 0, 0]], dtype=uint32)", argmin(m, 0, true)),
      CASE("array(23, dtype=uint32)", argmax(t3)),
      CASE("array(false, dtype=bool)", all(b)),
      CASE("array(true, dtype=bool)", any(b)),
      CASE("array([true, true, true], dtype=bool)", all(m, 0)),
      CASE("array([false, true], dtype=bool)", any(m > 5, 1)),
      CASE("array(3.26949, dtype=float32)", logsumexp(f)),
      CASE("array([[2.31326],\n       [4.31326]], dtype=float32)", logsumexp(w, 1, true)),
      CASE("array([[0.268941, 0.731059],\n       [0.268941, 0.731059]], dtype=float32)", softmax(w, -1)),
      CASE("array([0.170419, 0.00312134, 0.0626937, 0.763766], dtype=float32)", softmax(f)),
  });
}

TEST(Functions, cumulative) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([[1, 3, 5],\n       [2, 4, 6]], dtype=int32)", sort(Array({{3, 1, 5}, {4, 6, 2}}), -1)),
      CASE("array([[3, 1, 2],\n       [4, 6, 5]], dtype=int32)", sort(Array({{3, 1, 5}, {4, 6, 2}}), 0)),
      CASE("array([1, 2, 3, 4, 5, 6], dtype=int32)", Array({{3, 1, 5}, {4, 6, 2}}).sort()),
      CASE("array([1, 5, 0, 3, 2, 4], dtype=uint32)", argsort(Array({{3, 1, 5}, {4, 6, 2}}))),
      CASE("array([2, 0, 1], dtype=uint32)", Array({0.5f, NAN, -1.f}).argsort()),
      CASE("array([-inf, -0, 0, 2, nan, nan], dtype=float32)", sort(Array({NAN, 2.f, -0.f, 0.f, -INFINITY, NAN}))),
      CASE("array([false, false, true], dtype=bool)", sort(Array({true, false, false}))),
      CASE("array([7], dtype=int32)", sort(Array(7))),
      CASE("array([], dtype=float32)", sort(zeros({0, 3}))),
      CASE("array([1, 3, 6, 10, 15, 21], dtype=int32)", cumsum(m)),
      CASE("array([[1, 2, 3],\n       [5, 7, 9]], dtype=int32)", cumsum(m, 0)),
      CASE("array([[6, 5, 3],\n       [15, 11, 6]], dtype=int32)", cumsum(m, -1, true)),
      CASE("array([[0, 1, 3],\n       [0, 4, 9]], dtype=int32)", cumsum(m, 1, false, false)),
      CASE("array([[5, 3, 0],\n       [11, 6, 0]], dtype=int32)", m.cumsum(1, true, false)),
      CASE("array([1, 1, 2], dtype=int32)", cumsum(b)),
      CASE("array([200, 300], dtype=uint32)", cumsum(u8)),
      CASE("array([100, 10000], dtype=int32)", i8.cumprod()),
      CASE("array([[1, 2, 6],\n       [4, 20, 120]], dtype=int32)", cumprod(m, 1)),
      CASE("array([1, 1, 2], dtype=int32)", cumprod(v, 0, false, false)),
      CASE("array([1+2j, 11+2j], dtype=complex64)", cumprod(c)),
      CASE("array([1.5, 1.5, 1.5, 3], dtype=float32)", f.cummax()),
      CASE("array([-2.5, -2.5, 0.5, 3], dtype=float32)", cummin(f, 0, true)),
      CASE("array([inf, 1.5, -2.5, -2.5], dtype=float32)", f.cummin(0, false, false)),
      CASE("array([100, -128], dtype=int8)", cummax(i8, 0, true, false)),
      CASE("array([255, 200], dtype=uint8)", cummin(u8, 0, false, false)),
      CASE("array([true, true, true], dtype=bool)", cummax(b)),
      CASE("array([1, nan, nan, nan], dtype=float32)", cummax(nan)),
      CASE("array([1.5, 1.51815, 1.82656, 3.26949], dtype=float32)", f.logcumsumexp()),
      CASE("array([-inf, 1, 2.31326], dtype=float32)", logcumsumexp(v, 0, false, false)),
      CASE("array([2], dtype=float32)", cumsum(Array(2.0))),
      CASE("array([], dtype=float32)", cumprod(zeros({0}))),
      CASE("array([[],\n       []], dtype=int32)", cumsum(zeros({2, 0}, bool_), 0)),
  });
  // Each element of a half is rounded once: 2048 + 1 + 1 + ... would stay 2048 in float16.
  EXPECT_EQ(cumsum(concatenate({full({1}, 2048, float16), ones({8}, float16)})).to_vector<float>(),
            (std::vector<float>{2048, 2048, 2050, 2052, 2052, 2052, 2054, 2056, 2056}));
}

}  // namespace
