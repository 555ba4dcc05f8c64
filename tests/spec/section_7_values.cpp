// SPEC 7.1 to 7.6: what values are, compiled and not. Every operation, dtype, layout and length: tests/table; here each line of the
// contract by itself, against results that are written out or computed by C++.
#include <omp.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "sinter/nn.h"
#include "spec/helpers.h"

namespace spec {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Dtype kFloats[] = {float16, bfloat16, float32, float64};
constexpr Dtype kIntegers[] = {Dtype::uint8, Dtype::uint16, Dtype::uint32, Dtype::uint64, Dtype::int8, Dtype::int16, int32, int64};

using Function = Array (*)(const Array&);

// The regular call, and the compiled ones, which must have its bits.
Array both(const Function f, const Array& x, const char* what) {
  const Array regular = f(x);
  EXPECT_TRUE(same(compile(f)(x), regular)) << what << " of " << x.dtype() << x.shape();
  EXPECT_TRUE(same(compile(f, true)(x), regular)) << what << " of " << x.dtype() << x.shape() << ", shapeless";
  return regular;
}

Array numbers(const Shape& shape, Dtype t) {
  const Array i = arange(shape.product(), int32);
  return astype(reshape(is_integer(t) || t == Dtype::bool_ ? i * 37 % 101 : sin(i) * 3, shape), t);
}

TEST(spec_7_1, bits_for_every_dtype_layout_and_length_at_any_number_of_threads) {
  const std::pair<const char*, Function> functions[] = {
      {"elementwise", [](const Array& x) { return x * x + x; }},
      {"column", [](const Array& x) { return sum(x * 3, 0) - max(x, 0); }},
      {"rows", [](const Array& x) { return softmax(astype(x, float32), -1) * x; }},
  };
  const std::pair<const char*, Function> layouts[] = {
      {"transposed", [](const Array& x) { return transpose(x); }},
      {"every second, backward", [](const Array& x) { return flip(slice(x, {0, 1}, x.shape(), {1, 2})); }},
      {"repeated", [](const Array& x) { return broadcast_to(slice(x, {0, 0}, {1, x.shape(1)}), x.shape()); }},
  };
  const Dtype all[] = {Dtype::bool_, Dtype::uint8, int64, float16, bfloat16, float32, float64};
  for (const auto& [name, f] : functions)
    for (const auto& [layout, view] : layouts)
      for (Dtype t : all)
        for (int n : {7, 33}) {
          const Array x = view(numbers({n, n + 3}, t));
          x.eval();
          both(f, x, name);
        }
  const Array large = numbers({500, 900}, float32);
  const int before = omp_get_max_threads();
  for (const auto& [name, f] : functions) {
    Array first;
    for (int threads : {1, 2, 4}) {
      omp_set_num_threads(threads);
      const Array y = both(f, large, name);
      if (threads == 1) first = y;
      EXPECT_TRUE(same(y, first)) << name << " on " << threads;
    }
  }
  omp_set_num_threads(before);
}

TEST(spec_7_1, nothing_is_contracted) {
  const Function f = [](const Array& x) { return x * x - square(x) + (x * x + x) - (square(x) + x); };
  for (Dtype t : kFloats) EXPECT_EQ(both(f, astype(linspace(0.1, 3, 100), t), "x x - x^2").to_vector<float>(), std::vector<float>(100, 0));
  const float a = 1 + 0x1p-12f;
  auto g = [](const Array& x) { return fma(x, x, -(1 + 0x1p-11f)); };
  EXPECT_EQ(g(Array(a)).item<float>(), 0x1p-24f) << "fma rounds once";
  EXPECT_EQ(compile(g)(Array(a)).item<float>(), 0x1p-24f);
}

TEST(spec_7_2, each_value_has_its_own_dtype) {
  for (Dtype t : kIntegers) {
    const int bits = 8 * size_of(t);
    const Array largest = astype(Array(bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1), t);  // -1 where signed
    EXPECT_TRUE(same(both([](const Array& x) { return x + 1; }, largest, "wraps"), astype(Array(0), t))) << t;
    EXPECT_TRUE(
        same(both([](const Array& x) { return astype(astype(x, Dtype::uint8), int64); }, largest, "low bits"), Array(std::int64_t{255})));
    EXPECT_TRUE(same(both([](const Array& x) { return astype(x * x * x, float32); }, largest, "product"),
                     Array(is_signed(t) ? -1.0f : std::ldexp(1.0f, bits) - (bits <= 16 ? 1 : 0))))
        << t;
  }
  // 2049 is no float16 and 257 no bfloat16: each operation rounds to even.
  EXPECT_EQ(both([](const Array& x) { return (x + 1) + 1; }, astype(Array(2048), float16), "float16").item<float>(), 2048);
  EXPECT_EQ(both([](const Array& x) { return (x + 1) + 1; }, astype(Array(256), bfloat16), "bfloat16").item<float>(), 256);
  EXPECT_EQ(both([](const Array& x) { return astype(astype(x, float16), float32); }, Array(2049.f), "a cast").item<float>(), 2048);
  EXPECT_EQ(both([](const Array& x) { return astype(astype(x, int32), float32); }, Array(2.75f), "a cast").item<float>(), 2);
  EXPECT_EQ(both([](const Array& x) { return astype(astype(x, Dtype::bool_), float32); }, Array(2.75f), "a cast").item<float>(), 1);
}

TEST(spec_7_2, addmm_and_linear_round_once) {
  for (Dtype t : {float16, bfloat16})
    for (int rows : {1, 5, 33}) {
      const Array x = numbers({rows, 40}, t), w = numbers({40, 7}, t), b = numbers({7}, t);
      const Array once = astype(matmul(astype(x, float32), astype(w, float32)) + astype(b, float32), t);
      const auto f = [](const Array& b, const Array& x, const Array& w) { return addmm(b, x, w); };
      EXPECT_TRUE(same(f(b, x, w), once)) << t << rows;
      EXPECT_TRUE(same(compile(f)(b, x, w), f(b, x, w)));
      nn::Linear linear(40, 7);
      linear.weight = transpose(w), linear.bias = b;
      EXPECT_TRUE(same(linear(x), f(b, x, w))) << t << rows;
    }
  // 2048 + 1 + 1: in float16 the sum rounds to 2048 at each step, in float32 it is 2050.
  const Array x = astype(Array({{2048.f, 1.f}}), float16), w = astype(Array({{1.f}, {1.f}}), float16), b = astype(Array({1.f}), float16);
  EXPECT_EQ(addmm(b, x, w).item<float>(), 2050);
}

// Of what is only moved or chosen, NaNs too: those that signal are not made quiet.
TEST(spec_7_2, moves_keep_all_bits) {
  const std::pair<const char*, Function> moves[] = {
      {"transpose", [](const Array& x) { return transpose(reshape(x, {4, 8})); }},
      {"flip", [](const Array& x) { return flip(x); }},
      {"slice", [](const Array& x) { return slice(x, {1}, {32}, {3}); }},
      {"broadcast_to", [](const Array& x) { return broadcast_to(x, {3, 32}); }},
      {"pad", [](const Array& x) { return pad(reshape(x, {4, 8}), Dim(3), Array(x.dtype() == float32 ? 1.5f : 2.5f)); }},
      {"concatenate", [](const Array& x) { return concatenate({x, flip(x)}); }},
      {"stack", [](const Array& x) { return stack({x, flip(x)}, 1); }},
      {"take", [](const Array& x) { return take(x, flip(arange(32))); }},
      {"take of pad", [](const Array& x) { return take(pad(x, Dim(1)), arange(34)); }},
      {"take_along_axis", [](const Array& x) { return take_along_axis(x, flip(arange(32)), 0); }},
      {"put_along_axis", [](const Array& x) { return put_along_axis(x, arange(3), slice(x, {7}, {10}), 0); }},
      {"where", [](const Array& x) { return where(arange(32) > 3, x, flip(x)); }},
      {"where, against what is computed", [](const Array& x) { return where(arange(32) > 3, x, flip(x) * 0 + 1.5f); }},
      {"where, the other way", [](const Array& x) { return where(arange(32) > 20, flip(x) * 0 + 1.5f, x); }},
      {"concatenate, with what is computed", [](const Array& x) { return concatenate({flip(x) * 0 + 1.5f, x}); }},
      {"a chosen concatenate", [](const Array& x) { return where(arange(64) > 5, concatenate({x, flip(x)}), concatenate({flip(x), x})); }},
      {"full", [](const Array& x) { return full({8}, take(x, 3)); }},
      {"split", [](const Array& x) { return concatenate({split(x, 4)[2], split(x, 4)[0]}); }},
      {"sort", [](const Array& x) { return sort(x); }},
      {"cond",
       [](const Array& x) {
         return cond(sum(arange(2)) > 0, [](const Array& v) { return flip(v); }, [](const Array& v) { return v; }, x);
       }},
      {"scan", [](const Array& x) { return scan([](const Array& c, const Array& v) { return std::pair(c, v); }, Array(0.0f), x).second; }},
  };
  const auto bits = [](const Array& x) {  // each element's
    std::vector<std::uint64_t> words(static_cast<std::size_t>(static_cast<std::int64_t>(x.size())));
    const std::size_t size = static_cast<std::size_t>(size_of(x.dtype()));
    const auto* from = reinterpret_cast<const char*>(x.dtype() == float16    ? static_cast<const void*>(x.data<Float16>())
                                                     : x.dtype() == bfloat16 ? static_cast<const void*>(x.data<BFloat16>())
                                                     : x.dtype() == float32  ? static_cast<const void*>(x.data<float>())
                                                                             : static_cast<const void*>(x.data<double>()));
    for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], from + i * size, size);
    return words;
  };
  const auto signaling = [](Dtype t) {  // 32 of them, of which the first is positive
    const std::uint64_t infinity = t == float16 ? 0x7c00 : t == bfloat16 ? 0x7f80 : t == float32 ? 0x7f800000 : 0x7ff0000000000000;
    const auto make = [&]<class T>(T) {
      std::vector<T> v(32);
      for (std::uint64_t i = 0; i < 32; ++i) {
        const std::uint64_t word = (infinity + 1 + i) | (i % 3 == 1 ? std::uint64_t{1} << (8 * sizeof(T) - 1) : 0);
        std::memcpy(static_cast<void*>(&v[i]), &word, sizeof(T));
      }
      return Array(v);
    };
    return t == float16 ? make(Float16()) : t == bfloat16 ? make(BFloat16()) : t == float32 ? make(float()) : make(double());
  };
  for (Dtype t : kFloats) {
    const Array x = signaling(t);
    const std::vector<std::uint64_t> known = bits(x);
    // Where each element of the result comes from: the same move of numbers.
    const Array places = astype(arange(32), t);
    for (const auto& [name, move] : moves) {
      if (std::string(name) == "sort" && t == bfloat16) continue;  // places are then sorted, NaNs stay
      const std::vector<double> from = move(places).to_vector<double>();
      for (const Array& y : {move(x), compile(move)(x), compile(move, true)(x)}) {
        const std::vector<std::uint64_t> got = bits(y);
        ASSERT_EQ(got.size(), from.size());
        std::size_t moved = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
          const bool fill = from[i] == 1.5 || from[i] == 2.5 || (from[i] == 0 && got[i] == 0);
          moved += !fill;
          if (!fill) {
            EXPECT_EQ(got[i], known[static_cast<std::size_t>(from[i])]) << t << ' ' << name << ' ' << i;
          }
        }
        EXPECT_GE(moved, 8u) << name;
      }
    }
  }
}

