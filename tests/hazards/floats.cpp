// Floats: signs of zero, NaN and infinite constants, contraction, comparisons, floor division.
#include "hazards/hazards.h"

namespace sinter::tests {
namespace {

TEST(hazard, hazard_6_a_constant_of_minus_zero) {
  for (Dtype t : kFloats)
    for (std::size_t n : {1, 2, 17}) {
      const Array x = make(repeat({1, 2}, n), t);
      const std::string what = str(t, " length ", n);
      const std::vector<double> minus = repeat({-INFINITY}, n);
      const Arrays r = both(
          [t](const Arrays& a) {
            const Array& x = a[0];
            const Array positive = abs(x), zero(-0.0, t);
            return Arrays{1.0 / (positive * (-0.0)), 1.0 / (positive * zero),   1.0 / where(x > 0, -0.0, x),
                          1.0 / minimum(x, -0.0),    1.0 / clip(x, -1.0, -0.0), 1.0 / full(x.shape(), -0.0, t)};
          },
          {x}, what);
      for (std::size_t i = 0; i < r.size(); ++i) expect_values(r[i], minus, str(what, " result ", i));
    }
  const Array c{std::complex<float>(1, 2)};
  both([](const Arrays& a) { return Arrays{a[0] * Array(std::complex<float>(-0.0f, -0.0f)), a[0] + std::complex<float>(-0.0f, 0.0f)}; },
       {c}, "complex");
}

TEST(hazard, hazard_7_constants_of_nan_and_infinity) {
  for (Dtype t : kFloats)
    for (double c : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)})
      for (std::size_t n : {1, 2, 17}) {
        const Array x = make(repeat({1, -1}, n), t);
        const std::vector<double> expected = repeat({1, c}, n);
        expect_values(both([c](const Arrays& a) { return where(a[0] > 0, a[0], c); }, {x}), expected, str(t, " ", c));
        expect_values(both([c, t](const Arrays& a) { return where(a[0] > 0, a[0], Array(c, t)); }, {x}), expected, str(t, " ", c));
        expect_values(both([c](const Arrays& a) { return where(a[0] > 0, a[0], a[0] * 0.0 + c); }, {x}), expected, str(t, " ", c));
      }
  for (float re : {1.f, NAN, INFINITY, -INFINITY, -0.f})
    for (float im : {1.f, NAN, INFINITY, -INFINITY, -0.f}) {
      const std::complex<float> c(re, im);
      const Array x({std::complex<float>(1, 1), std::complex<float>(-1, 1)});
      const Arrays r = both(
          [c](const Arrays& a) {
            const Array w = where(real(a[0]) > 0, a[0], c);
            return Arrays{real(w), imag(w)};
          },
          {x}, str(re, " ", im));
      expect_values(r[0], {1, re}, "real part");
      expect_values(r[1], {1, im}, "imaginary part");
    }
}

