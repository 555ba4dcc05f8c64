// The floating functions of the table: what they are by the C library in long double, the error that is allowed, and where to look.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sinter/dtype.h"

namespace sinter::tests {

/// Stored bits of a float32 or float64 number, and back.
inline std::uint64_t float_bits(Dtype t, double v) {
  return t == Dtype::float32 ? std::bit_cast<std::uint32_t>(static_cast<float>(v)) : std::bit_cast<std::uint64_t>(v);
}
inline double float_value(Dtype t, std::uint64_t bits) {
  return t == Dtype::float32 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits)) : std::bit_cast<double>(bits);
}

using Real = long double;

inline Real erfinv(Real x) {
  const Real a = std::fabs(x);
  if (a >= 1 || a == 0) return a == 0 ? x : a == 1 ? x * std::numeric_limits<Real>::infinity() : NAN;
  Real y = a < 0.7L ? a : std::sqrt(-std::log(1 - a));
  for (int i = 0; i < 100; ++i) {  // Halley's iteration
    const Real step = (a < 0.5L ? a - std::erf(y) : std::erfc(y) - (1 - a)) / (1.128379167095512573896L * std::exp(-y * y));
    y += step / (1 - y * step);
  }
  return std::copysign(y, x);
}
inline Real sigmoid(Real x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
inline Real softplus(Real x) { return std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }
inline Real mish(Real x) { return x * std::tanh(softplus(x)); }
inline Real gelu(Real x) { return 0.5L * x * std::erfc(-x * 0.70710678118654752440084436210484903928L); }
inline Real gelu_tanh(Real x) { return x * sigmoid(2 * 0.79788456080286535587989211986876373695L * (x + 0.044715L * x * x * x)); }
inline Real selu(Real x) { return 1.0507009873554804934193349852946L * (x < 0 ? 1.6732632423543772848170429916717L * std::expm1(x) : x); }
inline Real logaddexp(Real x, Real y) { return std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y))); }

/// The distance in units of the last place of the reference, rounded to t where it overflows.
inline double ulp(Dtype t, double got, Real want) {
  const int digits = t == Dtype::float32 ? 24 : 53;
  const int lowest = t == Dtype::float32 ? -149 : -1074;
  const double rounded = t == Dtype::float32 ? static_cast<double>(static_cast<float>(want)) : static_cast<double>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : INFINITY;
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : INFINITY;
  const int exponent = want == 0 ? lowest : std::max(std::ilogb(want) - digits + 1, lowest);
  return static_cast<double>(std::fabs(std::scalbn(static_cast<Real>(got) - want, -exponent)));
}

/// Numbers of dtype t in [low, high]: evenly spaced, by magnitude from 1e-5 (or the domain's own scale) on, and by bit pattern.
inline std::vector<double> samples(Dtype t, double low, double high, int count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> even(low, high), power(-5, 2);
  std::vector<double> result;
  const auto keep = [&](double v) {
    if (t == Dtype::float32) v = static_cast<float>(v);
    if (v >= low && v <= high) result.push_back(v);
  };
  for (int i = 0; i < count; ++i) {
    keep(even(random));
    const double magnitude = std::pow(10, power(random));
    keep(i % 2 == 0 ? magnitude : -magnitude);
    keep(1 + std::ldexp(even(random) / std::max(std::fabs(low), std::fabs(high)), -(i % 30)));
    keep(float_value(t, t == Dtype::float32 ? random() & 0xffffffff : random()));
  }
  return result;
}

