// vjp and jvp: every line of both tables against central differences and against each other, once and twice; machine code against the
// interpreter; hard cases by value.
#include "support/derivatives.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "graph/build.h"
#include "support/graphs.h"
#include "transforms/cases.h"
#include "transforms/shown.h"

namespace {

using namespace sinter;
using namespace sinter::tests;
using ops::Op;

// The derivatives with respect to all inputs and to each alone, the derivatives of the gradient, and the gradient by a plan.
void expect_derivatives(const Graph& g, std::span<const Tensor> inputs, int* compared) {
  Slots wrt = floating_slots(g);
  EXPECT_EQ(derivative_error(g, inputs, wrt, 1, compared), "");
  for (std::int64_t s : wrt) EXPECT_EQ(derivative_error(g, inputs, {s}, 2), "") << "slot " << s;
  const Graph backward = transforms::vjp(g, wrt);
  EXPECT_EQ(graph::parse(graph::print(backward)), backward);
  std::mt19937 random(3);
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  const std::vector<graph::Type> types = input_types(backward);
  for (std::size_t i = all.size(); i < types.size(); ++i) all.push_back(random_tensor(types[i], random));
  EXPECT_EQ(derivative_error(backward, all, floating_slots(backward), 4), "") << graph::print(backward);
  EXPECT_EQ(graph::difference(run_plan(backward, all), graph::interpret(backward, all), 1e-9), "");
}

class Structured : public testing::TestWithParam<GraphCase> {};
TEST_P(Structured, Derivatives) {
  const Graph g = graph::parse(GetParam().text);
  if (floating_slots(g).empty()) return;
  expect_derivatives(g, random_inputs(g, 1), nullptr);
}
INSTANTIATE_TEST_SUITE_P(All, Structured, testing::ValuesIn(kGraphCases), [](const auto& i) { return i.param.name; });

// Each operation on arrays, and with each operand 0-d.
class Elementwise : public testing::TestWithParam<Op> {};
TEST_P(Elementwise, Derivatives) {
  const ops::OpInfo& facts = ops::info(GetParam());
  for (int scalar = -1; scalar < (facts.operands > 1 ? facts.operands : 0); ++scalar) {
    Graph g;
    std::vector<graph::Id> in;
    for (int i = 0; i < facts.operands; ++i) {
      const Dtype t = GetParam() == Op::Where && i == 0 ? Dtype::bool_ : Dtype::float64;
      in.push_back(g.add({Op::Input, {}, {i}, {t, i == scalar ? Shape{} : Shape{9}}}));
    }
    g.set_outputs({graph::elementwise(g, GetParam(), in)});
    int compared = 0;
    expect_derivatives(g, random_inputs(g, 5, facts.low, facts.high), &compared);
    EXPECT_GE(compared, 7);
  }
}
INSTANTIATE_TEST_SUITE_P(Table, Elementwise, testing::ValuesIn(elementwise_derivatives()),
                         [](const auto& i) { return std::string(ops::info(i.param).name); });

// ---- by value --------------------------------------------------------------------------------------------------------------------------

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

struct Point {
  Op op;
  std::vector<double> in, gradient;  // of operands; of a condition 1 is true
  double g = 1;
};
const Point kPoints[] = {
    {Op::Maximum, {2, 2}, {0.5, 0.5}},
    {Op::Maximum, {1, 2}, {0, 1}},
    {Op::Minimum, {2, 2}, {0.5, 0.5}},
    {Op::Minimum, {1, 2}, {1, 0}},
    {Op::Clip, {2, 1, 3}, {1, 0, 0}},
    {Op::Clip, {0, 1, 3}, {0, 1, 0}},
    {Op::Clip, {4, 1, 3}, {0, 0, 1}},
    {Op::Clip, {1, 1, 3}, {0.5, 0.5, 0}},
    {Op::Abs, {0}, {0}},
    {Op::Abs, {-2}, {-1}},
    {Op::Sign, {0}, {0}},
    {Op::Relu, {0}, {0}},
    {Op::Relu, {-kInf}, {0}},
    {Op::Sqrt, {0}, {kInf}},
    {Op::Sqrt, {0}, {0}, 0},
    {Op::Sqrt, {-1}, {0}, 0},
    {Op::Sqrt, {-1}, {kNan}},
    {Op::Log, {0}, {kInf}},
    {Op::Log, {0}, {0}, 0},
    {Op::Rsqrt, {0}, {0}, 0},
    {Op::Reciprocal, {0}, {0}, 0},
    {Op::Exp, {1000}, {0}, 0},
    {Op::Exp, {1000}, {kInf}},
    {Op::Divide, {1, 0}, {0, 0}, 0},
    {Op::Divide, {0, 0}, {0, 0}, 0},
    {Op::Power, {0, 2}, {0, 0}},
    {Op::Power, {0, 1}, {1, 0}},
    {Op::Power, {0, 0}, {0, 0}},
    {Op::Power, {3, 0}, {0, 1.0986122886681098}},
    {Op::Power, {-2, 3}, {12, kNan}},
    {Op::Power, {-2, 2}, {-4, kNan}},
    {Op::Power, {0, 0.5}, {kInf, 0}},
    {Op::Power, {0, 0.5}, {0, 0}, 0},
    {Op::Hypot, {0, 0}, {0, 0}},
    {Op::Hypot, {3, 4}, {0.6, 0.8}},
    {Op::LogAddExp, {-kInf, -kInf}, {0.5, 0.5}},
    {Op::LogAddExp, {kInf, 0}, {1, 0}},
    {Op::LogAddExp, {-kInf, 0}, {0, 1}},
    {Op::Sigmoid, {1000}, {0}},
    {Op::Softplus, {1000}, {1}},
    {Op::LogSigmoid, {-1000}, {1}},
    {Op::Silu, {1000}, {1}},
    {Op::Silu, {kInf}, {1}},
    {Op::Silu, {-kInf}, {0}},
    {Op::Silu, {kNan}, {kNan}},
    {Op::Gelu, {-1000}, {0}},
    {Op::Gelu, {kInf}, {1}},
    {Op::Gelu, {-kInf}, {0}},
    {Op::Gelu, {kNan}, {kNan}},
    {Op::GeluTanh, {1000}, {1}},
    {Op::GeluTanh, {kInf}, {1}},
    {Op::GeluTanh, {-kInf}, {0}},
    {Op::GeluTanh, {kNan}, {kNan}},
    {Op::Mish, {1000}, {1}},
    {Op::Mish, {kInf}, {1}},
    {Op::Mish, {-kInf}, {0}},
    {Op::Mish, {kNan}, {kNan}},
    {Op::HardSwish, {kInf}, {1}},
    {Op::HardSwish, {-kInf}, {0}},
    {Op::Tanh, {kInf}, {0}},
    {Op::Sigmoid, {-kInf}, {0}},
    {Op::Softplus, {-kInf}, {0}},
    {Op::LogSigmoid, {-kInf}, {1}},
    {Op::Erf, {kInf}, {0}},
    {Op::Elu, {-kInf, 1}, {0, -1}},
    {Op::Elu, {1000, 1}, {1, 0}},
    {Op::Selu, {1000}, {1.0507009873554804934}},
    {Op::Where, {1, 2, kNan}, {0, 3, 0}, 3},
    {Op::Where, {0, kNan, 2}, {0, 0, kInf}, kInf},
    {Op::StopGradient, {2}, {0}},
    {Op::Floor, {1.5}, {0}},
};

TEST(HardCases, Elementwise) {
  for (const Point& p : kPoints) {
    Graph g;
    std::vector<graph::Id> in;
    std::vector<Tensor> values;
    Slots wrt;
    for (std::size_t i = 0; i < p.in.size(); ++i) {
      const Dtype t = p.op == Op::Where && i == 0 ? Dtype::bool_ : Dtype::float64;
      in.push_back(g.add({Op::Input, {}, {static_cast<std::int64_t>(i)}, {t, {}}}));
      values.push_back(tensor(t, {}, {{p.in[i]}}));
      if (t != Dtype::bool_) wrt.push_back(static_cast<std::int64_t>(i));
    }
    g.set_outputs({graph::elementwise(g, p.op, in)});
    values.push_back(tensor(Dtype::float64, {}, {{p.g}}));
    const std::vector<Tensor> out = graph::interpret(transforms::vjp(g, wrt), values);
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      const double got = numbers(out[1 + i])[0], want = p.gradient[static_cast<std::size_t>(wrt[i])];
      const bool same = std::isnan(want) ? std::isnan(got) : got == want || near(got, want, 1e-12);
      EXPECT_TRUE(same) << ops::info(p.op).name << " of " << testing::PrintToString(p.in) << ", operand " << wrt[i] << ": " << got
                        << ", not " << want;
    }
  }
}

