// Integer operations over the edge values of every integer dtype, against 128-bit arithmetic.
#include <gtest/gtest.h>

#include "lanes_run.h"

namespace sinter::ops {
namespace {

using Int = __int128;

Int value_of(Dtype t, std::uint64_t word) {
  const int shift = 64 - 8 * size_of(t);
  return is_signed(t) ? Int(static_cast<std::int64_t>(word << shift) >> shift) : Int(word << shift >> shift);
}
std::uint64_t word_of(Dtype t, Int v) {
  const int shift = 64 - 8 * size_of(t);
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(v)) << shift >> shift;
}
int width(Dtype t) { return 8 * size_of(t); }
Int floor_quotient(Int x, Int y) { return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0); }
bool shifted_out(Dtype t, Int y) { return y < 0 || y >= width(t); }

Int power(Dtype t, Int x, Int y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  Int result = 1, base = x;
  for (; y > 0; y /= 2) {
    if (y % 2 == 1)
      result = value_of(t, word_of(t, static_cast<Int>(static_cast<unsigned __int128>(result) * static_cast<unsigned __int128>(base))));
    base = value_of(t, word_of(t, static_cast<Int>(static_cast<unsigned __int128>(base) * static_cast<unsigned __int128>(base))));
  }
  return result;
}

struct Case {
  const char* function;
  Int (*reference)(Dtype t, Int x, Int y);
};
const Case kCases[] = {
    {"add", [](Dtype, Int x, Int y) { return x + y; }},
    {"subtract", [](Dtype, Int x, Int y) { return x - y; }},
    {"multiply",
     [](Dtype, Int x, Int y) { return static_cast<Int>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y)); }},
    {"floor_divide", [](Dtype, Int x, Int y) { return floor_quotient(x, y); }},
    {"remainder", [](Dtype, Int x, Int y) { return y == 0 ? 0 : x - y * floor_quotient(x, y); }},
    {"power", power},
    {"maximum", [](Dtype, Int x, Int y) { return std::max(x, y); }},
    {"minimum", [](Dtype, Int x, Int y) { return std::min(x, y); }},
    {"bitwise_and", [](Dtype, Int x, Int y) { return x & y; }},
    {"bitwise_or", [](Dtype, Int x, Int y) { return x | y; }},
    {"bitwise_xor", [](Dtype, Int x, Int y) { return x ^ y; }},
    {"left_shift", [](Dtype t, Int x, Int y) { return shifted_out(t, y) ? 0 : static_cast<Int>(static_cast<unsigned __int128>(x) << y); }},
    {"right_shift", [](Dtype t, Int x, Int y) { return shifted_out(t, y) ? (x < 0 ? -1 : 0) : x >> y; }},
    {"equal", [](Dtype, Int x, Int y) { return Int(x == y); }},
    {"not_equal", [](Dtype, Int x, Int y) { return Int(x != y); }},
    {"less", [](Dtype, Int x, Int y) { return Int(x < y); }},
    {"less_equal", [](Dtype, Int x, Int y) { return Int(x <= y); }},
    {"greater", [](Dtype, Int x, Int y) { return Int(x > y); }},
    {"greater_equal", [](Dtype, Int x, Int y) { return Int(x >= y); }},
    {"negative", [](Dtype, Int x, Int) { return -x; }},
    {"abs", [](Dtype, Int x, Int) { return x < 0 ? -x : x; }},
    {"sign", [](Dtype, Int x, Int) { return Int(x > 0) - Int(x < 0); }},
    {"square", [](Dtype, Int x, Int) { return static_cast<Int>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(x)); }},
    {"bitwise_invert", [](Dtype, Int x, Int) { return ~x; }},
    {"relu", [](Dtype, Int x, Int) { return std::max(x, Int(0)); }},
    {"relu6", [](Dtype, Int x, Int) { return std::min(std::max(x, Int(0)), Int(6)); }},
    {"floor", [](Dtype, Int x, Int) { return x; }},
    {"round", [](Dtype, Int x, Int) { return x; }},
    {"real", [](Dtype, Int x, Int) { return x; }},
    {"imag", [](Dtype, Int, Int) { return Int(0); }},
};

TEST(Integers, EdgeValuesOfEveryDtype) {
  for (int k = 0; k < kDtypeCount; ++k) {
    const auto t = static_cast<Dtype>(k);
    if (!is_integer(t)) continue;
    const Int low = is_signed(t) ? -(Int(1) << (width(t) - 1)) : 0, high = (Int(1) << (width(t) - (is_signed(t) ? 1 : 0))) - 1;
    std::vector<Int> values;
    for (const Int v : {low,    low + 1, Int(-13), Int(-3), Int(-2), Int(-1), Int(0),  Int(1),   Int(2),   Int(3),   Int(5),
                        Int(7), Int(8),  Int(16),  Int(31), Int(32), Int(63), Int(64), Int(100), high / 2, high - 1, high}) {
      if (v >= low && v <= high) values.push_back(v);
    }
    Words x, y;
    for (const Int a : values)
      for (const Int b : values) x.push_back(word_of(t, a)), y.push_back(word_of(t, b));
    for (const Case& c : kCases) {
      const Op op = find_op(c.function);
      const auto got = info(op).operands == 1 ? run_bits(op, t, {x}) : run_bits(op, t, {x, y});
      const Dtype result = result_dtype(op, t);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Int want = c.reference(t, value_of(t, x[i]), value_of(t, y[i]));
        EXPECT_EQ(got[i], result == Dtype::bool_ ? static_cast<std::uint64_t>(want) : word_of(t, want))
            << t << ' ' << c.function << '(' << static_cast<double>(value_of(t, x[i])) << ", " << static_cast<double>(value_of(t, y[i]))
            << ')';
      }
    }
  }
}

TEST(Integers, Bool) {
  const Words x = {0, 0, 1, 1}, y = {0, 1, 0, 1};
  const struct {
    const char* function;
    Words want;
  } cases[] = {
      {"add", {0, 1, 1, 1}},         {"multiply", {0, 0, 0, 1}},    {"maximum", {0, 1, 1, 1}},     {"minimum", {0, 0, 0, 1}},
      {"less", {0, 1, 0, 0}},        {"less_equal", {1, 1, 0, 1}},  {"greater", {0, 0, 1, 0}},     {"greater_equal", {1, 0, 1, 1}},
      {"equal", {1, 0, 0, 1}},       {"not_equal", {0, 1, 1, 0}},   {"logical_and", {0, 0, 0, 1}}, {"logical_or", {0, 1, 1, 1}},
      {"logical_xor", {0, 1, 1, 0}}, {"bitwise_xor", {0, 1, 1, 0}},
  };
  for (const auto& c : cases) EXPECT_EQ(run_bits(find_op(c.function), Dtype::bool_, {x, y}), c.want) << c.function;
  for (const char* same : {"abs", "sign", "square", "floor", "round", "conjugate", "real"})
    EXPECT_EQ(run_bits(find_op(same), Dtype::bool_, {y}), y) << same;
  EXPECT_EQ(run_bits(find_op("logical_not"), Dtype::bool_, {y}), (Words{1, 0, 1, 0}));
  EXPECT_EQ(run_bits(find_op("bitwise_invert"), Dtype::bool_, {y}), (Words{1, 0, 1, 0}));
  EXPECT_EQ(run_bits(find_op("bitwise_xor"), Dtype::bool_, {{2}, {1}}), Words{0}) << "a byte of 2 loads as true";
}

}  // namespace
}  // namespace sinter::ops
