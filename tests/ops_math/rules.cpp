// Dtype rules and their errors, promotion, complex64, look-up by name, costs, the machine's loop, and the text of dtypes and shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lanes_run.h"
#include "sinter/shape.h"

namespace sinter::ops {
namespace {

TEST(Rules, Promotion) {
  const struct {
    Dtype a, b, want;
  } cases[] = {
      {bool_, bool_, bool_},           {bool_, uint8, uint8},        {bool_, float16, float16},   {uint8, int8, int16},
      {uint8, int16, int16},           {uint16, int8, int32},        {uint32, int32, int64},      {uint32, int64, int64},
      {uint64, int64, float32},        {uint64, int8, float32},      {uint64, uint8, uint64},     {int64, float16, float16},
      {int32, bfloat16, bfloat16},     {float16, bfloat16, float32}, {float16, float32, float32}, {float32, float64, float64},
      {float64, complex64, complex64}, {int8, complex64, complex64}, {uint8, uint16, uint16},     {int8, int64, int64},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(promote_types(c.a, c.b), c.want) << c.a << ' ' << c.b;
    EXPECT_EQ(promote_types(c.b, c.a), c.want) << c.b << ' ' << c.a;
  }
  for (int i = 0; i < kDtypeCount; ++i) EXPECT_EQ(promote_types(static_cast<Dtype>(i), static_cast<Dtype>(i)), static_cast<Dtype>(i));
}

TEST(Rules, ComputeAndResultDtypes) {
  const struct {
    const char* function;
    std::vector<Dtype> operands;
    Dtype compute, result;
  } cases[] = {
      {"add", {int8, uint8}, int16, int16},
      {"divide", {int32, int32}, float32, float32},
      {"exp", {bool_}, float32, float32},
      {"exp", {bfloat16}, bfloat16, bfloat16},
      {"less", {float64, int8}, float64, bool_},
      {"equal", {complex64, int8}, complex64, bool_},
      {"abs", {complex64}, complex64, float32},
      {"abs", {uint8}, uint8, uint8},
      {"logical_and", {float32, int8}, bool_, bool_},
      {"logical_not", {complex64}, bool_, bool_},
      {"isnan", {int8}, int8, bool_},
      {"where", {bool_, int8, float16}, float16, float16},
      {"where", {float64, int8, int8}, int8, int8},
      {"bitwise_and", {bool_, uint8}, uint8, uint8},
      {"left_shift", {uint8, int8}, int16, int16},
      {"power", {int32, int32}, int32, int32},
      {"clip", {bool_, bool_, bool_}, bool_, bool_},
  };
  for (const auto& c : cases) {
    const auto [compute, result] = elementwise_type(find_op(c.function), c.operands);
    EXPECT_EQ(compute, c.compute) << c.function;
    EXPECT_EQ(result, c.result) << c.function;
  }
}

TEST(Rules, Errors) {
  const struct {
    const char* function;
    std::vector<Dtype> operands;
    const char* text;
  } cases[] = {
      {"bitwise_and", {float32, int8}, "bitwise_and: takes bool or integers; got float32 and int8; convert with astype first"},
      {"left_shift", {bool_, bool_}, "left_shift: takes integers; got bool and bool; convert with astype first"},
      {"negative", {bool_}, "negative: takes numbers, not bool; got bool; convert with astype first"},
      {"subtract", {bool_, bool_}, "subtract: takes numbers, not bool; got bool and bool; convert with astype first"},
      {"remainder", {bool_, bool_}, "remainder: takes integers or floating dtypes; got bool and bool; convert with astype first"},
      {"less", {complex64, float32}, "less: does not take complex64; got complex64 and float32; take its real() or imag() first"},
      {"exp", {complex64}, "exp: does not take complex64; got complex64; take its real() or imag() first"},
      {"clip",
       {float32, complex64, int8},
       "clip: does not take complex64; got float32, complex64 and int8; take its real() or imag() first"},
  };
  for (const auto& c : cases) {
    try {
      elementwise_type(find_op(c.function), c.operands);
      ADD_FAILURE() << c.function << " did not throw";
    } catch (const DtypeError& e) {
      EXPECT_STREQ(e.what(), c.text);
    }
  }
  EXPECT_THROW(find_op("no_such"), Error);
}

// Every line of the table expands for every dtype that its rule accepts, finds itself by name, and has a cost.
TEST(Rules, EveryLineExpandsForEveryDtypeItAccepts) {
  for (std::size_t i = 0; i < all_ops().size(); ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_EQ(find_op(info(op).name), op);
    if (!is_elementwise(op)) continue;
    for (int k = 0; k < kDtypeCount; ++k) {
      std::vector<Dtype> dtypes(static_cast<std::size_t>(info(op).operands), static_cast<Dtype>(k));
      ElementwiseType type;
      try {
        type = elementwise_type(op, dtypes);
      } catch (const DtypeError&) {
        continue;
      }
      Lanes machine(4);
      std::vector<Wide> operands;
      for (std::size_t j = 0; j < dtypes.size(); ++j) {
        const Dtype t = info(op).rule == Rule::Where && j == 0 ? bool_ : type.compute;
        operands.push_back(cast(wide_constant(machine, int32, 2), t));
      }
      const Wide out = expand(op, type.compute, operands);
      EXPECT_EQ(out.dtype, type.result) << info(op).name << ' ' << dtypes[0];
      EXPECT_EQ(out.re.dtype, machine_dtype(out.dtype)) << info(op).name << ' ' << dtypes[0];
      EXPECT_EQ(out.im.machine != nullptr, is_complex(out.dtype)) << info(op).name << ' ' << dtypes[0];
      EXPECT_TRUE(machine.is_uniform(out.re)) << info(op).name;
      EXPECT_GE(cost(op, type.compute), 0);
      EXPECT_LE(cost(op, type.compute), 400) << info(op).name << ' ' << dtypes[0];
    }
  }
}

TEST(Rules, CostsFollowTheExpressions) {
  EXPECT_EQ(cost(find_op("add"), float32), 1);
  EXPECT_GT(cost(find_op("exp"), float32), 10);
  EXPECT_LT(cost(find_op("exp"), float32), cost(find_op("exp"), float64));
  EXPECT_LT(cost(find_op("add"), float32), cost(find_op("add"), bfloat16));
}

TEST(Complex, Arithmetic) {
  Lanes machine(1);
  const auto number = [&](float re, float im) {
    return wide_constant(machine, complex64, std::uint64_t{std::bit_cast<std::uint32_t>(im)} << 32 | std::bit_cast<std::uint32_t>(re));
  };
  const auto value = [&](const Val& v) { return float_value(float32, machine.bits(v, 0)); };
  const struct {
    const char* function;
    double re, im;
  } cases[] = {{"add", 4, 1}, {"subtract", 2, 7}, {"multiply", 15, -5}, {"negative", -3, -4}, {"conjugate", 3, -4}, {"square", -7, 24}};
  for (const auto& c : cases) {
    const Op op = find_op(c.function);
    const std::vector<Wide> operands = {number(3, 4), number(1, -3)};
    const Wide out = expand(op, complex64, {operands.data(), static_cast<std::size_t>(info(op).operands)});
    EXPECT_EQ(value(out.re), c.re) << c.function;
    EXPECT_EQ(value(out.im), c.im) << c.function;
  }
  const std::vector<Wide> z = {number(3, 4)}, same = {number(3, 4), number(3, 4)}, other = {number(3, 4), number(3, NAN)};
  EXPECT_EQ(value(expand(Op::Abs, complex64, z).re), 5);
  EXPECT_EQ(value(expand(Op::Imag, complex64, z).re), 4);
  EXPECT_EQ(machine.bits(expand(Op::Equal, complex64, same).re, 0), 1u);
  EXPECT_EQ(machine.bits(expand(Op::NotEqual, complex64, other).re, 0), 1u);
  const std::vector<Wide> chosen = {wide_constant(machine, bool_, 0), number(1, 2), number(5, 6)};
  EXPECT_EQ(value(expand(Op::Where, complex64, chosen).im), 6);
}

TEST(LanesMachine, LoopsRunUntilEveryLaneIsDone) {
  Lanes machine(4);
  const Words start = {5, 0, 2, 9};
  const Val n = machine.vector(int32, start);
  const auto before = machine.mark();
  // Counts down in s[0], up in s[1]; the two swap roles in the state to show that a turn reads the old one.
  const auto end = machine.loop(
      {n, literal(n, 0)}, [](std::span<const Val> s) -> Val { return s[0] > 0; },
      [](std::span<const Val> s) -> std::vector<Val> { return {s[0] - 1, s[1] + 2}; });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(machine.bits(end[1], i), 2 * start[static_cast<std::size_t>(i)]);
  machine.release(before);
  EXPECT_EQ(machine.bits(n, 3), 9u);
}

TEST(LanesMachine, UnguardedPrimitivesAreOurFault) {
  Lanes machine(1);
  const Val x = machine.uniform(int32, 1), zero = machine.uniform(int32, 0), nan = machine.uniform(float32, 0x7fc00000);
  EXPECT_THROW(x / zero, InternalError);
  EXPECT_THROW(x << literal(x, 32), InternalError);
  EXPECT_THROW(convert(nan, int32), InternalError);
}

TEST(Shapes, TextAndDivision) {
  EXPECT_EQ(str(Shape{2, 3}, Shape{4}, Shape{}, Dim(7), float32, bool_), "(2,3)(4)()7float32bool");
  EXPECT_EQ(Dim(7) / 2, 3);
  EXPECT_EQ(Dim(7) % 4, 3);
  EXPECT_THROW(Dim(7) / 0, ShapeError);
  EXPECT_THROW(Dim(7) % Dim(0), ShapeError);
}

}  // namespace
}  // namespace sinter::ops
