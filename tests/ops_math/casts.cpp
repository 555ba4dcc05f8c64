// Conversions between all dtypes, and the rounding of the half dtypes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lanes_run.h"

namespace sinter::ops {
namespace {

// The values of a narrow floating format, found by searching its finite numbers: an independent reference for rounding.
double half_value(Dtype t, std::uint64_t word) {
  if (t == Dtype::bfloat16) return std::bit_cast<float>(static_cast<std::uint32_t>(word << 16));
  const int exponent = static_cast<int>(word >> 10 & 31), fraction = static_cast<int>(word & 1023);
  const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (word & 0x8000) != 0 ? -magnitude : magnitude;
}
bool half_nan(Dtype t, std::uint64_t word) { return std::isnan(half_value(t, word)); }
std::uint64_t nearest_half(Dtype t, long double v) {
  const std::uint64_t sign = std::signbit(v) ? 0x8000 : 0;
  const long double a = std::fabs(v);
  const std::uint64_t infinity = t == Dtype::bfloat16 ? 0x7f80 : 0x7c00;
  std::uint64_t low = 0, high = infinity;  // value(low) <= a; the encoding is in order of magnitude
  while (high - low > 1) (half_value(t, (low + high) / 2) <= a ? low : high) = (low + high) / 2;
  if (std::isinf(a)) return sign | infinity;
  const long double below = half_value(t, low);
  const long double above = high == infinity ? 2 * below - half_value(t, low - 1) : static_cast<long double>(half_value(t, high));
  return sign | (a - below < above - a || (a - below == above - a && low % 2 == 0) ? low : high);
}

Words cast_words(Dtype from, Dtype to, const Words& words) {
  Lanes machine(static_cast<int>(words.size()));
  const Wide out = cast(load_words(machine, from, words), to);
  EXPECT_EQ(out.dtype, to);
  const Val stored = store_form(out);
  Words result;
  for (std::size_t i = 0; i < words.size(); ++i) result.push_back(machine.bits(stored, static_cast<int>(i)));
  return result;
}

TEST(Halves, EveryFloat16IsItsValueAndComesBack) {
  Words all;
  for (std::uint64_t w = 0; w < 65536; ++w) all.push_back(w);
  for (const Dtype t : {Dtype::float16, Dtype::bfloat16}) {
    const Words wide = cast_words(t, Dtype::float32, all), back = cast_words(Dtype::float32, t, wide);
    for (std::uint64_t w = 0; w < 65536; ++w) {
      if (half_nan(t, w)) {
        ASSERT_TRUE(std::isnan(float_value(Dtype::float32, wide[w])) && half_nan(t, back[w])) << t << ' ' << w;
      } else {
        ASSERT_EQ(wide[w], float_bits(Dtype::float32, half_value(t, w))) << t << ' ' << w;
        ASSERT_EQ(back[w], w) << t;
      }
    }
  }
}

// Halfway points, their neighbours and random numbers, from every dtype that is wider.
TEST(Halves, RoundToNearestEvenOnce) {
  std::mt19937_64 random(5);
  for (const Dtype t : {Dtype::float16, Dtype::bfloat16}) {
    for (const Dtype from : {Dtype::float32, Dtype::float64}) {
      std::vector<double> values;
      for (std::uint64_t w = 0; w < (t == Dtype::float16 ? 0x7c00u : 0x7f7fu); w += 7) {
        const double middle = (half_value(t, w) + half_value(t, w + 1)) / 2;
        if (!std::isfinite(middle)) continue;
        for (const double v : {middle, middle * (1 + 0x1p-50), middle * (1 - 0x1p-50), middle * (1 + 0x1p-23), middle * (1 - 0x1p-23)}) {
          values.push_back(v);
          values.push_back(-v);
        }
      }
      for (const double v :
           {65519.999, 65520.0, 65535.0, 65536.0, 1e30, 3.4e38, 1e-8, 2.98e-8, 0.0, 1e-40, 1e300, 1e-300, double{INFINITY}})
        values.push_back(v);
      for (int i = 0; i < 2000; ++i) values.push_back(float_value(Dtype::float32, random() & 0xffffffff));
      Words words;
      for (const double v : values) words.push_back(float_bits(from, v));
      const Words got = cast_words(from, t, words);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const double v = float_value(from, words[i]);
        EXPECT_TRUE(std::isnan(v) ? half_nan(t, got[i]) : got[i] == nearest_half(t, v))
            << from << " -> " << t << " of " << v << " gave " << got[i];
      }
    }
    for (const Dtype from : {Dtype::int32, Dtype::uint32, Dtype::int64, Dtype::uint64}) {
      Words words;
      for (int bit = 0; bit < 8 * size_of(from); ++bit) {
        for (const std::uint64_t low : {0, 1, 3}) {
          for (const std::uint64_t top : {0x100, 0x101, 0x181, 0x183, 0x1ff}) words.push_back(((top << 54) >> (63 - bit)) + low);
        }
      }
      for (int i = 0; i < 500; ++i) words.push_back(random() >> (i % 64));
      const Words got = cast_words(from, t, words);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const int shift = 64 - 8 * size_of(from);
        const long double v = is_signed(from) ? static_cast<long double>(static_cast<std::int64_t>(words[i] << shift) >> shift)
                                              : static_cast<long double>(words[i] << shift >> shift);
        EXPECT_EQ(got[i], nearest_half(t, v)) << from << " -> " << t << " of " << v;
      }
    }
  }
}