TEST(hazard, hazard_14_comparisons_compare_what_they_are_given) {
  const struct {
    const char* name;
    Array (*f)(const Array&, const Array&);
    double x, y;
    bool expected;
  } cases[] = {
      {"less", [](const Array& x, const Array& y) { return x < y; }, 0.2, 0.7, true},
      {"less", [](const Array& x, const Array& y) { return x < y; }, 0.7, 0.2, false},
      {"less_equal", [](const Array& x, const Array& y) { return x <= y; }, 0.7, 0.2, false},
      {"greater", [](const Array& x, const Array& y) { return x > y; }, 0.7, 0.2, true},
      {"greater_equal", [](const Array& x, const Array& y) { return x >= y; }, 0.2, 0.7, false},
      {"equal", [](const Array& x, const Array& y) { return x == y; }, 0.5, 0.25, false},
      {"not_equal", [](const Array& x, const Array& y) { return x != y; }, 0.5, 0.25, true},
      {"not_equal", [](const Array& x, const Array& y) { return x != y; }, NAN, NAN, true},
      {"equal", [](const Array& x, const Array& y) { return x == y; }, NAN, NAN, false},
      {"less", [](const Array& x, const Array& y) { return x < y; }, NAN, 1, false},
      {"greater_equal", [](const Array& x, const Array& y) { return x >= y; }, NAN, 1, false},
      {"isnan", [](const Array& x, const Array&) { return isnan(x); }, NAN, 0, true},
      {"isnan", [](const Array& x, const Array&) { return isnan(x); }, INFINITY, 0, false},
      {"isinf", [](const Array& x, const Array&) { return isinf(x); }, -INFINITY, 0, true},
      {"isinf", [](const Array& x, const Array&) { return isinf(x); }, 0.5, 0, false},
      {"isposinf", [](const Array& x, const Array&) { return isposinf(x); }, -INFINITY, 0, false},
      {"isneginf", [](const Array& x, const Array&) { return isneginf(x); }, -INFINITY, 0, true},
      {"isfinite", [](const Array& x, const Array&) { return isfinite(x); }, 0.2, 0, true},
      {"isfinite", [](const Array& x, const Array&) { return isfinite(x); }, NAN, 0, false},
  };
  for (const auto& c : cases)
    for (Dtype t : kFloats)
      for (std::size_t n : {1, 17}) {
        const Arrays in{full({n}, c.x, t), full({n}, c.y, t)};
        const Arrays r = both(
            [f = c.f](const Arrays& a) {
              const Array test = f(a[0] * 1.0, a[1]);
              return Arrays{test, where(test, 1.0, 0.0), astype(test, float32) * 2.0, !test, where(f(a[0], a[1]), a[0], a[1])};
            },
            in, str(c.name, " ", t));
        expect_values(astype(r[0], float64), repeat({c.expected ? 1.0 : 0.0}, n), str(c.name, " ", t, " ", c.x, " ", c.y));
        expect_values(r[2], repeat({c.expected ? 2.0 : 0.0}, n), str(c.name, " ", t));
      }
  // Integers too large for the float between them.
  for (Dtype t : {int64, uint64}) {
    const Array a(std::int64_t{1} << 62, t), b = a + 1;
    const Arrays r = both([](const Arrays& v) { return Arrays{v[0] < v[1], v[0] == v[1], v[0] != v[1]}; }, {a, b}, str(t));
    EXPECT_TRUE(r[0].item<bool>() && !r[1].item<bool>() && r[2].item<bool>()) << t;
  }
}

TEST(hazard, hazard_15_products_and_sums_are_not_contracted) {
  for (Dtype t : kFloats)
    for (std::size_t n = 1; n <= 17; ++n) {
      std::vector<double> v;
      for (std::size_t i = 0; i < n; ++i) v.push_back(0.1 + 0.0137 * static_cast<double>(i));
      const Array x = make(v, t), y = make(repeat({0.3, 1.7, 5.1}, n), t), s = zeros({n}, t);
      const std::string what = str(t, " length ", n);
      const Arrays r = both(
          [](const Arrays& a) {
            const Array &x = a[0], &y = a[1], &s = a[2];
            return Arrays{square(x * (1 + s)) - square(x),
                          power(x * (1 + s), 2) - power(x, 2),
                          x * y - x * y,
                          (x * y) - (y * x),
                          x * x - x * x * (1 + s),
                          x * y + (-(x * y)),
                          (x * (1 + s)) * y - x * y};
          },
          {x, y, s}, what);
      for (std::size_t i = 0; i < r.size(); ++i) expect_values(abs(r[i]), repeat({0}, n), str(what, " result ", i));
      both(
          [](const Arrays& a) {
            return Arrays{a[0] * a[1] + a[0],      a[0] * a[1] - a[1],    a[1] - a[0] * a[1],         sum(a[0] * a[1]),
                          sum(a[0] * a[1] + a[1]), lerp(a[0], a[1], 0.3), sigmoid(a[0] * a[1] + a[1])};
          },
          {x, y}, what);
      const double big = t == float16 ? 6e4 : 1e30;
      const Array rows = both([big](const Arrays& a) { return softmax(a[0] * big); }, {x}, what);
      for (double e : rows.to_vector<double>()) EXPECT_TRUE(e >= 0 && e <= 1) << what << ": " << e;
      both([](const Arrays& a) { return fma(a[0], a[1], a[0]) - a[0] * a[1]; }, {x, y}, what);
    }
}

