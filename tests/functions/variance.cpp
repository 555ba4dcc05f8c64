// var and std in double precision of the stored elements: dtypes, axes, data far from 0, samples that say nothing of the rest.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "sinter/sinter.h"

using namespace sinter;

namespace {

using Axis = std::vector<int>;
using Values = std::vector<double>;

// One sum a place of the kept axes, from the elements of `x` in row-major order; f has the element and its place.
std::size_t for_each_place(const Shape& s, const Axis& folded, const std::function<void(std::size_t, std::size_t)>& f) {
  std::size_t places = 1, elements = 1;
  for (std::size_t d = 0; d < s.size(); ++d) {
    const auto n = static_cast<std::size_t>(static_cast<std::int64_t>(s[d]));
    elements *= n;
    if (std::find(folded.begin(), folded.end(), static_cast<int>(d)) == folded.end()) places *= n;
  }
  for (std::size_t i = 0; i < elements; ++i) {
    std::size_t rest = i, place = 0, step = 1;
    for (std::size_t d = s.size(); d-- > 0;) {
      const auto n = static_cast<std::size_t>(static_cast<std::int64_t>(s[d]));
      if (std::find(folded.begin(), folded.end(), static_cast<int>(d)) == folded.end()) place += rest % n * step, step *= n;
      rest /= n;
    }
    f(i, place);
  }
  return places;
}

struct Moments {
  Values mean, squares;
  double count;
};
Moments moments(const Values& x, const Shape& s, const Axis& folded) {
  const std::size_t places = for_each_place(s, folded, [](std::size_t, std::size_t) {});
  Moments m{Values(places), Values(places), static_cast<double>(x.size()) / static_cast<double>(places)};
  for_each_place(s, folded, [&](std::size_t i, std::size_t p) { m.mean[p] += x[i] / m.count; });
  for_each_place(s, folded, [&](std::size_t i, std::size_t p) { m.squares[p] += (x[i] - m.mean[p]) * (x[i] - m.mean[p]); });
  return m;
}

Array noise(const Shape& s, double center = 0) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(center, 1);
  Values v(static_cast<std::size_t>(static_cast<std::int64_t>(s.product())));
  for (double& x : v) x = normal(random);
  return Array(v, s, float64);
}
// Every `period`-th row lies elsewhere: all that a sample sees, or none of it.
Array apart(const Shape& s, int period) { return noise(s) + where(equal(arange(s[0]) % period, 0), 1e4, 0.0).reshape({s[0], 1}); }

struct Case {
  const char* name;
  Array x;  // float64
  Dtype dtype;
  Axis axes;
  double relative;
};

TEST(Variance, IsThatInDoublePrecision) {
  const Case cases[] = {
      {"columns", noise({4096, 37}), float32, {0}, 3e-6},
      {"few rows", noise({16, 37}), float32, {0}, 3e-6},
      {"fewer rows", noise({15, 37}), float32, {0}, 3e-6},
      {"one row", noise({1, 37}), float32, {0}, 0},
      {"rows", noise({37, 3000}), float32, {1}, 3e-6},
      {"all", noise({300, 40}), float32, {0, 1}, 3e-6},
      {"axes of a batch of images", noise({32, 9, 8, 20}), float32, {0, 1, 2}, 3e-6},
      {"channels in the middle", noise({20, 9, 30}), float32, {0, 2}, 3e-6},
      {"the middle axis", noise({3, 1100, 70}), float32, {1}, 3e-6},
      {"axes of size 1", noise({1, 200, 1, 5, 1}), float32, {0, 1, 2}, 3e-6},
      {"far from 0", noise({4096, 37}, 1e4), float32, {0}, 1e-5},
      {"very far from 0", noise({1500, 37}, 1e6), float32, {0}, 1e-5},
      {"the first row apart", apart({4096, 37}, 4096), float32, {0}, 3e-5},
      {"rows of a period", apart({4096, 37}, 64), float32, {0}, 3e-5},
      {"the sample apart", apart({4096, 37}, 61), float32, {0}, 3e-4},
      {"float64", noise({4096, 37}, 1e4), float64, {0}, 1e-13},
      {"float16", noise({2000, 37}), float16, {0}, 1e-3},
      {"bfloat16", noise({2000, 37}, 3), bfloat16, {0}, 8e-3},
      {"int32", noise({2000, 37}) * 1000, int32, {0}, 3e-6},
      {"uint8", abs(noise({2000, 37})) * 60, uint8, {0}, 2e-5},
      {"bool", floor(abs(noise({2000, 37}))), bool_, {0}, 2e-5},
  };
  for (const Case& c : cases) {
    const Array x = astype(c.x, c.dtype);
    const Moments want = moments(x.to_vector<double>(), x.shape(), c.axes);
    const Axes axes(c.axes);
    for (int ddof : {0, 1}) {
      const Array got = var(x, axes, false, ddof), kept = var(x, axes, true, ddof), root = sinter::std(x, axes, false, ddof);
      EXPECT_EQ(got.dtype(), is_floating(c.dtype) ? c.dtype : float32) << c.name;
      EXPECT_EQ(kept.shape(), sum(x, axes, true).shape()) << c.name;
      const Values v = got.to_vector<double>(), r = root.to_vector<double>();
      EXPECT_TRUE(array_equal(reshape(kept, got.shape()), got, true).item<bool>()) << c.name << " without and with keepdims";
      ASSERT_EQ(v.size(), want.squares.size()) << c.name;
      double worst = 0, worst_root = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        const double expected = want.count == 1 && ddof == 1 ? NAN : want.squares[i] / (want.count - ddof);
        if (std::isnan(expected) && std::isnan(v[i])) continue;
        worst = std::max(worst, expected == 0 ? std::fabs(v[i]) : std::fabs(v[i] / expected - 1));
        worst_root = std::max(worst_root, expected == 0 ? std::fabs(r[i]) : std::fabs(r[i] / std::sqrt(expected) - 1));
      }
      EXPECT_LE(worst, c.relative) << c.name << ", ddof " << ddof;
      EXPECT_LE(worst_root, c.relative) << c.name << ", ddof " << ddof;
    }
  }
}

