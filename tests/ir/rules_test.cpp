// Every exact rule of simplify_rules.def holds, bit for bit, on every dtype on which the simplify pass would apply it.
#include "passes/rules.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "base/text.h"
#include "graph/build.h"
#include "graph/interpret.h"
#include "ops/elements.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using ops::Op;

// Special values of a dtype, by bits: zeros, ones, extremes, denormals, infinities, NaNs, and some ordinary numbers.
std::vector<std::uint64_t> values_of(Dtype t) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values = {0, 1, -1, 2, 3, 2.5, -3.25, 127, -128, 255, 0.1};
  if (is_floating(t) || is_complex(t)) values.insert(values.end(), {-0.0, kInf, -kInf, kNan, 1e-5, 1e38, 1e-40, -65504});
  std::vector<std::uint64_t> words, result;
  for (double v : values) words.push_back(std::bit_cast<std::uint64_t>(v));
  result.resize(words.size());
  ops::convert_elements(Dtype::float64, t, words, result);
  if (is_complex(t)) {  // with several imaginary parts each
    std::vector<std::uint64_t> pairs;
    for (std::uint64_t re : result) {
      for (float im : {0.0f, -0.0f, 1.5f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        pairs.push_back((re & 0xffffffff) | static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(im)) << 32);
      }
    }
    return pairs;
  }
  const std::uint64_t top = size_of(t) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(t))) - 1;
  if (is_integer(t)) result.insert(result.end(), {top, top >> 1, (top >> 1) + 1});
  if (is_floating(t)) result.push_back(1);  // the smallest denormal
  return result;
}

// A pattern as a graph over inputs x, y, z of dtype t and c of bool. No value if the operations do not take the dtype.
std::optional<Graph> graph_of(const Pattern& p, Dtype t, std::int64_t count) {
  Graph g;
  Bindings bindings;
  for (int w = 0; w < kWildcards; ++w) {
    bindings[static_cast<std::size_t>(w)] = g.add({Op::Input, {}, {w}, {w == kCondition ? Dtype::bool_ : t, {count}}});
  }
  for (const Pattern::Item& item : p.items) {
    if (item.is == Pattern::Is::Literal && !literal_bits(item.literal, t)) return {};
  }
  g.set_outputs({build(g, p, bindings, t)});
  if (g[g.outputs()[0]].op == Op::Constant) {
    const Id whole = graph::broadcast(g, g.outputs()[0], Shape{count});
    g.set_outputs({whole});
  }
  try {
    graph::verify(g);
  } catch (const InternalError&) {
    return {};
  }
  return g;
}

TEST(Rules, ExactRulesHoldForEveryValue) {
  std::mt19937 random(1);
  for (const Rule& rule : rules()) {
    int dtypes = 0;
    for (int d = 0; d < kDtypeCount; ++d) {
      const auto t = static_cast<Dtype>(d);
      if (!applies(rule, t)) continue;
      const std::vector<std::uint64_t> special = values_of(t);
      // All pairs of x and y; z and c at random.
      std::vector<std::uint64_t> x, y, z, c;
      for (std::uint64_t a : special) {
        for (std::uint64_t b : special) {
          x.push_back(a);
          y.push_back(b);
          z.push_back(special[random() % special.size()]);
          c.push_back(random() % 2);
        }
      }
      const auto count = static_cast<std::int64_t>(x.size());
      const std::optional<Graph> lhs = graph_of(rule.lhs, t, count), rhs = graph_of(rule.rhs, t, count);
      if (!lhs) continue;
      ++dtypes;
      ASSERT_TRUE(rhs) << rule.name << " makes a graph that is not valid for " << t;
      const std::vector<graph::Tensor> inputs = {graph::from_words(t, {count}, x), graph::from_words(t, {count}, y),
                                                 graph::from_words(t, {count}, z), graph::from_words(Dtype::bool_, {count}, c)};
      const std::string difference = graph::difference(graph::interpret(*lhs, inputs), graph::interpret(*rhs, inputs));
      EXPECT_TRUE(rule.when == When::fast || difference.empty()) << rule.name << " is not exact for " << t << ": " << difference;
    }
    EXPECT_GT(dtypes, 0) << rule.name << " applies to nothing";
  }
}

TEST(Rules, NamesAreUnique) {
  for (const Rule& a : rules()) {
    for (const Rule& b : rules()) EXPECT_TRUE(&a == &b || a.name != b.name) << a.name;
  }
}

TEST(Rules, MatchRespectsDtypesAndBindings) {
  auto find = [](std::string_view name) -> const Rule& {
    for (const Rule& r : rules()) {
      if (r.name == name) return r;
    }
    throw Error("no such rule");
  };
  Graph g;
  const Id f = g.add({Op::Input, {}, {0}, {Dtype::float32, {4}}}), f2 = g.add({Op::Input, {}, {1}, {Dtype::float32, {4}}});
  const Id i = g.add({Op::Input, {}, {2}, {Dtype::int32, {4}}});
  const Id one = graph::constant(g, Dtype::float32, 0x3f800000), zero = graph::constant(g, Dtype::float32, 0),
           minus = graph::constant(g, Dtype::float32, 0x80000000);
  auto matches = [&](std::string_view name, Op op, std::vector<Id> in) {
    Bindings b;
    return match(g, g[graph::elementwise(g, op, std::move(in))], find(name), b);
  };
  EXPECT_TRUE(matches("multiply_one", Op::Multiply, {f, one}));
  EXPECT_TRUE(matches("multiply_one", Op::Multiply, {one, f}));
  EXPECT_FALSE(matches("divide_one", Op::Divide, {one, f}));
  EXPECT_TRUE(matches("subtract_self", Op::Subtract, {i, i}));
  EXPECT_FALSE(matches("subtract_self", Op::Subtract, {f, f}));
  EXPECT_TRUE(matches("maximum_self", Op::Maximum, {f, f}));
  EXPECT_FALSE(matches("maximum_self", Op::Maximum, {f, f2}));
  EXPECT_TRUE(matches("add_minus_zero", Op::Add, {f, minus}));
  EXPECT_FALSE(matches("add_minus_zero", Op::Add, {f, zero}));
}

}  // namespace
}  // namespace sinter::passes