TEST(spec_7_3, no_undefined_behaviour_on_integers) {
  for (Dtype t : kIntegers) {
    const int bits = 8 * size_of(t);
    const bool is_negative = is_signed(t);
    const Array least = astype(left_shift(Array(std::uint64_t{1}), bits - 1), t);  // the least where signed
    const auto check = [&](const char* what, Array (*f)(const Array&, const Array&), const Array& x, const Array& y,
                           const Array& expected) {
      const Array wanted = astype(expected, t);
      // Lanes beside it hold what must not trap.
      const Array xs = concatenate({broadcast_to(x, {17}), ones({5}, t)}), ys = concatenate({broadcast_to(y, {17}), ones({5}, t)});
      for (const Array& got :
           {f(x, y), compile(f)(x, y), slice(f(xs, ys), {3}, {4}).reshape({}), slice(compile(f)(xs, ys), {16}, {17}).reshape({})})
        EXPECT_TRUE(same(got, wanted)) << what << ' ' << t << ": " << got;
    };
    const Array zero = astype(Array(0), t), one = astype(Array(1), t), seven = astype(Array(7), t), minus = astype(Array(-1), t);
    check("7 // 0", [](const Array& x, const Array& y) { return floor_divide(x, y); }, seven, zero, zero);
    check("7 % 0", [](const Array& x, const Array& y) { return x % y; }, seven, zero, zero);
    check("least + least", [](const Array& x, const Array& y) { return x + y; }, least, least, zero);
    check("negative", [](const Array& x, const Array&) { return -x; }, least, one, least);
    check("left shift by the width", [](const Array& x, const Array& y) { return left_shift(x, y); }, seven, astype(Array(bits), t), zero);
    check(
        "right shift by the width", [](const Array& x, const Array& y) { return right_shift(x, y); }, seven, astype(Array(bits), t), zero);
    if (!is_negative) continue;
    check("least // -1", [](const Array& x, const Array& y) { return floor_divide(x, y); }, least, minus, least);
    check("least % -1", [](const Array& x, const Array& y) { return x % y; }, least, minus, zero);
    check("abs(least)", [](const Array& x, const Array&) { return abs(x); }, least, one, least);
    check(
        "-8 >> width", [](const Array& x, const Array& y) { return right_shift(x, y); }, astype(Array(-8), t), astype(Array(bits), t),
        minus);
    check("-8 >> -1", [](const Array& x, const Array& y) { return right_shift(x, y); }, astype(Array(-8), t), minus, minus);
    check("7 << -1", [](const Array& x, const Array& y) { return left_shift(x, y); }, seven, minus, zero);
    check(
        "-7 // 2", [](const Array& x, const Array& y) { return floor_divide(x, y); }, astype(Array(-7), t), astype(Array(2), t),
        astype(Array(-4), t));
    check("-7 % 2", [](const Array& x, const Array& y) { return x % y; }, astype(Array(-7), t), astype(Array(2), t), one);
  }
  EXPECT_EQ((Array(7) / Array(2)).item<double>(), 3.5) << "/ is true division";
}