TEST(hazard, hazard_16_signs_of_zero) {
  for (Dtype t : kFloats) {
    const double inf = INFINITY;
    const struct {
      const char* text;
      Array (*f)(const Array& x);  // of minus a half
      double expected;
    } cases[] = {
        {"1 / (ceil + 0)", [](const Array& x) { return 1.0 / (ceil(x) + 0); }, inf},
        {"1 / (ceil + 0.0)", [](const Array& x) { return 1.0 / (ceil(x) + 0.0); }, inf},
        {"1 / (0 + ceil)", [](const Array& x) { return 1.0 / (0 + ceil(x)); }, inf},
        {"1 / (ceil + -0.0)", [](const Array& x) { return 1.0 / (ceil(x) + -0.0); }, -inf},
        {"1 / (ceil - 0)", [](const Array& x) { return 1.0 / (ceil(x) - 0); }, -inf},
        {"1 / (0 - ceil)", [](const Array& x) { return 1.0 / (0 - ceil(x)); }, inf},
        {"1 / (-0.0 - (-ceil))", [](const Array& x) { return 1.0 / (-0.0 - -ceil(x)); }, -inf},
        {"1 / ceil", [](const Array& x) { return 1.0 / ceil(x); }, -inf},
        {"1 / trunc", [](const Array& x) { return 1.0 / trunc(x); }, -inf},
        {"1 / round", [](const Array& x) { return 1.0 / round(x); }, -inf},
        {"1 / (ceil * 1)", [](const Array& x) { return 1.0 / (ceil(x) * 1); }, -inf},
        {"1 / (ceil / 1)", [](const Array& x) { return 1.0 / (ceil(x) / 1); }, -inf},
        {"1 / (x * 0)", [](const Array& x) { return 1.0 / (x * 0); }, -inf},
        {"1 / (ceil - ceil)", [](const Array& x) { return 1.0 / (ceil(x) - ceil(x)); }, inf},
        {"1 / -abs(ceil)", [](const Array& x) { return 1.0 / -abs(ceil(x)); }, -inf},
        {"1 / abs(ceil)", [](const Array& x) { return 1.0 / abs(ceil(x)); }, inf},
        {"1 / -(-ceil)", [](const Array& x) { return 1.0 / -(-ceil(x)); }, -inf},
        {"1 / sqrt(ceil)", [](const Array& x) { return 1.0 / sqrt(ceil(x)); }, -inf},
        {"1 / sin(ceil)", [](const Array& x) { return 1.0 / sin(ceil(x)); }, -inf},
        {"1 / maximum(ceil, 0)", [](const Array& x) { return 1.0 / maximum(ceil(x), 0.0); }, inf},
        {"1 / maximum(0, ceil)", [](const Array& x) { return 1.0 / maximum(0.0, ceil(x)); }, inf},
        {"1 / minimum(0, ceil)", [](const Array& x) { return 1.0 / minimum(0.0, ceil(x)); }, -inf},
        {"1 / minimum(ceil, 0)", [](const Array& x) { return 1.0 / minimum(ceil(x), 0.0); }, -inf},
        {"copysign(1, ceil)", [](const Array& x) { return copysign(1.0, ceil(x)); }, -1},
        {"arctan2(0, ceil) * 0 + 4 of the sign", [](const Array& x) { return floor(arctan2(0.0, ceil(x))) + 1; }, 4},
        {"arctan2(0, 0)", [](const Array& x) { return arctan2(0.0, abs(ceil(x))); }, 0},
        {"1 / real(astype)", [](const Array& x) { return 1.0 / real(ceil(x)); }, -inf},
        {"one of two zero constants", [](const Array& x) { return 1.0 / where(x < 0, -0.0, 0.0); }, -inf},
        {"the other", [](const Array& x) { return 1.0 / where(x > 0, -0.0, 0.0); }, inf},
        {"1 / sum of nothing but -0", [](const Array& x) { return 1.0 / max(ceil(x), {}, true); }, -inf},
    };
    for (std::size_t n : {1, 17})
      for (const auto& c : cases) {
        const Array r = both([f = c.f](const Arrays& a) { return f(a[0]); }, {full({n}, -0.5, t)}, str(c.text, " ", t));
        expect_values(r, repeat({c.expected}, static_cast<std::size_t>(static_cast<std::int64_t>(r.size()))), str(c.text, " ", t));
      }
    for (int n : {1, 17, 8193}) {
      const Array zeros = full({n}, -0.0, t);
      expect_values(both([](const Arrays& a) { return Arrays{max(a[0])}[0]; }, {zeros}), {-0.0}, str("max ", t, " ", n));
      expect_values(both([](const Arrays& a) { return Arrays{min(a[0])}[0]; }, {zeros}), {-0.0}, str("min ", t, " ", n));
    }
  }
}