// A graph, its inputs and the gradient of the sum of its first output with respect to input 0.
struct Hard {
  const char* text;
  std::vector<std::vector<double>> in;
  std::vector<double> gradient;
};
const Hard kHard[] = {
    {"graph g(%0: float64[4]) { %1 = prod %0 {dtype=float64 axes=0} : float64[] return %1 }", {{2, 0, 3, 4}}, {0, 24, 0, 0}},
    {"graph g(%0: float64[3]) { %1 = prod %0 {dtype=float64 axes=0} : float64[] return %1 }", {{2, 0, 0}}, {0, 0, 0}},
    {"graph g(%0: float64[1]) { %1 = prod %0 {dtype=float64 axes=0} : float64[] return %1 }", {{0}}, {1}},
    {"graph g(%0: float64[2,3]) { %1 = prod %0 {dtype=float64 axes=0,1} : float64[] return %1 }",
     {{2, 1, 3, 0, 4, 5}},
     {0, 0, 0, 120, 0, 0}},
    {"graph g(%0: float64[2,3]) { %1 = prod %0 {dtype=float64 axes=0,1} : float64[] return %1 }", {{2, 0, 3, 0, 4, 5}}, {0, 0, 0, 0, 0, 0}},
    {"graph g(%0: float64[4]) { %1 = max %0 {dtype=float64 axes=0} : float64[] return %1 }", {{2, 5, 5, 1}}, {0, 0.5, 0.5, 0}},
    {"graph g(%0: float64[3]) { %1 = min %0 {dtype=float64 axes=0} : float64[] return %1 }", {{2, 2, 2}}, {1. / 3, 1. / 3, 1. / 3}},
    {"graph g(%0: float64[4]) { %1 = cumprod %0 {axis=0 reverse=0 inclusive=1} : float64[4] return %1 }", {{2, 0, 3, 4}}, {1, 32, 0, 0}},
    {"graph g(%0: float64[4]) { %1 = cumprod %0 {axis=0 reverse=1 inclusive=0} : float64[4] return %1 }", {{2, 0, 0, 4}}, {0, 0, 4, 1}},
    {"graph g(%0: float64[2]) { %1 = cumprod %0 {axis=0 reverse=0 inclusive=1} : float64[2] return %1 }", {{kInf, 1}}, {2, kInf}},
    // The first of equal elements set the record; NaN is greater and less than all.
    {"graph g(%0: float64[5]) { %1 = cummax %0 {axis=0 reverse=0 inclusive=1} : float64[5] return %1 }",
     {{1, 3, 3, 2, 4}},
     {1, 3, 0, 0, 1}},
    {"graph g(%0: float64[4]) { %1 = cummin %0 {axis=0 reverse=1 inclusive=1} : float64[4] return %1 }", {{1, 1, 2, 2}}, {0, 2, 0, 2}},
    {"graph g(%0: float64[4]) { %1 = cummax %0 {axis=0 reverse=0 inclusive=0} : float64[4] return %1 }", {{2, 2, 3, 9}}, {2, 0, 1, 0}},
    {"graph g(%0: float64[4]) { %1 = cummax %0 {axis=0 reverse=0 inclusive=1} : float64[4] return %1 }",
     {{-kInf, -kInf, kNan, 1}},
     {2, 0, 2, 0}},
    {"graph g(%0: float64[3]) { %1 = logcumsumexp %0 {axis=0 reverse=0 inclusive=1} : float64[3] return %1 }",
     {{-kInf, 0, 0}},
     {1, 1.5, 0.5}},
    {"graph g(%0: float64[3]) { %1 = logcumsumexp %0 {axis=0 reverse=0 inclusive=1} : float64[3] return %1 }", {{0, kInf, 5}}, {1, 2, 0}},
    // Indices: duplicates add up, negative ones count from the end, those beyond the axis read its last element.
    {"graph g(%0: float64[3], %1: int32[6]) { %2 = take %0, %1 {axis=0} : float64[6] return %2 }",
     {{1, 2, 3}, {0, 0, -1, 9, -9, 1}},
     {3, 1, 2}},
    {"graph g(%0: float64[3], %1: uint8[4]) { %2 = take_along_axis %0, %1 {axis=0} : float64[4] return %2 }",
     {{1, 2, 3}, {0, 255, 2, 2}},
     {1, 0, 3}},
    // Of updates that fall outside nothing arrives.
    {"graph g(%0: float64[4], %1: int8[4], %2: float64[3]) { %3 = scatter_add %2, %1, %0 {axis=0} : float64[3] return %3 }",
     {{1, 1, 1, 1}, {0, 3, -3, -4}, {0, 0, 0}},
     {1, 0, 1, 0}},
    // Of updates for one place the last has the cotangent, and what was there before has none.
    {"graph g(%0: float64[5], %1: int8[5], %2: float64[3]) { %3 = put_along_axis %2, %1, %0 {axis=0} : float64[3] return %3 }",
     {{1, 1, 1, 1, 1}, {0, 3, -3, -4, 1}, {0, 0, 0}},
     {0, 0, 1, 0, 1}},
    {"graph g(%0: float64[3], %1: uint64[3], %2: float64[3]) { %3 = put_along_axis %0, %1, %2 {axis=0} : float64[3] return %3 }",
     {{5, 5, 5}, {1, 1, 9}, {0, 0, 0}},
     {1, 0, 1}},
    {"graph g(%0: float64[4]) { %1 = as_strided %0 {shape=3,2 strides=1,1 offset=0} : float64[3,2] return %1 }",
     {{0, 0, 0, 0}},
     {1, 2, 2, 1}},
    // where's silent branch: x > 0 ? sqrt(x) : 0 at 0 and below.
    {R"(graph g(%0: float64[3]) { %1 = constant {bits=0} : float64[] %2 = greater %0, %1 : bool[3] %3 = sqrt %0 : float64[3]
       %4 = where %2, %3, %1 : float64[3] return %4 })",
     {{4, 0, -1}},
     {0.25, 0, 0}},
    {R"(graph g(%0: float64[2]) { %1 = constant {bits=0} : float64[] %2 = greater %0, %1 : bool[2] %3 = exp %0 : float64[2]
       %4 = where %2, %0, %3 : float64[2] return %4 })",
     {{1000, 0}},
     {1, 1}},
    // So it stays through sums, views, reading and 0-d arrays.
    {R"(graph g(%0: float64[2]) { %1 = square %0 : float64[2] %2 = constant {bits=9218868437227405312} : float64[] %3 = multiply %1, %2 : float64[2]
       %4 = sum %3 {dtype=float64 axes=0} : float64[] %5 = multiply %4, %2 : float64[] %6 = constant {bits=true} : bool[2]
       %7 = where %6, %0, %5 : float64[2] return %7 })",
     {{3, 4}},
     {1, 1}},
    {R"(graph g(%0: float64[2], %1: int32[3]) { %2 = constant {bits=9218868437227405312} : float64[] %3 = multiply %0, %2 : float64[2]
       %4 = reshape %3 {shape=2,1} : float64[2,1] %5 = concatenate %4, %4 {axis=1} : float64[2,2]
       %6 = take %5, %1 {axis=0} : float64[3,2] %7 = transpose %6 {axes=1,0} : float64[2,3]
       %8 = slice %7 {start=1,0 size=1,2 step=-1,1} : float64[1,2] %9 = broadcast_to %8 {shape=2,2} : float64[2,2]
       %10 = constant {bits=false} : bool[2,2] %11 = broadcast_to %0 {shape=2,2} : float64[2,2]
       %12 = where %10, %9, %11 : float64[2,2] return %12 })",
     {{3, 4}, {1, 0, 1}},
     {2, 2}},
    {R"(graph g(%0: float64[2]) { %1 = stop_gradient %0 : float64[2] %2 = multiply %0, %1 : float64[2] return %2 })", {{3, 4}}, {3, 4}},
};