TEST(Halves, NanPayloadsStayNan) {
  for (const std::uint64_t word : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0x7f80ffffu}) {
    for (const Dtype t : {Dtype::float16, Dtype::bfloat16}) EXPECT_TRUE(half_nan(t, cast_words(Dtype::float32, t, {word})[0])) << word;
  }
}

TEST(Halves, AnOperationRoundsOnce) {
  // 1 + 2^-11 + 2^-24-ish ties only if rounded at the operation; products of halves are exact in float32.
  for (const Dtype t : {Dtype::float16, Dtype::bfloat16}) {
    std::mt19937_64 random(9);
    Words x, y;
    for (int i = 0; i < 4000; ++i) x.push_back(random() & 0xffff), y.push_back(random() & 0xffff);
    const Words sum = run_bits(find_op("add"), t, {x, y}), product = run_bits(find_op("multiply"), t, {x, y});
    const Words larger = run_bits(find_op("maximum"), t, {x, y});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double a = half_value(t, x[i]), b = half_value(t, y[i]);
      if (std::isnan(a) || std::isnan(b)) {
        EXPECT_TRUE(half_nan(t, larger[i]));
        continue;
      }
      EXPECT_TRUE(std::isnan(a + b) || sum[i] == nearest_half(t, static_cast<float>(a + b))) << a << " + " << b;
      EXPECT_TRUE(std::isnan(a * b) || product[i] == nearest_half(t, static_cast<float>(a * b))) << a << " * " << b;
      EXPECT_EQ(larger[i], nearest_half(t, std::max(a, b)));
    }
  }
}

