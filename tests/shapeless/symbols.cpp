// Expressions of sizes, and the guards that they leave.
#include "base/symbols.h"

#include <gtest/gtest.h>

#include "graph/build.h"
#include "passes/decompose.h"
#include "passes/fuse.h"
#include "passes/pass.h"
#include "support/thrown.h"

namespace sinter {
namespace {

using base::Guards;
using base::OpenSymbols;
using base::Symbols;

struct Table : ::testing::Test {
  Symbols symbols;
  Guards guards;
  Dim n = symbols.input(5, "x.shape(0)"), m = symbols.input(3, "x.shape(1)");
  OpenSymbols open{symbols, guards};

  ::std::string text(const Dim& d) const { return symbols.text(d); }
  ::std::int64_t at(const Dim& d, ::std::int64_t a, ::std::int64_t b) const {
    const ::std::int64_t sizes[] = {a, b};
    return base::peek(symbols.at(*symbols.evaluate(sizes), d));
  }
  ::std::vector<::std::string> texts() const { return symbols.texts(guards); }
  using Texts = ::std::vector<::std::string>;
};

TEST_F(Table, ArithmeticIsSymbolicAndCanonical) {
  EXPECT_EQ(text(n * m + 2), "s0*s1 + 2");
  EXPECT_EQ(text((n + m) * (n - m)), "s0*s0 - s1*s1");
  EXPECT_EQ(text(2 * n - n - n), "0");
  EXPECT_EQ(text(n * m / n), "s1");
  EXPECT_EQ(text((4 * n + 8 * m) / 4), "s0 + 2*s1");
  EXPECT_EQ(text((n + 1) / 2), "(s0 + 1)/2");
  EXPECT_EQ(text(n * 6 % 3), "0");
  EXPECT_EQ(text(-n), "-s0");
  EXPECT_TRUE(base::same((n + 1) * 2, 2 * n + 2));
  EXPECT_FALSE(base::same(n, m));
  EXPECT_EQ(at((n * n + m) / 2 - m % 2, 7, 4), 26);
  EXPECT_EQ(at((n + 1) / 2, 8, 0), 4);
  EXPECT_EQ(texts(), (Texts{"s0 >= 1"})) << "of a division by n alone";
}

TEST_F(Table, WhatLooksAtANumberLeavesAGuard) {
  int steps = 0;
  for (::std::int64_t i = 0; i < n; ++i) ++steps;  // one guard
  EXPECT_EQ(steps, 5);
  EXPECT_EQ(texts(), (Texts{"s0 == 5"}));
  guards.clear();
  EXPECT_TRUE(m < 10 && m != 1 && m != 7);
  EXPECT_FALSE(m == 4);
  EXPECT_EQ(texts(), (Texts{"s1 <= 9", "s1 != 1", "s1 != 7", "s1 != 4"}));
  EXPECT_TRUE(Symbols::hold(guards, *symbols.evaluate(::std::vector<::std::int64_t>{1, 9})));
  for (::std::int64_t no : {1, 4, 7, 10})
    EXPECT_FALSE(Symbols::hold(guards, *symbols.evaluate(::std::vector<::std::int64_t>{1, no}))) << no;
  guards.clear();
  EXPECT_TRUE(n > m);
  EXPECT_EQ(texts(), (Texts{"s0 >= s1 + 1"}));
  guards.clear();
  EXPECT_FALSE(n * m == 0);
  EXPECT_EQ(texts(), (Texts{"s0 >= 1", "s1 >= 1"}));
  guards.clear();
  const ::std::int64_t number = 2 * m;
  EXPECT_EQ(number, 6);
  EXPECT_EQ(texts(), (Texts{"2*s1 == 6"}));
}

TEST_F(Table, WhatIsKnownLeavesNone) {
  EXPECT_TRUE(n >= 0 && n + m >= 0 && n > -1 && n == n && n + 1 > n && n * m >= 0);
  EXPECT_FALSE(n + 1 == n);
  EXPECT_TRUE(guards.empty()) << texts()[0];
}

TEST_F(Table, AppliedFunctionsFollow) {
  const auto half = [](::std::span<const ::std::int64_t> in) { return in[0] > in[1] ? in[0] / 2 : in[1]; };
  const Dim d = base::apply("half", half, {n, m}, 0);
  EXPECT_EQ(base::peek(d), 2);
  EXPECT_EQ(text(d + 1), "half(s0, s1) + 1");
  EXPECT_EQ(at(d, 2, 9), 9);
  EXPECT_TRUE(d >= 0);
  EXPECT_TRUE(guards.empty());
  EXPECT_FALSE(base::changes(base::apply("half", half, {8, 2})));
}

TEST_F(Table, WhatCannotBeComputedHoldsNothing) {
  const Dim d = n / m, big = n * n * n * n;
  EXPECT_FALSE(symbols.evaluate(::std::vector<::std::int64_t>{4, 0}));
  EXPECT_FALSE(symbols.evaluate(::std::vector<::std::int64_t>{::std::int64_t{1} << 40, 1}));
  EXPECT_NE(tests::thrown<ShapeError>([&] { static_cast<void>(n / (m - 3)); }), "");
  static_cast<void>(d), static_cast<void>(big);
}

// Else they would run again for each size.
TEST_F(Table, PassesFixNoSize) {
  for (const Dtype t : {float32, float64, float16}) {
    for (const bool library : {true, false}) {
      graph::Graph g;
      const graph::Id queries = g.add({ops::Op::Input, {}, {0}, {t, {m, 1, 64}}}),
                      keys = g.add({ops::Op::Input, {}, {1}, {t, {m, 64, n + 40}}});
      const graph::Id scores = g.add({ops::Op::Matmul, {queries, keys}, {}, {t, {m, 1, n + 40}}});
      const graph::Id powers = graph::elementwise(g, ops::Op::Exp, {scores});
      const graph::Id sums = graph::reshape(g, graph::reduce(g, ops::Op::Sum, powers, {2}, t), {m, 1, 1});
      g.set_outputs({graph::elementwise(g, ops::Op::Divide, {powers, graph::broadcast(g, sums, {m, 1, n + 40})})});
      passes::Context context;
      passes::fuse(passes::run_pipeline(passes::decompose(g, [&](Dtype) { return library; }), context), {});
      for (const ::std::string& guard : texts()) EXPECT_EQ(guard.find("=="), ::std::string::npos) << guard << ", " << t;
    }
  }
  EXPECT_FALSE(guards.empty());
}

TEST_F(Table, DimsOfAnotherTableAreNumbers) {
  Symbols other;
  Guards none;
  const Dim k = other.input(9, "y");
  EXPECT_EQ(text(n + k), "s0 + 9");
  EXPECT_TRUE(k > 3);
  EXPECT_TRUE(none.empty() && guards.empty());
}

TEST(Symbols, AreNumbersWhereNoTableIsOpen) {
  Symbols symbols;
  const Dim n = symbols.input(5, "x");
  EXPECT_EQ(n * 2, 10);
  EXPECT_EQ(static_cast<::std::int64_t>(n), 5);
}

}  // namespace
}  // namespace sinter