TEST(HardCases, Structured) {
  for (const Hard& h : kHard) {
    const Graph g = graph::parse(h.text);
    std::vector<Tensor> in;
    const std::vector<graph::Type> types = input_types(g);
    for (std::size_t i = 0; i < types.size(); ++i) in.push_back(tensor(types[i].dtype, types[i].shape, h.in[i]));
    const Graph backward = transforms::vjp(g, Slots{0});
    const graph::Type& out = g[g.outputs()[0]].type;
    in.push_back(
        tensor(out.dtype, out.shape, std::vector<double>(static_cast<std::size_t>(static_cast<std::int64_t>(out.shape.product())), 1.0)));
    const std::vector<double> got = numbers(graph::interpret(backward, in)[1]);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i] == h.gradient[i] || std::fabs(got[i] - h.gradient[i]) <= 1e-12) << h.text << " element " << i << ": " << got[i];
    EXPECT_EQ(graph::difference(run_plan(backward, in), graph::interpret(backward, in), 1e-12), "") << h.text;
  }
}

// The second derivative at a place where the cotangent is 0: (sqrt(x) - 1)^2 at 1 has the second derivative 0.5.
TEST(HardCases, GuardsKeepSecondDerivatives) {
  const Graph g = graph::parse(R"(graph g(%0: float64[]) { %1 = sqrt %0 : float64[] %2 = constant {bits=1} : float64[]
    %3 = subtract %1, %2 : float64[] %4 = square %3 : float64[] return %4 })");
  const Graph first = transforms::vjp(g, Slots{0}), second = transforms::jvp(first, Slots{0});
  const Tensor one = tensor(Dtype::float64, {}, {{1.0}});
  const std::vector<Tensor> out = graph::interpret(second, std::vector<Tensor>{one, one, one});
  EXPECT_NEAR(numbers(out.back())[0], 0.5, 1e-12);
}