inline constexpr double kBig = 1e300;  // cut to each dtype's range by the samples
struct UnaryCase {
  const char* function;
  Real (*reference)(Real);
  double low, high;
  double single = 1.5, twice = 2;  // ulp
};
inline const UnaryCase kUnary[] = {
    {"exp", std::exp, -110, 100},
    {"exp", std::exp, -760, 720},
    {"exp2", std::exp2, -160, 140},
    {"exp2", std::exp2, -1090, 1030},
    {"expm1", std::expm1, -30, 95},
    {"expm1", std::expm1, -1, 1},
    {"log", std::log, 0, kBig},
    {"log", std::log, 0, 3},
    {"log2", std::log2, 0, kBig},
    {"log2", std::log2, 0, 3},
    {"log10", std::log10, 0, kBig},
    {"log10", std::log10, 0, 3},
    {"log1p", std::log1p, -1, kBig},
    {"log1p", std::log1p, -1, 3},
    {"sin", std::sin, -10, 10},
    {"sin", std::sin, -20000, 20000},
    {"sin", std::sin, -kBig, kBig},
    {"cos", std::cos, -10, 10},
    {"cos", std::cos, -20000, 20000},
    {"cos", std::cos, -kBig, kBig},
    {"tan", std::tan, -10, 10},
    {"tan", std::tan, -20000, 20000},
    {"tan", std::tan, -kBig, kBig},
    {"arcsin", std::asin, -1, 1},
    {"arccos", std::acos, -1, 1},
    {"arctan", std::atan, -5, 5},
    {"arctan", std::atan, -kBig, kBig},
    {"sinh", std::sinh, -3, 3},
    {"sinh", std::sinh, -90, 90},
    {"sinh", std::sinh, -711, 711},
    {"cosh", std::cosh, -3, 3},
    {"cosh", std::cosh, -90, 90},
    {"cosh", std::cosh, -711, 711},
    {"tanh", std::tanh, -3, 3},
    {"tanh", std::tanh, -25, 25},
    {"arcsinh", std::asinh, -5, 5, 2},
    {"arcsinh", std::asinh, -kBig, kBig, 2},
    {"arccosh", std::acosh, 1, 5},
    {"arccosh", std::acosh, 1, kBig},
    {"arctanh", std::atanh, -1, 1},
    {"erf", std::erf, -1.2, 1.2},
    {"erf", std::erf, -7, 7},
    {"erfinv", erfinv, -1, 1, 3, 3},
    {"sqrt", std::sqrt, 0, kBig, 0.5001, 0.5001},
    {"rsqrt", [](Real x) { return 1 / std::sqrt(x); }, 0, kBig},
    {"reciprocal", [](Real x) { return 1 / x; }, -kBig, kBig, 0.5001, 0.5001},
    {"square", [](Real x) { return x * x; }, -100, 100, 0.5001, 0.5001},
    {"degrees", [](Real x) { return x * 57.29577951308232087679815481410517L; }, -100, 100},
    {"radians", [](Real x) { return x * 0.01745329251994329576923690768488613L; }, -100, 100},
    {"sigmoid", sigmoid, -110, 100, 2.5, 2.5},
    {"sigmoid", sigmoid, -5, 5, 2.5, 2.5},
    {"silu", [](Real x) { return x * sigmoid(x); }, -80, 100, 3.5, 3.5},
    {"softplus", softplus, -80, 100, 2, 2},
    {"log_sigmoid", [](Real x) { return -softplus(-x); }, -100, 80, 2, 2},
    {"mish", mish, -80, 100, 5, 5},
    {"gelu", gelu, -0.5, 100, 2.5, 2.5},
    {"gelu_tanh", gelu_tanh, -1, 100, 3.5, 3.5},
    {"selu", selu, -20, 100, 4, 4},
};

struct BinaryCase {
  const char* function;
  Real (*reference)(Real, Real);
  double low, high, low2, high2;
  double single = 1.5, twice = 2;
};
inline const BinaryCase kBinary[] = {
    {"power", std::pow, 0, 10, -40, 40, 1, 1},
    {"power", std::pow, 0.9, 1.1, -1000, 1000, 1, 1},
    {"power", std::pow, 0, kBig, -3, 3, 1, 1},
    {"arctan2", std::atan2, -10, 10, -10, 10, 2},
    {"arctan2", std::atan2, -kBig, kBig, -kBig, kBig, 2},
    {"hypot", std::hypot, -10, 10, -10, 10},
    {"hypot", std::hypot, -kBig, kBig, -kBig, kBig},
    {"logaddexp", logaddexp, 0, 100, 0, 100, 2},
    {"divide", [](Real x, Real y) { return x / y; }, -10, 10, -10, 10, 0.5001, 0.5001},
    {"elu", [](Real x, Real y) { return x < 0 ? y * std::expm1(x) : x; }, -20, 20, -3, 3, 3, 3},
    {"leaky_relu", [](Real x, Real y) { return x < 0 ? y * x : x; }, -20, 20, -3, 3, 0.5001, 0.5001},
};

}  // namespace sinter::tests
