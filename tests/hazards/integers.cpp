// Integers and bool: wrapping, division by zero, shifts, casts from floats.
#include <cfenv>

#include "hazards/hazards.h"

namespace sinter::tests {
namespace {

std::uint64_t low_bits(std::uint64_t v, Dtype t) { return v & ~std::uint64_t{0} >> (64 - bits_of(t)); }
// The low bits, sign extended for a signed dtype.
std::uint64_t extended(std::uint64_t v, Dtype t) {
  const int unused = 64 - bits_of(t);
  return is_signed(t) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(v << unused) >> unused) : low_bits(v, t);
}
// All elements of an integer array.
void expect_all(const Array& a, std::uint64_t expected, const std::string& what) {
  for (std::uint64_t w : graph::to_words(read(a))) ASSERT_EQ(w, low_bits(expected, a.dtype())) << what;
}

TEST(hazard, hazard_1_negated_unsigned_in_float_arithmetic) {
  for (Dtype t : kUnsigned)
    for (Dtype f : kFloats)
      for (std::size_t n : {1, 3, 8, 17}) {
        const std::string what = str(t, " ", f, " length ", n);
        const Array c = full({n}, 7, t), x = full({n}, 1.5, f);
        for (const Array& r :
             both([](const Arrays& a) { return Arrays{-a[0] + a[1], a[1] * -a[0], a[1] - (0 - a[0]), ~a[0] / a[1]}; }, {c, x}, what))
          EXPECT_GT((r * r).to_vector<double>()[0], 0) << what;
        const Array sum = both([](const Arrays& a) { return -a[0] + a[1]; }, {c, x}, what);
        // Exact in these dtypes.
        if ((f == float32 && size_of(t) <= 2) || (f == float64 && size_of(t) <= 4))
          expect_values(sum, repeat({static_cast<double>(low_bits(~std::uint64_t{6}, t)) + 1.5}, n), what);
      }
}

TEST(hazard, hazard_2_integer_powers_wrap) {
  for (Dtype t : kIntegers)
    for (std::int64_t v : {2, 3, 4, 5, 7, -3, 100, 255}) {
      const std::string what = str(t, " ", v);
      std::uint64_t fifth = 1;
      const std::uint64_t stored = extended(static_cast<std::uint64_t>(v), t);
      for (int i = 0; i < 5; ++i) fifth *= stored;
      const Array x = full({5}, v, t);
      const Arrays r = both(
          [](const Arrays& a) {
            const Array product = a[0] * a[0] * a[0] * a[0] * a[0], raised = power(a[0], 5);
            return Arrays{product, raised, cos(astype(product, float32)), cos(astype(raised, float32))};
          },
          {x}, what);
      expect_all(r[0], fifth, what);
      expect_all(r[1], fifth, what);
      EXPECT_EQ(difference(r[2], r[3]), "") << what;
    }
  EXPECT_EQ(cos(astype(power(Array(4, uint8), 5), float32)).item<float>(), 1);
}

TEST(hazard, hazard_3_integer_division_without_traps) {
  for (Dtype t : kIntegers) {
    for (std::size_t n = 1; n <= 17; ++n) {
      Array x = full({n}, 7, t), zero = zeros({n}, t);
      const std::string what = str(t, " length ", n);
      const Arrays r = both(
          [](const Arrays& v) {
            const Array& x = v[0];
            const Array& zero = v[1];
            const std::vector<Array> d = divmod(x, zero);
            return Arrays{floor_divide(x, zero), x % zero, d[0] + 1, d[1] + 1, where(zero != 0, floor_divide(x, zero), x),
                          floor_divide(x, 0),    x % 0};
          },
          {x, zero}, what);
      for (std::size_t i : {0u, 1u, 5u, 6u}) expect_all(r[i], 0, what);
      for (std::size_t i : {2u, 3u}) expect_all(r[i], 1, what);
      expect_all(r[4], 7, what);
      if (!is_signed(t)) continue;
      Array least = left_shift(full({n}, 1, t), bits_of(t) - 1);
      const Arrays s =
          both([](const Arrays& v) { return Arrays{floor_divide(v[0], v[1]), v[0] % v[1], floor_divide(v[0], -1), v[0] % -1}; },
               {least, full({n}, -1, t)}, what);
      for (std::size_t i : {0u, 2u}) expect_all(s[i], std::uint64_t{1} << (bits_of(t) - 1), what);
      for (std::size_t i : {1u, 3u}) expect_all(s[i], 0, what);
    }
  }
}

TEST(hazard, hazard_4_tails_of_vectors) {
  expect_values(both([](const Arrays& a) { return a[0] % a[1]; }, {reshape(arange(6, int64), {2, 3}), full({3}, 16, int64)}),
                {0, 1, 2, 3, 4, 5}, "the case");
  for (Dtype t : kIntegers)
    for (std::size_t n = 1; n <= 17; ++n) {
      std::vector<double> expected;
      for (std::size_t i = 0; i < 2 * n; ++i) expected.push_back(static_cast<double>(i % 16));
      const Array x = reshape(arange(2 * static_cast<int>(n), int64), {2, n});
      expect_values(both([](const Arrays& a) { return a[0] % a[1]; }, {astype(x, t), full({n}, 16, t)}), expected, str(t, " length ", n));
    }
}

// Lanes beyond the end raise nothing that the lanes of the data do not: constant data, so that every length raises the same or less.
TEST(hazard, hazard_4_tails_raise_no_floating_exceptions) {
  constexpr int kFlags = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW;
  struct Case {
    const char* name;
    Array (*f)(const Array&);
  };
  const Case cases[] = {{"divide", [](const Array& x) { return 1.0 / x; }},
                        {"divide", [](const Array& x) { return x / (x + x); }},
                        {"reciprocal", [](const Array& x) { return reciprocal(x); }},
                        {"rsqrt", [](const Array& x) { return rsqrt(x); }},
                        {"sqrt", [](const Array& x) { return sqrt(x - 1.0); }},
                        {"log", [](const Array& x) { return log(x); }},
                        {"remainder", [](const Array& x) { return x % (x * 0.5); }},
                        {"floor_divide", [](const Array& x) { return floor_divide(x, x * 0.5); }},
                        {"arctan2", [](const Array& x) { return arctan2(x, x); }},
                        {"power", [](const Array& x) { return power(x, 1.0 - x); }},
                        {"mean", [](const Array& x) { return mean(x / x); }},
                        {"logsumexp", [](const Array& x) { return logsumexp(1.0 / x); }}};
  for (const Case& c : cases)
    for (Dtype t : {float32, float64}) {
      const auto flags = [&](int n) {
        auto f = compile([c](const Array& x) { return c.f(x); });
        const Array x = full({n}, 1.75, t);
        x.eval();
        f(x);
        std::feclearexcept(FE_ALL_EXCEPT);
        f(x);
        return std::fetestexcept(kFlags);
      };
      const int whole = flags(64);
      for (int n = 1; n <= 33; ++n) EXPECT_EQ(flags(n) & ~whole, 0) << c.name << " " << t << " length " << n;
    }
}

TEST(hazard, hazard_5_shifts_by_the_width_and_more) {
  for (Dtype t : kIntegers) {
    const int w = bits_of(t);
    for (std::int64_t v : {1000, -8, 1, -1, 77})
      for (int amount : {0, 1, w - 1, w, w + 1, 100, -1, -w}) {
        const std::uint64_t stored = extended(static_cast<std::uint64_t>(v), t);
        const bool beyond = amount < 0 || amount >= w;  // a negative unsigned amount is a huge one
        const bool negative = is_signed(t) && static_cast<std::int64_t>(stored) < 0;
        const std::uint64_t left = beyond ? 0 : stored << amount;
        const std::uint64_t right = beyond     ? (negative ? ~std::uint64_t{0} : 0)
                                    : negative ? static_cast<std::uint64_t>(static_cast<std::int64_t>(stored) >> amount)
                                               : stored >> amount;
        const std::string what = str(t, " ", v, " by ", amount);
        const Arrays r = both(
            [amount](const Arrays& a) {
              return Arrays{left_shift(a[0], a[1]), a[0] << amount,     right_shift(a[0], a[1]),
                            a[0] >> amount,         (a[0] >> a[1]) * 3, astype(a[0] >> a[1], float32) * 2.0};
            },
            {full({9}, v, t), full({9}, amount, t)}, what);
        for (std::size_t i : {0u, 1u}) expect_all(r[i], left, what);
        for (std::size_t i : {2u, 3u}) expect_all(r[i], right, what);
        expect_all(r[4], 3 * right, what);
      }
  }
}

TEST(hazard, hazard_17_float_to_integer_casts_saturate) {
  const std::vector<double> v{NAN, INFINITY, -INFINITY, 3e9, -3e9, -1.5, 256.7, 300, 1e30, -0.7, 127.9, -128.9};
  for (Dtype from : kFloats)
    for (Dtype to : kIntegers) {
      const double low = is_signed(to) ? -std::ldexp(1.0, bits_of(to) - 1) : 0, high = std::ldexp(1.0, bits_of(to) - is_signed(to));
      for (std::size_t n = 1; n <= 17; ++n) {
        const Array x = make(repeat(v, n), from);
        const std::vector<double> stored = x.to_vector<double>();
        const Array r = both([to](const Arrays& a) { return astype(a[0], to); }, {x}, str(from, " to ", to, " length ", n));
        const Array fused =
            both([to](const Arrays& a) { return astype(a[0] * 1.0, to) + 0; }, {x}, str(from, " to ", to, " fused, length ", n));
        EXPECT_EQ(difference(r, fused), "");
        std::vector<std::uint64_t> words = graph::to_words(read(r));
        for (std::size_t i = 0; i < n; ++i) {
          const double d = stored[i];
          std::uint64_t expected = 0;
          if (d >= high)
            expected = (is_signed(to) ? ~std::uint64_t{0} >> 1 >> (64 - bits_of(to)) : ~std::uint64_t{0} >> (64 - bits_of(to)));
          else if (d <= low)
            expected = static_cast<std::uint64_t>(static_cast<std::int64_t>(low)) & ~std::uint64_t{0} >> (64 - bits_of(to));
          else if (!std::isnan(d))
            expected = (d < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(d)) : static_cast<std::uint64_t>(d)) &
                       ~std::uint64_t{0} >> (64 - bits_of(to));
          EXPECT_EQ(words[i], expected) << d << " of " << from << " to " << to << " at " << i << " of " << n;
        }
      }
    }
}