// For a + ib the gradient of a real loss is dL/da + i dL/db: against differences of the loss, in float32.
TEST(HardCases, Complex) {
  const char* losses[] = {
      "graph g(%0: complex64[2]) { %1 = square %0 : complex64[2] %2 = real %1 : float32[2] return %2 }",
      "graph g(%0: complex64[2]) { %1 = multiply %0, %0 : complex64[2] %2 = multiply %1, %0 : complex64[2] %3 = imag %2 : float32[2] "
      "return %3 }",
      "graph g(%0: complex64[2]) { %1 = abs %0 : float32[2] return %1 }",
      "graph g(%0: complex64[2]) { %1 = conjugate %0 : complex64[2] %2 = square %1 : complex64[2] %3 = subtract %2, %0 : complex64[2] %4 = "
      "imag %3 : float32[2] return %4 }",
      "graph g(%0: complex64[2]) { %1 = prod %0 {dtype=complex64 axes=0} : complex64[] %2 = negative %1 : complex64[] %3 = real %2 : "
      "float32[] return %3 }",
      R"(graph g(%0: complex64[2]) { %1 = cumprod %0 {axis=0 reverse=0 inclusive=1} : complex64[2] %2 = cumsum %1 {axis=0 reverse=1 inclusive=1}
         : complex64[2] %3 = imag %2 : float32[2] return %3 })",
      R"(graph g(%0: complex64[2]) { %1 = constant {bits=(3,0),(1,1),(0,1),(2,-3)} : complex64[2,2] %2 = reshape %0 {shape=2,1} : complex64[2,1]
         %3 = solve %1, %2 : complex64[2,1] %4 = broadcast_to %2 {shape=2,2} : complex64[2,2] %5 = add %1, %4 : complex64[2,2]
         %6 = solve %5, %3 : complex64[2,1] %7 = real %6 : float32[2,1] return %7 })",
      R"(graph g(%0: complex64[2]) { %1 = reshape %0 {shape=1,2} : complex64[1,2] %2 = reshape %0 {shape=2,1} : complex64[2,1]
         %3 = matmul %2, %1 : complex64[2,2] %4 = imag %3 : float32[2,2] return %4 })",
      R"(graph g(%0: complex64[2]) { %1 = astype %0 {dtype=float32} : float32[2] %2 = astype %1 {dtype=complex64} : complex64[2]
         %3 = multiply %2, %0 : complex64[2] %4 = sum %3 {dtype=complex64 axes=0} : complex64[] %5 = real %4 : float32[] return %5 })",
  };
  std::mt19937 random(1);
  for (const char* text : losses) {
    const Graph g = graph::parse(text), backward = transforms::vjp(g, Slots{0}), forward = transforms::jvp(g, Slots{0});
    const graph::Type& loss = g[g.outputs()[0]].type;
    const Tensor x = random_tensor({Dtype::complex64, {2}}, random, 0.5, 1.5), t = random_tensor({Dtype::complex64, {2}}, random);
    const Tensor ones = tensor(Dtype::float32, loss.shape,
                               std::vector<double>(static_cast<std::size_t>(static_cast<std::int64_t>(loss.shape.product())), 1.0));
    auto parts = [](const Tensor& z) {
      std::vector<double> p;
      for (std::uint64_t w : graph::to_words(z))
        for (int shift : {0, 32}) p.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(w >> shift)));
      return p;
    };
    auto total = [](const Tensor& y) {
      double s = 0;
      for (double v : numbers(y)) s += v;
      return s;
    };
    auto at = [&](double h) {
      std::vector<double> a = parts(x), b = parts(t);
      std::vector<std::uint64_t> words;
      for (std::size_t i = 0; i < a.size(); i += 2)
        words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(a[i] + h * b[i])) |
                        std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(a[i + 1] + h * b[i + 1]))} << 32);
      return total(graph::interpret(g, std::vector<Tensor>{graph::from_words(Dtype::complex64, {2}, words)})[0]);
    };
    const double difference = (at(1e-2) - at(-1e-2)) / 2e-2;
    const std::vector<double> gradient = parts(graph::interpret(backward, std::vector<Tensor>{x, ones})[1]), direction = parts(t);
    double slope = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) slope += gradient[i] * direction[i];
    EXPECT_NEAR(slope, difference, 2e-3 * (1 + std::fabs(difference))) << text;
    EXPECT_NEAR(total(graph::interpret(forward, std::vector<Tensor>{x, t})[1]), difference, 2e-3 * (1 + std::fabs(difference))) << text;
  }
}

