// How kernels are made: well, or quickly where they do little of a plan's work; and again where the same text does much of another's.
#include <gtest/gtest.h>

#include <bit>

#include "engine/kernel_store.h"

namespace sinter::tests {
namespace {

kernel::Kernel times(float k) {
  kernel::Builder b;
  b.buffer(float32, true);
  const kernel::Ref i = b.loop(kernel::LoopKind::Vector, b.index(0), b.arg(), 4);
  b.store(0, i, b.compute(ops::Op::Multiply, float32, b.load(0, i), b.constant(float32, std::bit_cast<std::uint32_t>(k))));
  b.end();
  b.kernel.name = "times";
  return b.kernel;
}

// How many kernels that multiply by these factors are made.
std::int64_t made(const std::vector<float>& factors, const engine::Worth& worth = {}) {
  std::vector<kernel::Kernel> kernels;
  for (float k : factors) kernels.push_back(times(k));
  engine::KernelCost cost;
  const auto loaded = engine::load_kernels(kernels, false, cost, worth);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    std::vector<float> v(83), expected;
    for (std::size_t i = 0; i < v.size(); ++i) expected.push_back(factors[k] * (v[i] = static_cast<float>(i)));
    const std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(v.data()), v.size()};
    loaded[k]->run(0, 1, block, 0);
    EXPECT_EQ(v, expected);
  }
  return cost.generated + cost.from_disk;
}

TEST(Worth, WhatDoesLittleIsMadeAgainWhereItDoesMuch) {
  constexpr float kMuch = 1041.5f, kLittle = 1042.5f;
  const engine::Worth worth{{{1e6, 1000}, {1e3, 1000}}};
  EXPECT_EQ(made({kMuch, kLittle}, worth), 2);
  EXPECT_EQ(made({kMuch, kLittle}, worth), 0);
  EXPECT_EQ(made({kMuch}), 0) << "was made well";
  EXPECT_EQ(made({kLittle}), 1) << "was made quickly";
  EXPECT_EQ(made({kMuch, kLittle}, worth), 0) << "what is made well serves everywhere";
}

TEST(Worth, WhatMovesMuchIsMadeWell) {
  EXPECT_EQ(made({1043.5f, 1044.5f}, {{{1e6, 1000}, {1e3, 1 << 20}}}), 2);
  EXPECT_EQ(made({1044.5f}), 0);
}

// Nine kernels that do a hundredth each: together they do more than a plan may do slowly.
TEST(Worth, LittleIsWhatAllOfThemDo) {
  std::vector<float> factors{1050.5f};
  engine::Worth worth{{{1e6, 1000}}};
  for (int i = 1; i < 10; ++i) {
    factors.push_back(1050.5f + static_cast<float>(i));
    worth.launches.push_back({1e4, 1000});
  }
  EXPECT_EQ(made(factors, worth), 10);
  EXPECT_EQ(made(factors), 0);
}

TEST(Worth, OfAPlanThatRunsOnceLittleIsInterpreted) {
  EXPECT_EQ(made({1071.5f, 1072.5f}, {{{1e9, 1000}, {1e3, 1000}}, true}), 1);
  EXPECT_EQ(made({1071.5f}), 1) << "was made quickly";
  EXPECT_EQ(made({1072.5f}), 1) << "was interpreted";
}

}  // namespace
}  // namespace sinter::tests
