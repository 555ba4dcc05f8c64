// Derivatives of every elementwise operation where slopes are extreme: under a where() that does not take them, and in halves.
#include <gtest/gtest.h>

#include "graph/build.h"
#include "sinter/sinter.h"
#include "support/derivatives.h"

namespace {

using namespace sinter;
using namespace sinter::tests;
using ops::Op;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// What where() does not take is silent: of every line of the table, at every special value, with infinite slopes before and after it, in
// both modes and twice. x is taken: the result depends on nothing else.
const std::vector<double> kSpecial{0, -0.0, 1, -1, 0.5, 2, 800, -800, 1e-310, -1e-310, 1e300, -1e300, kInf, -kInf, kNan};

class NotTaken : public testing::TestWithParam<Op> {};
TEST_P(NotTaken, IsSilent) {
  const ops::OpInfo& facts = ops::info(GetParam());
  const auto operands = static_cast<std::size_t>(facts.operands);
  std::size_t count = 1;
  for (std::size_t i = 0; i < operands; ++i) count *= kSpecial.size();
  const Shape shape{static_cast<std::int64_t>(count)};
  Graph g;
  const graph::Type type{Dtype::float64, shape};
  const graph::Id taken = g.add({Op::Input, {}, {0}, {Dtype::bool_, shape}}), x = g.add({Op::Input, {}, {1}, graph::Type(type)});
  std::vector<Tensor> in{tensor(Dtype::bool_, shape, std::vector<double>(count, 1)),
                         tensor(Dtype::float64, shape, std::vector<double>(count, 3))};
  std::vector<graph::Id> operand_ids;
  Slots wrt{1};
  for (std::size_t i = 0, step = 1; i < operands; ++i, step *= kSpecial.size()) {
    const auto slot = static_cast<std::int64_t>(i + 2);
    const Dtype t = GetParam() == Op::Where && i == 0 ? Dtype::bool_ : Dtype::float64;
    std::vector<double> values;
    for (std::size_t n = 0; n < count; ++n) values.push_back(kSpecial[n / step % kSpecial.size()]);
    in.push_back(tensor(t, shape, values));
    const graph::Id input = g.add({Op::Input, {}, {slot}, {t, shape}});
    // Before it a product with itself, whose slope is as large as the operand.
    operand_ids.push_back(t == Dtype::bool_ ? input
                                            : graph::elementwise(g, i == 1 ? Op::Square : Op::Multiply,
                                                                 i == 1 ? std::vector{input} : std::vector{input, input}));
    if (t != Dtype::bool_) wrt.push_back(slot);
  }
  const graph::Id branch = graph::elementwise(g, GetParam(), operand_ids), after = graph::elementwise(g, Op::Multiply, {branch, branch});
  g.set_outputs({graph::elementwise(g, Op::Where, {taken, x, branch}),
                 graph::elementwise(g, Op::Where, {graph::elementwise(g, Op::LogicalNot, {taken}), after, x})});
  const auto ones_from = [&](const Graph& of, std::vector<Tensor> values) {
    const std::vector<graph::Type> types = input_types(of);
    while (values.size() < types.size()) values.push_back(tensor(Dtype::float64, shape, std::vector<double>(count, 1)));
    return values;
  };
  const Graph backward = transforms::vjp(g, wrt);
  Slots twice = wrt;
  for (std::size_t slot = in.size(); slot < input_types(backward).size(); ++slot) twice.push_back(static_cast<std::int64_t>(slot));
  const struct {
    const char* name;
    Graph graph;
    std::size_t first;             // of the derivatives among the outputs
    std::vector<double> expected;  // of each; those that follow: 0
  } ways[] = {
      {"jvp", transforms::jvp(g, wrt), 2, {1, 1}},
      {"vjp", backward, 2, {2}},
      {"jvp of vjp", transforms::jvp(backward, twice), 2 + wrt.size(), {1, 1, 2}},
      {"vjp of vjp", transforms::vjp(backward, twice), 2 + wrt.size(), {2}},
  };
  for (const auto& w : ways) {
    const std::vector<Tensor> out = graph::interpret(w.graph, ones_from(w.graph, in));
    for (std::size_t i = w.first; i < out.size(); ++i) {
      const std::vector<double> got = numbers(out[i]);
      double expected = i - w.first < w.expected.size() ? w.expected[i - w.first] : 0;
      if (std::string_view(w.name) == "vjp of vjp" && i + 2 >= out.size()) expected = 1;  // of the cotangents
      for (std::size_t n = 0; n < count; ++n) {
        ASSERT_EQ(got[n], expected) << w.name << ", derivative " << i - w.first << ", element " << n;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Table, NotTaken, testing::ValuesIn(elementwise_derivatives()),
                         [](const auto& i) { return std::string(ops::info(i.param).name); });

// Gradients in halves at every finite number, as those in float64 say where that is a number of the dtype: within two units of its last
// place and what float32 loses in sums near 1 (or near the second operand).
std::vector<double> finite_numbers(Dtype half) {
  std::vector<double> values;
  for (std::uint64_t word = 0; word < 65536; ++word) {
    std::uint64_t wide = 0;
    ops::convert_elements(half, Dtype::float64, {&word, 1}, {&wide, 1});
    if (std::isfinite(std::bit_cast<double>(wide))) values.push_back(std::bit_cast<double>(wide));
  }
  return values;
}
// The result and its gradients.
std::vector<std::vector<double>> gradients(Op op, Dtype t, const std::vector<double>& x, double rest) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  Graph g;
  std::vector<graph::Id> in;
  std::vector<Tensor> values;
  Slots wrt;
  for (int i = 0; i < ops::info(op).operands; ++i) {
    in.push_back(g.add({Op::Input, {}, {i}, {t, shape}}));
    values.push_back(tensor(t, shape, i == 0 ? x : std::vector<double>(x.size(), rest)));
    wrt.push_back(i);
  }
  g.set_outputs({graph::elementwise(g, op, in)});
  values.push_back(tensor(t, shape, std::vector<double>(x.size(), 1)));
  std::vector<std::vector<double>> result;
  for (const Tensor& out : graph::interpret(transforms::vjp(g, wrt), values)) result.push_back(numbers(out));
  return result;
}

class Halves : public testing::TestWithParam<Op> {};
TEST_P(Halves, GradientsAreThoseOfFloat64) {
  const Op op = GetParam();
  if (op == Op::Where) return;  // chooses
  for (const Dtype t : {Dtype::float16, Dtype::bfloat16}) {
    const std::vector<double> x = finite_numbers(t);
    const double ulp = finfo(t).eps, largest = finfo(t).max;
    for (const double rest : {0.5, 300.0}) {
      if (ops::info(op).operands == 1 && rest != 0.5) continue;
      const auto got = gradients(op, t, x, rest), expected = gradients(op, Dtype::float64, x, rest);
      const double lost = 1e-6 * std::max(1.0, rest);
      for (std::size_t k = 1; k < got.size(); ++k)
        for (std::size_t n = 0; n < x.size(); ++n) {
          const double want = expected[k][n];
          const bool in_float32 = std::isfinite(static_cast<float>(expected[0][n])) && (x[n] == 0 || std::abs(x[n]) >= 1.2e-38);
          if (!in_float32 || !(std::abs(want) <= largest)) continue;
          ASSERT_LE(std::abs(got[k][n] - want), 2 * ulp * std::abs(want) + lost)
              << t << ", operand " << k - 1 << " at " << x[n] << ", others " << rest << ": " << got[k][n] << ", not " << want;
        }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Table, Halves, testing::ValuesIn(elementwise_derivatives()),
                         [](const auto& i) { return std::string(ops::info(i.param).name); });

// float32, beyond the numbers whose square it has.
TEST(Slopes, OfLargeNumbersInFloat32) {
  const struct {
    Op op;
    double x, gradient;
  } cases[] = {{Op::GeluTanh, 1e20, 1},     {Op::GeluTanh, -1e20, 0}, {Op::Gelu, 1e20, 1}, {Op::Silu, 1e20, 1},
               {Op::Silu, 16777216, 1},     {Op::Silu, -1e20, 0},     {Op::Mish, 1e20, 1}, {Op::ArcCosh, 1e20, 1e-20},
               {Op::ArcSinh, -1e20, 1e-20}, {Op::ArcTan, 1e20, 0}};
  for (const auto& c : cases) {
    const double got = gradients(c.op, Dtype::float32, {c.x}, 0)[1][0];
    EXPECT_NEAR(got, c.gradient, 1e-6 * c.gradient) << ops::info(c.op).name << " at " << c.x;
  }
}

}  // namespace