TEST(hazard, hazard_31_floor_division_and_remainder) {
  for (Dtype t : {float32, float64}) {
    const Array a = make({1, 0.5, 6, -1, 7, -7, 7, -7, 1e10, 0.3}, t), b = make({0.1, 0.1, 0.2, 0.1, 2, 2, -2, -2, 1e-20, -0.1}, t);
    for (int n = 1; n <= 10; ++n) {
      const Arrays in{slice(a, {0}, {n}), slice(b, {0}, {n})};
      const Arrays r = both(
          [](const Arrays& v) {
            const std::vector<Array> d = divmod(v[0], v[1]);
            return Arrays{floor_divide(v[0], v[1]), v[0] % v[1], d[0], d[1], floor_divide(v[0] * 1.0, v[1]) + 0.0};
          },
          in, str(t, " length ", n));
      EXPECT_EQ(difference(r[0], r[2]), "");
      EXPECT_EQ(difference(r[1], r[3]), "");
      const std::vector<double> x = in[0].to_vector<double>(), y = in[1].to_vector<double>(), q = r[0].to_vector<double>(),
                                m = r[1].to_vector<double>();
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::string what = str(t, ": ", x[i], " by ", y[i], " gives ", q[i], " and ", m[i]);
        EXPECT_TRUE(y[i] > 0 ? m[i] >= 0 && m[i] < y[i] : m[i] <= 0 && m[i] > y[i]) << what;
        if (std::fabs(x[i] / y[i]) > 1e6) continue;
        double exact = std::fmod(x[i], y[i]);
        if (exact != 0 && (exact < 0) != (y[i] < 0)) exact += y[i];
        EXPECT_NEAR(m[i], exact, std::fabs(y[i]) * (t == float32 ? 1e-6 : 1e-15)) << what;
        EXPECT_EQ(q[i], std::round((x[i] - exact) / y[i])) << what;
      }
    }
  }
  for (Dtype t : kFloats) {
    const Arrays in{make({1, -1, INFINITY, 1, 0, NAN, 5, -5}, t), make({0, 0, 2, INFINITY, 3, 1, -INFINITY, INFINITY}, t)};
    both([](const Arrays& v) { return Arrays{floor_divide(v[0], v[1]), v[0] % v[1]}; }, in, str("special ", t));
  }
}

}  // namespace
}  // namespace sinter::tests