TEST(hazard, hazard_32_bool_is_true_or_false) {
  for (std::size_t n : {1, 5, 16, 33}) {
    const std::string what = str("length ", n);
    // true is any byte but 0.
    auto* bytes = new unsigned char[n];
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(i % 3 == 0 ? 2 : i % 3 == 1 ? 0 : 255);
    const Array x(reinterpret_cast<bool*>(bytes), Shape{n}, [](bool* p) { delete[] reinterpret_cast<unsigned char*>(p); });
    const std::vector<double> truth = repeat({1, 0, 1}, n), zero = repeat({0}, n);
    std::vector<double> inverse;
    double count = 0;
    for (double t : truth) inverse.push_back(1 - t), count += t;
    const Arrays r = both(
        [](const Arrays& a) {
          const Array& x = a[0];
          return Arrays{x + x,
                        x * x,
                        astype(x, int32),
                        astype(x ^ x, int32),
                        !x,
                        ~x,
                        x & x,
                        x | x,
                        where(x, 1.0, 0.0),
                        astype(x == x, int32),
                        x,
                        maximum(x, x),
                        astype(x + x, uint8),
                        astype(logical_xor(x, false), float32)};
        },
        {x}, what);
    EXPECT_EQ(r[0].dtype(), bool_);
    for (std::size_t i : {0u, 1u, 2u, 6u, 7u, 8u, 10u, 11u, 12u, 13u})
      expect_values(astype(r[i], float64), truth, str(what, " result ", i));
    for (std::size_t i : {4u, 5u}) expect_values(astype(r[i], float64), inverse, str(what, " result ", i));
    expect_values(r[3], zero, what);
    expect_values(r[9], repeat({1}, n), what);
    const Arrays s = both(
        [](const Arrays& a) {
          return Arrays{sum(a[0]), sum(a[0] == a[0]), sum(a[0] > false), any(a[0]), all(!a[0]), argmax(a[0]), max(a[0]), prod(a[0])};
        },
        {x}, what);
    for (std::size_t i : {0u, 2u}) expect_values(s[i], {count}, str(what, " reduction ", i));
    expect_values(s[1], {static_cast<double>(n)}, what);
    expect_values(astype(s[3], int32), {1}, what);
    expect_values(astype(s[4], int32), {0}, what);
    expect_values(s[5], {0}, what);
    expect_values(astype(s[6], int32), {1}, what);
    // As bytes in memory: only 0 and 1.
    for (const Array& a : r) {
      if (a.dtype() != bool_ || a.get() == x.get()) continue;
      for (std::byte b : read(a).bytes) EXPECT_LE(static_cast<int>(b), 1) << what;
    }
  }
}

}  // namespace
}  // namespace sinter::tests
