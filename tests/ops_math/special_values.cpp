// Special values of floating functions: infinities, NaN, signed zeros, denormals and values outside the domain, in both precisions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "lanes_run.h"

namespace sinter::ops {
namespace {

// The same NaN-ness, sign of zero and infinity; finite values within 3 units of the last place.
void expect_same(Dtype t, double got, double want, const std::string& what) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << what << " gave " << got << ", not NaN";
  } else if (std::isinf(want) || want == 0) {
    EXPECT_TRUE(got == want && std::signbit(got) == std::signbit(want)) << what << " gave " << got << ", not " << want;
  } else {
    const double unit =
        t == Dtype::float32 ? std::max(std::fabs(want) * 0x1p-23, 0x1p-149) : std::max(std::fabs(want) * 0x1p-52, 0x1p-1074);
    EXPECT_LE(std::fabs(got - want), 3 * unit) << what << " gave " << got << ", not " << want;
  }
}

std::vector<double> special_values(Dtype t) {
  const bool single = t == Dtype::float32;
  std::vector<double> v = {0,
                           0.5,
                           1,
                           1.5,
                           2,
                           3,
                           1e5,
                           0.25,
                           1e9,
                           1e20,
                           std::numeric_limits<double>::infinity(),
                           single ? 0x1p-149 : 0x1p-1074,
                           single ? 0x1p-126 : 0x1p-1022,
                           single ? 0x1.fffffep127 : 0x1.fffffffffffffp1023,
                           single ? 0x1p-140 : 0x1p-1050};
  for (std::size_t i = 0, n = v.size(); i < n; ++i) v.push_back(-v[i]);
  v.push_back(std::numeric_limits<double>::quiet_NaN());
  return v;
}

template <class T>
struct Functions {
  struct Unary {
    const char* function;
    T (*reference)(T);
  };
  static inline const Unary kUnary[] = {
      {"exp", std::exp},
      {"exp2", std::exp2},
      {"expm1", std::expm1},
      {"log", std::log},
      {"log2", std::log2},
      {"log10", std::log10},
      {"log1p", std::log1p},
      {"sin", std::sin},
      {"cos", std::cos},
      {"tan", std::tan},
      {"arcsin", std::asin},
      {"arccos", std::acos},
      {"arctan", std::atan},
      {"sinh", std::sinh},
      {"cosh", std::cosh},
      {"tanh", std::tanh},
      {"arcsinh", std::asinh},
      {"arccosh", std::acosh},
      {"arctanh", std::atanh},
      {"erf", std::erf},
      {"sqrt", std::sqrt},
      {"abs", std::fabs},
      {"floor", std::floor},
      {"ceil", std::ceil},
      {"trunc", std::trunc},
      {"round", std::nearbyint},
      {"negative", [](T x) { return -x; }},
      {"sign", [](T x) { return x > 0   ? T(1)
                                : x < 0 ? T(-1)
                                        : x; }},
      {"reciprocal", [](T x) { return 1 / x; }},
      {"relu", [](T x) { return x <= 0 ? T(0) : x; }},
      {"relu6", [](T x) { return x <= 0  ? T(0)
                                 : x > 6 ? T(6)
                                         : x; }},
      {"sigmoid", [](T x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }},
      {"erfinv",
       [](T x) {
         const T a = std::fabs(x);
         return a > 1          ? T(NAN)
                : a == 1       ? x * T(INFINITY)
                : a == T(0.5)  ? std::copysign(T(0.47693627620446987338L), x)
                : a == T(0.25) ? std::copysign(T(0.22531205501217810472L), x)
                               : x * T(0.88622692545275801365L);
       }},
      {"silu", [](T x) { return x == -T(INFINITY) ? T(-0.0)
                                : x < -1e4        ? T(-0.0)
                                                  : x / (1 + std::exp(-x)); }},
      {"softplus", [](T x) { return x > 100         ? x
                                    : std::isnan(x) ? x
                                                    : std::log1p(std::exp(x)); }},
      {"hardswish", [](T x) { return x <= -3  ? T(-0.0)
                                     : x >= 3 ? x
                                              : x * (x + 3) / 6; }},
      {"softsign", [](T x) { return x / (1 + std::abs(x)); }},
  };
  struct Binary {
    const char* function;
    T (*reference)(T, T);
  };
  static T python_remainder(T x, T y) {
    T r = std::fmod(x, y);
    if (r == 0) return std::copysign(T(0), y);
    if ((r < 0) != (y < 0)) {
      r += y;
      if (r == y && std::isfinite(y)) r = std::nextafter(y, T(0));
    }
    return r;
  }
  static T python_floor_divide(T x, T y) {
    if (y == 0) return x / y;
    const T r = std::fmod(x, y);
    T q = (x - r) / y;
    if (r != 0 && (r < 0) != (y < 0)) q -= 1;
    return q == 0 ? std::copysign(T(0), x / y) : std::isnan(q) ? q : std::nearbyint(q);
  }
  static T larger(T x, T y) {
    if (std::isnan(x) || std::isnan(y)) return T(NAN);
    return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
  }
  static T smaller(T x, T y) { return -larger(-x, -y); }
  static inline const Binary kBinary[] = {
      {"power", std::pow},
      {"arctan2", std::atan2},
      {"hypot", std::hypot},
      {"copysign", [](T x, T y) { return std::isnan(y) ? std::fabs(x) : std::copysign(x, y); }},
      {"maximum", larger},
      {"minimum", smaller},
      {"remainder", python_remainder},
      {"floor_divide", python_floor_divide},
      {"add", [](T x, T y) { return x + y; }},
      {"divide", [](T x, T y) { return x / y; }},
      {"logaddexp",
       [](T x, T y) {
         if (std::isnan(x) || std::isnan(y)) return T(NAN);
         return x == y ? x + std::log(T(2)) : std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y)));
       }},
  };
  static void run_all(Dtype t) {
    const auto values = special_values(t);
    for (const Unary& c : kUnary) {
      const auto got = run(find_op(c.function), t, {values});
      for (std::size_t i = 0; i < values.size(); ++i) {
        expect_same(t, got[i], c.reference(static_cast<T>(values[i])), str(t, ' ', c.function, '(', values[i], ')'));
      }
    }
    std::vector<double> x, y;
    for (const double a : values)
      for (const double b : values) x.push_back(a), y.push_back(b);
    for (const Binary& c : kBinary) {
      const auto got = run(find_op(c.function), t, {x, y});
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::string what = str(t, ' ', c.function, '(', x[i], ", ", y[i], ')');
        expect_same(t, got[i], c.reference(static_cast<T>(x[i]), static_cast<T>(y[i])), what);
      }
    }
  }
};