// Sums of many float16 terms keep what float16 alone would lose.
TEST(HardCases, HalvesAccumulateWide) {
  const Graph take = graph::parse("graph g(%0: float16[2], %1: int32[4096]) { %2 = take %0, %1 {axis=0} : float16[4096] return %2 }");
  const Graph spread = graph::parse("graph g(%0: float16[]) { %1 = broadcast_to %0 {shape=4096} : float16[4096] return %1 }");
  const Tensor ones = tensor(Dtype::float16, {4096}, std::vector<double>(4096, 1.0));
  const Tensor zeros = tensor(Dtype::int32, {4096}, std::vector<double>(4096, 0.0));
  for (bool plan : {false, true}) {
    auto run = [&](const Graph& g, std::vector<Tensor> in) { return plan ? run_plan(g, in) : graph::interpret(g, in); };
    EXPECT_EQ(numbers(run(transforms::vjp(take, Slots{0}), {tensor(Dtype::float16, {2}, {{1.0, 2.0}}), zeros, ones})[1])[0], 4096);
    EXPECT_EQ(numbers(run(transforms::vjp(spread, Slots{0}), {tensor(Dtype::float16, {}, {{1.0}}), ones})[1])[0], 4096);
  }
}

// What has no derivative costs nothing: the gradient graph holds no trace of it.
TEST(Zeros, AreNeverComputed) {
  const Graph g = graph::parse(R"(graph g(%0: float64[3], %1: float64[3]) { %2 = exp %1 : float64[3] %3 = floor %0 : float64[3]
    %4 = multiply %3, %2 : float64[3] return %4 })");
  const Graph backward = transforms::vjp(g, Slots{0});
  EXPECT_EQ(backward[backward.outputs()[1]].op, Op::Constant);
  EXPECT_EQ(backward.size(), 7u);  // the function's five nodes, the cotangent, and the zero
  Graph again = g;
  const std::vector<graph::Id> none, wrt{0};
  EXPECT_EQ(transforms::pull_back(again, none, none, wrt), std::vector<graph::Id>{graph::kKeep});
  EXPECT_EQ(again, g);
}