TEST(Variance, OfEqualElementsIsAlmostNothingAndOfNanIsNan) {
  for (double v : {0.0, 0.1, 1234.567, -1e12}) {
    const Array x = full({3000, 5}, v, float32);
    for (double spread : sinter::std(x, 0).to_vector<double>()) EXPECT_LE(spread, std::fabs(v) * 1e-6) << v;
  }
  for (double odd : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const Array x = where(equal(reshape(arange(3000 * 2), {3000, 2}), 1000), odd, 1.0);
    const Values v = var(x, 0).to_vector<double>();
    EXPECT_TRUE(std::isnan(v[0])) << odd;
    EXPECT_EQ(v[1], 0) << odd;
  }
}

// The derivatives of the definition: 2 (x - mean) / (n - ddof), and of that along v, 2 (v - mean of v) / (n - ddof).
TEST(Variance, Derivatives) {
  for (const Shape& shape : {Shape{1500, 6}, Shape{40, 6}, Shape{9, 6}}) {
    const Array x = noise(shape, 5), v = cos(noise(shape));
    auto gradient = [](const Array& a) { return grad([](const Array& b) { return sum(var(b, 0, false, 1)); })(a); };
    auto along = [&](const Array& a) { return sum(gradient(a) * stop_gradient(v)); };
    const double n = static_cast<double>(static_cast<std::int64_t>(shape[0])) - 1;
    const Array first = gradient(x), second = grad(along)(x);
    EXPECT_LT(max(abs(first - 2 * (x - mean(x, 0)) / n)).item<double>(), 1e-13 / n) << shape;
    EXPECT_LT(max(abs(second - 2 * (v - mean(v, 0)) / n)).item<double>(), 1e-13 / n) << shape;
  }
}

TEST(Variance, SecondDerivativesOfEqualElements) {
  for (double c : {0.0, 0.1, 1e5}) {
    constexpr int n = 64;
    const Array x = full({n}, c, float64), h = hessian([](const Array& a) { return sum(var(reshape(a, {n, 1}), 0)); })(x);
    const Values v = h.to_vector<double>();
    EXPECT_NEAR(v[0], 2.0 / n * (1 - 1.0 / n), 1e-9) << c;
    EXPECT_NEAR(v[1], -2.0 / n / n, 1e-9) << c;
  }
}

TEST(Variance, BatchesAndCompiledCallsHaveTheSameBits) {
  const Array x = astype(noise({3, 1200, 33}, 2), float32);
  auto columns = [](const Array& a) { return var(a, 0); };
  const std::vector<float> batch = vmap(columns)(x).to_vector<float>(),
                           compiled = compile([](const Array& a) { return var(a, 1); })(x).to_vector<float>();
  std::vector<float> one_by_one;
  for (int i = 0; i < 3; ++i)
    for (float v : columns(take(x, i, 0)).to_vector<float>()) one_by_one.push_back(v);
  EXPECT_EQ(batch, one_by_one);
  EXPECT_EQ(compiled, one_by_one);
}

}  // namespace