TEST(spec_7_3, casts_saturate_and_denormals_stay) {
  for (Dtype from : kFloats)
    for (Dtype to : kIntegers) {
      const int digits = 8 * size_of(to) - is_signed(to);
      const Array largest = digits == 64 ? Array(~std::uint64_t{0}) : astype(Array((std::uint64_t{1} << digits) - 1), to);
      const Array least = is_signed(to) ? astype(left_shift(Array(std::uint64_t{1}), digits), to) : astype(Array(0), to);
      const Array x = astype(Array({kNan, kInf, -kInf, -1.5f, 1.75f}), from);
      const Array expected = stack({astype(Array(0), to), largest, least, astype(Array(is_signed(to) ? -1 : 0), to), astype(Array(1), to)});
      const auto cast = [to](const Array& v) { return astype(v, to); };
      EXPECT_TRUE(same(cast(x), expected)) << from << " to " << to << cast(x);
      EXPECT_TRUE(same(compile(cast)(x), expected)) << from << " to " << to;
    }
  for (Dtype t : kFloats) {
    const double least = t == float16 ? 0x1p-24 : t == bfloat16 ? 0x1p-133 : t == float32 ? 0x1p-149 : 0x1p-1074;
    const Array x = astype(Array(std::vector<double>(19, least)), t);
    EXPECT_EQ(both([](const Array& v) { return v + v - v; }, x, "a denormal").to_vector<double>(), std::vector<double>(19, least)) << t;
    EXPECT_EQ(both([](const Array& v) { return power(v - v, 0); }, x, "0^0").to_vector<double>(), std::vector<double>(19, 1)) << t;
  }
  EXPECT_EQ(power(Array(0), Array(0)).item<int>(), 1);
}