// 10,000 nodes in a chain: no recursion, and time linear.
TEST(Size, TenThousandNodes) {
  Graph g;
  graph::Id x = g.add({Op::Input, {}, {0}, {Dtype::float32, {4}}});
  for (int i = 0; i < 10000; ++i) x = graph::elementwise(g, i % 2 ? Op::Sin : Op::Multiply, i % 2 ? std::vector{x} : std::vector{x, x});
  g.set_outputs({x});
  auto milliseconds = [](auto f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  const double backward = milliseconds([&] { transforms::vjp(g, Slots{0}); }),
               forward = milliseconds([&] { transforms::jvp(g, Slots{0}); });
  const double batched = milliseconds([&] { transforms::vmap(g, 3, Slots{0}, Slots{0}); });
  std::printf("10,000 nodes: vjp %.1f ms, jvp %.1f ms, vmap %.1f ms\n", backward, forward, batched);
  EXPECT_LT(backward + forward + batched, 2000);
}

// 20,000 views of one array whose sizes change, told apart by numbers: none is compared with the others.
TEST(Size, TwentyThousandViewsOfSizesThatChange) {
  constexpr std::int64_t kViews = 20000;
  base::Symbols symbols;
  base::Guards guards;
  const Dim rows = symbols.input(kViews, "rows"), columns = symbols.input(3, "columns");
  base::OpenSymbols open(symbols, guards);
  Graph g;
  const graph::Id x = g.add({Op::Input, {}, {0}, {Dtype::float32, {rows, columns}}});
  transforms::Distinct distinct;
  for (const int again : {0, 1})
    for (std::int64_t i = 0; i < kViews; ++i) {
      const graph::Node row{Op::Slice, {x}, {i, 0, 1, columns, 1, 1}, {Dtype::float32, {1, columns}}};
      const auto id = static_cast<graph::Id>(i + 1);
      ASSERT_EQ(distinct.equal_to(row, again == 0 ? id : id + kViews), id);
    }
  EXPECT_EQ(distinct.comparisons(), kViews) << "each with itself";
  EXPECT_TRUE(guards.empty());
  const graph::Node all{Op::Slice, {x}, {0, 0, rows, columns, 1, 1}, {Dtype::float32, {rows, columns}}};
  const graph::Node many{Op::Slice, {x}, {0, 0, kViews, columns, 1, 1}, {Dtype::float32, {kViews, columns}}};
  EXPECT_EQ(distinct.equal_to(many, 1000000), 1000000u);
  EXPECT_TRUE(guards.empty());
  EXPECT_EQ(distinct.equal_to(all, 1000001), 1000000u);
  EXPECT_EQ(symbols.texts(guards), std::vector<std::string>{"s0 == 20000"}) << "equal for these sizes alone";

  std::vector<graph::Id> parts;
  for (std::int64_t i = 0; i < kViews; ++i) {
    const graph::Id row = g.add({Op::Slice, {x}, {i, 0, 1, columns, 1, 1}, {Dtype::float32, {1, columns}}});
    parts.push_back(graph::elementwise(g, Op::Sin, {row}));
  }
  g.set_outputs(parts);
  const std::vector<char> active(g.size(), 1);
  const std::vector<graph::Id> shown = transforms::shown_by(g, g.outputs(), std::vector{x}, active);
  for (graph::Id id = 0; id < g.size(); ++id) ASSERT_EQ(shown[id], id);
}

// The page lists each operation without a gradient.
TEST(Documentation, ListsWhatHasNoGradient) {
  std::ifstream file(SINTER_SOURCE_DIR "/docs/TRANSFORMS.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  int listed = 0;
  auto expect = [&](const std::string& function, const std::string& gradients) {
    if (gradients.find("NO_GRAD") == std::string::npos) return;
    ++listed;
    EXPECT_NE(page.find("`" + function + "`"), std::string::npos) << function << ": " << gradients;
  };
#define OP1(Name, function, rule, traits, domain, value, ...) expect(#function, #__VA_ARGS__);
#define OP2 OP1
#define OP3 OP1
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3
  EXPECT_GT(listed, 20);
}

}  // namespace