// HAZARDS 17: saturation, NaN to 0, for every integer dtype, from every floating dtype.
TEST(Casts, FloatToIntegerSaturates) {
  const double values[] = {NAN, INFINITY, -INFINITY, 3e9, -3e9,    -1.5, 256.7, 300,  -0.0,   0.9,     -0.9,        127,
                           128, -128,     -129,      255, 65535.9, 1e19, -1e19, 1e30, 9.3e18, -9.3e18, 2147483648.0};
  for (const Dtype from : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
    Words words;
    for (const double v : values) words.push_back(is_half(from) ? (std::isnan(v) ? 0x7fff : nearest_half(from, v)) : float_bits(from, v));
    for (int k = 0; k < kDtypeCount; ++k) {
      const auto to = static_cast<Dtype>(k);
      if (!is_integer(to)) continue;
      const Words got = cast_words(from, to, words);
      const int digits = 8 * size_of(to) - (is_signed(to) ? 1 : 0);
      const long double high = std::ldexp(1.0L, digits) - 1, low = is_signed(to) ? -std::ldexp(1.0L, digits) : 0;
      for (std::size_t i = 0; i < words.size(); ++i) {
        const double v = is_half(from) ? half_value(from, words[i]) : float_value(from, words[i]);
        const long double want = std::isnan(v) ? 0 : std::min(std::max(std::trunc(static_cast<long double>(v)), low), high);
        const std::uint64_t word =
            want < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(want)) : static_cast<std::uint64_t>(want);
        EXPECT_EQ(got[i], word << (64 - 8 * size_of(to)) >> (64 - 8 * size_of(to))) << from << " -> " << to << " of " << v;
      }
    }
  }
}

TEST(Casts, IntegersKeepLowBitsAndRoundToFloats) {
  const std::int64_t values[] = {0,
                                 1,
                                 -1,
                                 127,
                                 128,
                                 255,
                                 256,
                                 -128,
                                 -129,
                                 65535,
                                 16777217,
                                 33554435,
                                 2147483647,
                                 -2147483648LL,
                                 INT64_MAX,
                                 INT64_MIN,
                                 9007199254740993};
  for (int k = 0; k < kDtypeCount; ++k) {
    const auto from = static_cast<Dtype>(k);
    if (!is_integer(from)) continue;
    Words words;
    for (const std::int64_t v : values) words.push_back(static_cast<std::uint64_t>(v));
    const int shift = 64 - 8 * size_of(from);
    const auto wide = [&](std::uint64_t w) {
      return is_signed(from) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(w << shift) >> shift) : w << shift >> shift;
    };
    for (int j = 0; j < kDtypeCount; ++j) {
      const auto to = static_cast<Dtype>(j);
      if (is_half(to) || is_complex(to)) continue;
      const Words got = cast_words(from, to, words);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::uint64_t w = wide(words[i]);
        std::uint64_t want = w << (64 - 8 * size_of(to)) >> (64 - 8 * size_of(to));
        if (to == Dtype::bool_) want = w != 0;
        if (to == Dtype::float32)
          want = std::bit_cast<std::uint32_t>(is_signed(from) ? static_cast<float>(static_cast<std::int64_t>(w)) : static_cast<float>(w));
        if (to == Dtype::float64)
          want = std::bit_cast<std::uint64_t>(is_signed(from) ? static_cast<double>(static_cast<std::int64_t>(w)) : static_cast<double>(w));
        EXPECT_EQ(got[i], want) << from << " -> " << to << " of " << values[i];
      }
    }
  }
}

TEST(Casts, BoolAndComplex) {
  EXPECT_EQ(cast_words(Dtype::float32, Dtype::bool_, {float_bits(Dtype::float32, NAN), 0x80000000, 1}), (Words{1, 0, 1}));
  EXPECT_EQ(cast_words(Dtype::bool_, Dtype::float16, {0, 1, 2}), (Words{0, 0x3c00, 0x3c00}));
  Lanes machine(1);
  const std::uint64_t bits = float_bits(Dtype::float32, 2.5) | float_bits(Dtype::float32, -1) << 32;
  const Wide z = wide_constant(machine, Dtype::complex64, bits);
  EXPECT_EQ(machine.bits(cast(z, Dtype::int32).re, 0), 2u);
  EXPECT_EQ(machine.bits(cast(wide_constant(machine, Dtype::complex64, bits & ~0xffffffffull), Dtype::bool_).re, 0), 1u);
  const Wide back = cast(cast(z, Dtype::float16), Dtype::complex64);
  EXPECT_EQ(machine.bits(back.re, 0), float_bits(Dtype::float32, 2.5));
  EXPECT_EQ(machine.bits(back.im, 0), 0u);
}

}  // namespace
}  // namespace sinter::ops