TEST(SpecialValues, Float32) { Functions<float>::run_all(Dtype::float32); }
TEST(SpecialValues, Float64) { Functions<double>::run_all(Dtype::float64); }

// HAZARDS 31: exact remainders over the whole range of quotients, and a quotient that goes with them.
template <class T>
void check_remainders(Dtype t) {
  std::mt19937_64 random(7);
  std::vector<double> x, y;
  for (int i = 0; i < 3000; ++i) {
    const double a = float_value(t, t == Dtype::float32 ? random() & 0xffffffff : random());
    const double b = i % 2 == 0 ? float_value(t, t == Dtype::float32 ? random() & 0xffffffff : random()) : static_cast<T>(a / (1 + i % 50));
    if (std::isfinite(a) && std::isfinite(b) && b != 0) x.push_back(a), y.push_back(b);
  }
  for (const auto& [a, b] : {std::pair{1.0, 0.1}, {0.5, 0.1}, {6.0, 0.2}, {1e10, 1e-20}, {-1e10, 1e-20}, {-1e-30, 1.0}, {1e-30, -1.0}}) {
    x.push_back(static_cast<T>(a));
    y.push_back(static_cast<T>(b));
  }
  const auto r = run(find_op("remainder"), t, {x, y});
  const auto q = run(find_op("floor_divide"), t, {x, y});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto a = static_cast<T>(x[i]), b = static_cast<T>(y[i]);
    EXPECT_EQ(r[i], Functions<T>::python_remainder(a, b)) << a << " % " << b;
    EXPECT_EQ(q[i], Functions<T>::python_floor_divide(a, b)) << a << " // " << b;
    EXPECT_TRUE(b > 0 ? r[i] >= 0 && r[i] < b : r[i] <= 0 && r[i] > b) << a << " % " << b << " is " << r[i];
  }
}
TEST(SpecialValues, RemaindersFloat32) { check_remainders<float>(Dtype::float32); }
TEST(SpecialValues, RemaindersFloat64) { check_remainders<double>(Dtype::float64); }

TEST(SpecialValues, TestsOfNumbers) {
  const std::vector<Words> x = {{float_bits(Dtype::float32, 1), float_bits(Dtype::float32, NAN), float_bits(Dtype::float32, INFINITY),
                                 float_bits(Dtype::float32, -INFINITY), float_bits(Dtype::float32, -0.0)}};
  const std::pair<const char*, Words> cases[] = {{"isnan", {0, 1, 0, 0, 0}},
                                                 {"isinf", {0, 0, 1, 1, 0}},
                                                 {"isposinf", {0, 0, 1, 0, 0}},
                                                 {"isneginf", {0, 0, 0, 1, 0}},
                                                 {"isfinite", {1, 0, 0, 0, 1}}};
  for (const auto& [function, want] : cases) EXPECT_EQ(run_bits(find_op(function), Dtype::float32, x), want) << function;
  for (const auto& [function, want] : cases) {
    const std::uint64_t on_integers = std::string_view(function) == "isfinite" ? 1 : 0;
    EXPECT_EQ(run_bits(find_op(function), Dtype::int32, {{0, 5}}), (Words{on_integers, on_integers})) << function;
  }
}

TEST(SpecialValues, ThreeOperands) {
  const double nan = NAN, inf = INFINITY;
  const struct {
    const char* function;
    double x, y, z, want;
  } cases[] = {
      {"clip", 5, 0, 3, 3},
      {"clip", -5, 0, 3, 0},
      {"clip", nan, 0, 3, nan},
      {"clip", 1, nan, 3, nan},
      {"clip", 1, 0, nan, nan},
      {"clip", -inf, 0, 3, 0},
      {"lerp", 1, 3, 0, 1},
      {"lerp", 1, 3, 1, 3},
      {"lerp", 1, 3, 0.25, 1.5},
      {"lerp", 0.1, 1e9, 1, 1e9},
      {"fma", 2, 3, 4, 10},
      {"fma", inf, 0, 1, nan},
      {"fma", 0x1.000002p0, 0x1.fffffcp-1, -1, -0x1p-46},
  };
  for (const auto& c : cases) {
    const double got = run(find_op(c.function), Dtype::float32, {{c.x}, {c.y}, {c.z}})[0];
    expect_same(Dtype::float32, got, static_cast<float>(c.want), str(c.function, '(', c.x, ", ", c.y, ", ", c.z, ')'));
  }
}

}  // namespace
}  // namespace sinter::ops