// Which sign a NaN has is not promised, so no number may depend on it.
TEST(spec_7_1, copysign_takes_every_nan_as_positive) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype t : {float16, bfloat16, float32, float64}) {
    const Array signs = astype(Array(std::vector<double>{nan, -nan, -1, -0.0, 0}), t);
    EXPECT_EQ(both([](const Array& y) { return copysign(Array(-2.0).astype(y.dtype()), y); }, signs, "copysign").to_vector<double>(),
              (std::vector<double>{2, 2, -2, -2, 2}))
        << t;
  }
}

TEST(spec_7_6, any_layout_is_as_its_copy) {
  const std::pair<const char*, Function> functions[] = {
      {"elementwise", [](const Array& x) { return exp(-x) * x; }},
      {"sum of rows", [](const Array& x) { return sum(x * 2, -1); }},
      {"sum of columns", [](const Array& x) { return sum(x * 2, 0); }},
      {"mean", [](const Array& x) { return mean(x); }},
      {"softmax", [](const Array& x) { return softmax(x, 0); }},
      {"argmax", [](const Array& x) { return argmax(x, 1); }},
      {"cumsum", [](const Array& x) { return cumsum(x, 0); }},
      {"take", [](const Array& x) { return take(x, Array({1, 0, -1}), 1); }},
      {"sort", [](const Array& x) { return sort(x, 0); }},
      {"concatenate", [](const Array& x) { return concatenate({x, x}, 1); }},
      {"pad", [](const Array& x) { return pad(x, Dim(1)); }},
      {"reshape", [](const Array& x) { return reshape(x, {-1}) + 1; }},
      {"var", [](const Array& x) { return var(x, 0); }},
  };
  const Array base = sin(arange(40 * 60, float32));
  const std::pair<const char*, Array> views[] = {
      {"transposed", transpose(reshape(base, {40, 60}))},
      {"negative", flip(reshape(base, {60, 40}))},
      {"negative columns", slice(reshape(base, {40, 60}), {39, 59}, {-41, -61}, {-3, -2})},
      {"zero strides", broadcast_to(slice(base, {3}, {40}), {20, 37})},
      {"zero inner stride", broadcast_to(reshape(slice(base, {3}, {23}), {20, 1}), {20, 37})},
      {"offset", slice(reshape(base, {40, 60}), {3, 5}, {23, 42})},
      {"overlapping", as_strided(base, {20, 37}, {2, 3}, 7)},
      {"one row", as_strided(base, {1, 37}, {0, 2}, 1)},
      {"empty", slice(reshape(base, {40, 60}), {0, 3}, {40, 3})},
  };
  for (const auto& [where, view] : views) {
    view.eval();
    const Array copy(view.to_vector<float>(), view.shape());
    for (const auto& [name, f] : functions) {
      const auto call = [f = f](const Array& x) -> Array { return f(x); };
      if (view.size() == 0 && (std::string(name) == "take" || std::string(name) == "argmax")) continue;  // of an empty axis: IndexError
      const Array expected = call(copy);
      EXPECT_TRUE(same(call(view), expected)) << name << ' ' << where;
      EXPECT_TRUE(same(compile(f)(view), expected)) << name << ' ' << where << ", compiled";
    }
    if (view.size() == 0) continue;
    const Array w = sin(arange(view.shape(1) * 5, float32)).reshape({view.shape(1), 5});
    EXPECT_TRUE(allclose(matmul(view, w), matmul(copy, w), 1e-5, 1e-5).item<bool>()) << where;
  }
}

}  // namespace
}  // namespace spec
