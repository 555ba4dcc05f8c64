// Linear algebra: results as NumPy gives them, and solutions of every dtype, layout, size and number of threads put back into the equation.
#include <complex>
#include <limits>

#include "functions/cases.h"

namespace {

const double kEpsilon[] = {std::numeric_limits<float>::epsilon(), std::numeric_limits<double>::epsilon()};

TEST(Linalg, ResultsAsInNumPy) {
  const Array a({{2.f, 1.f}, {1.f, 3.f}}), b({3.f, 5.f}), stack({{{2.f, 0.f}, {0.f, 4.f}}, {{1.f, 2.f}, {0.f, 1.f}}});
  run({
      CASE("array([0.8, 1.4], dtype=float32)", linalg::solve(a, b)),
      CASE("array([[0.8],\n       [1.4]], dtype=float32)", linalg::solve(a, reshape(b, {2, 1}))),
      CASE("array([[1.5, 1.25],\n       [-7, 5]], dtype=float32)", linalg::solve(stack, b)),
      CASE("array([[[1],\n        [0.5]],\n       [[-2],\n        [2]]], dtype=float32)", linalg::solve(stack, full({2, 1}, 2.0))),
      CASE("array([[[1, 0],\n        [0, 1]],\n       [[0, -1],\n        [1, 2]]], dtype=float32)",
           linalg::solve(Array({{0, 1}, {-1, 0}}), Array({{{0, 1}, {-1, 0}}, {{1, 2}, {0, 1}}}))),
      CASE("array([[nan, nan],\n       [1, 2]], dtype=float32)",
           linalg::solve(Array({{{1.f, 2.f}, {2.f, 4.f}}, {{1.f, 0.f}, {0.f, 1.f}}}), Array({1.f, 2.f}))),
      CASE("array([[nan]], dtype=float32)", linalg::inv(zeros({1, 1}))),
      CASE("array([[0.6, -0.2],\n       [-0.2, 0.4]], dtype=float32)", linalg::inv(a)),
      CASE("array([[0.5, 0],\n       [0, 0.25]], dtype=float16)", linalg::inv(astype(take(stack, 0, 0), float16))),
      CASE("array([[0-1j]], dtype=complex64)", linalg::inv(full({1, 1}, Array(std::complex<float>(0, 1))))),
      CASE("array(5, dtype=float32)", linalg::norm(Array({3.f, 4.f}))),
      CASE("array([], dtype=float32)", linalg::solve(zeros({0, 0}), zeros({0}))),
      CASE("array([[],\n       [],\n       []], dtype=float64)", linalg::solve(eye(3, {}, 0, float64), zeros({3, 0}))),
  });
  EXPECT_EQ(linalg::solve(zeros({0, 3, 3}), zeros({3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(linalg::solve(zeros({4, 1, 3, 3}), zeros({5, 3, 2})).shape(), (Shape{4, 5, 3, 2}));
  EXPECT_EQ(linalg::solve(zeros({3, 3}), zeros({5, 2, 3, 2})).shape(), (Shape{5, 2, 3, 2}));
  EXPECT_EQ(linalg::solve(astype(a, float64), b).dtype(), float64);
  EXPECT_EQ(linalg::solve(astype(a, int8), astype(b, int8)).dtype(), float32);
}

// ||a x - b|| <= c n eps ||a|| ||x||: what LU with pivoting gives (Higham, Accuracy and Stability of Numerical Algorithms, section 9.3).
TEST(Linalg, SolutionsSolve) {
  for (Dtype t : {float32, float64, complex64})
    for (int n : {1, 2, 3, 16, 33, 100}) {
      const auto draw = [t](const Shape& s, int seed) {
        const Array x = astype(random::normal(s, float32, 0, 1, random::key(static_cast<std::uint64_t>(seed))), t);
        return is_complex(t) ? x * Array(std::complex<float>(0.6f, 0.8f)) + transpose(x) * Array(std::complex<float>(0, 1)) : x;
      };
      const Array base = draw({n, n}, n), right = draw({n, n}, n + 1);
      const Array matrices[] = {base, transpose(base), flip(base, 0), slice(draw({2 * n, 2 * n}, n), {0, 1}, {2 * n, 2 * n}, {2, 2}),
                                flip(base)};
      const Array rights[] = {right, slice(right, {0, 0}, {n, 1}), transpose(right), broadcast_to(slice(right, {0, 0}, {n, 1}), {n, 4})};
      for (const Array& a : matrices)
        for (const Array& b : rights) {
          const auto f = [](const Array& a, const Array& b) { return linalg::solve(a, b); };
          const Array x = f(a, b), compiled = compile(f)(a, b);
          EXPECT_TRUE(array_equal(x, compiled).item<bool>()) << t << " " << n;
          // The residual, summed in twice the precision where there is one.
          const auto wide = [t](const Array& v) { return t == complex64 ? v : astype(v, float64); };
          const Array product = sum(expand_dims(wide(a), 2) * expand_dims(wide(x), 0), 1);
          const auto size = [](const Array& v) { return sqrt(sum(square(astype(abs(v), float64)))).item<double>(); };
          EXPECT_LE(size(product - wide(b)), 8 * n * kEpsilon[t == float64] * size(a) * size(x)) << t << " " << n;
        }
    }
}

// Each matrix of a batch gives the bits that it gives alone. Under vmap too; there one matrix for all is factored once.
TEST(Linalg, BatchesAreTheirParts) {
  const Array a = random::normal({6, 20, 20}, float64, 0, 1, random::key(1)), b = random::normal({6, 20, 3}, float64, 0, 1, random::key(2));
  const Array all = linalg::solve(a, b), one = linalg::solve(take(a, 0, 0), b);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(array_equal(take(all, i, 0), linalg::solve(take(a, i, 0), take(b, i, 0))).item<bool>());
    EXPECT_TRUE(allclose(take(one, i, 0), linalg::solve(take(a, 0, 0), take(b, i, 0)), 1e-10).item<bool>());
  }
  const auto f = [](const Array& a, const Array& b) { return linalg::solve(a, b); };
  EXPECT_TRUE(array_equal(vmap(f)(a, b), all).item<bool>());
  EXPECT_TRUE(array_equal(compile(vmap(f))(a, b), all).item<bool>());
  EXPECT_TRUE(array_equal(vmap(f, {std::nullopt, 0})(take(a, 0, 0), b), one).item<bool>());
}

// d (c . a^-1 b) / da = -(a^-T c) (a^-1 b)^T, and / db = a^-T c.
TEST(Linalg, Gradients) {
  const Array a({{4.0, 1.0}, {2.0, 3.0}}), b({1.0, 2.0}), c({3.0, -1.0});
  const auto f = [c](const Array& a, const Array& b) { return sum(c * linalg::solve(a, b)); };
  const Array x = linalg::solve(a, b), s = linalg::solve(transpose(a), c);
  const auto [ga, gb] = grad<0, 1>(f)(a, b);
  EXPECT_TRUE(allclose(ga, -reshape(s, {2, 1}) * x, 1e-12).item<bool>());
  EXPECT_TRUE(allclose(gb, s, 1e-12).item<bool>());
  const auto [ca, cb] = compile(grad<0, 1>(f))(a, b);
  EXPECT_TRUE(array_equal(ca, ga).item<bool>() && array_equal(cb, gb).item<bool>());
}

}  // namespace
