// Accuracy of every floating function of the table against the C library in long double, in ulp, and its special values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "lanes_run.h"
#include "ops/math/tables.h"

namespace sinter::ops {
namespace {

using namespace sinter::tests;

Op op_of(const char* name) { return find_op(name); }

TEST(Accuracy, UnaryFunctionsAgreeWithTheCLibrary) {
  for (const UnaryCase& c : kUnary) {
    for (const Dtype t : {Dtype::float32, Dtype::float64}) {
      const double largest = t == Dtype::float32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
      const auto x = samples(t, std::max(c.low, -largest), std::min(c.high, largest), 16000, 1);
      const auto got = run(op_of(c.function), t, {x});
      double worst = 0, at = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = ulp(t, got[i], c.reference(x[i]));
        if (error > worst) worst = error, at = x[i];
      }
      std::printf("%-12s [%g, %g] %s: %.3f ulp at %a\n", c.function, c.low, c.high, name(t), worst, at);
      EXPECT_LE(worst, t == Dtype::float32 ? c.single : c.twice) << c.function << ' ' << t << " at " << at;
    }
  }
}

// Next to multiples of pi/2, where the reduction cancels: every one near, and those of powers of 2 far away.
TEST(Accuracy, SinCosTanNextToMultiplesOfHalfPi) {
  constexpr Real kHalfPi = 1.57079632679489661923132169163975144L;
  for (const Dtype t : {Dtype::float32, Dtype::float64}) {
    std::vector<double> x;
    const auto keep = [&](Real multiple) {
      for (const int step : {-1, 0, 1}) {
        const auto v = static_cast<double>(multiple * kHalfPi);
        const std::uint64_t word = float_bits(t, v) + static_cast<std::uint64_t>(step);
        x.push_back(float_value(t, word));
      }
    };
    for (int n = 1; n < 12000; ++n) keep(n);
    for (int n = 1; n < 12000; n += 5) keep(n + 0.5L);
    for (int e = 14; e < (t == Dtype::float32 ? 127 : 1020); ++e) keep(std::scalbn(1.0L, e));
    const struct {
      const char* function;
      Real (*reference)(Real);
    } cases[] = {{"sin", std::sin}, {"cos", std::cos}, {"tan", std::tan}};
    for (const auto& c : cases) {
      const auto got = run(op_of(c.function), t, {x});
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_LE(ulp(t, got[i], c.reference(x[i])), t == Dtype::float32 ? 1.5 : 2) << c.function << ' ' << t << " at " << x[i];
      }
    }
  }
}

// Functions by pieces where one piece meets the next, and at the limit beyond which they are 1.
TEST(Accuracy, NextToTheBordersOfPieces) {
  const struct {
    const char* function;
    const math::Pieces& pieces;
    Real (*reference)(Real);
  } cases[] = {{"tanh", math::kTanh, std::tanh}, {"erf", math::kErf, std::erf}};
  for (const auto& c : cases) {
    std::vector<double> borders{c.pieces.limit};
    for (std::uint64_t t = float_bits(Dtype::float32, c.pieces.origin); borders.back() <= c.pieces.limit; t += 1U << c.pieces.shift)
      borders.push_back(float_value(Dtype::float32, t) - c.pieces.origin);
    std::vector<double> x;
    for (const double border : borders) {
      const auto word = static_cast<std::int64_t>(float_bits(Dtype::float32, border));
      for (std::int64_t w = std::max<std::int64_t>(word - 64, 0); w < word + 64; ++w)
        x.push_back(float_value(Dtype::float32, static_cast<std::uint64_t>(w)));
    }
    const auto got = run(op_of(c.function), Dtype::float32, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_LE(ulp(Dtype::float32, got[i], c.reference(x[i])), 1) << c.function << " at " << x[i];
      EXPECT_LE(got[i], 1) << c.function << " at " << x[i];
    }
  }
}

TEST(Accuracy, BinaryFunctionsAgreeWithTheCLibrary) {
  for (const BinaryCase& c : kBinary) {
    for (const Dtype t : {Dtype::float32, Dtype::float64}) {
      const double largest = t == Dtype::float32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
      auto x = samples(t, std::max(c.low, -largest), std::min(c.high, largest), 8000, 1);
      auto y = samples(t, std::max(c.low2, -largest), std::min(c.high2, largest), 8000, 2);
      x.resize(std::min(x.size(), y.size()));
      y.resize(x.size());
      std::shuffle(y.begin(), y.end(), std::mt19937(3));
      const auto got = run(op_of(c.function), t, {x, y});
      double worst = 0;
      std::size_t at = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = ulp(t, got[i], c.reference(x[i], y[i]));
        if (error > worst) worst = error, at = i;
      }
      std::printf("%-12s [%g, %g] %s: %.3f ulp at %a, %a\n", c.function, c.low, c.high, name(t), worst, x[at], y[at]);
      EXPECT_LE(worst, t == Dtype::float32 ? c.single : c.twice) << c.function << ' ' << t << " at " << x[at] << ", " << y[at];
    }
  }
}

}  // namespace
}  // namespace sinter::ops
