// Arrays of three axes that lie in memory in any order, forwards and backwards, give what their row-major copies give: reductions of any
// axes, which may or may not be walked as one, and what comes back to their places.
#include <gtest/gtest.h>

#include "sinter/sinter.h"

namespace {

using namespace sinter;

struct Case {
  const char* name;
  Array (*f)(const Array& x, const Axes& axes);
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};
const Case kCases[] = {
    {"largest", [](const Array& x, const Axes& axes) { return max(x, axes); }},
    {"squares", [](const Array& x, const Axes& axes) { return sum(x * x, axes); }},
};

class Layouts : public testing::TestWithParam<Case> {};

TEST_P(Layouts, OfAnyOrderGiveTheSameBits) {
  const std::vector<std::vector<int>> orders{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const Shape shape{65, 5, 18};
  for (const std::vector<int>& order : orders)
    for (bool backwards : {false, true}) {
      // x has the shape; order[d] is the place of its axis d in memory.
      std::vector<int> sorted(3);
      for (int d = 0; d < 3; ++d) sorted[static_cast<std::size_t>(order[static_cast<std::size_t>(d)])] = d;
      Shape in_memory;
      for (int d : sorted) in_memory.push_back(shape[static_cast<std::size_t>(d)]);
      Array memory = random::normal(in_memory, float32, 0, 1, random::key(1));
      memory.eval();
      Array x = transpose(memory, order);
      if (backwards) x = flip(x);
      const Array copy(x.to_vector<float>(), shape);
      for (int some = 1; some < 8; ++some) {
        std::vector<int> axes;
        for (int d = 0; d < 3; ++d)
          if (some >> d & 1) axes.push_back(d);
        const Array expected = GetParam().f(copy, axes);
        EXPECT_TRUE(array_equal(GetParam().f(x, axes), expected).item<bool>())
            << "axes " << some << ", layout " << testing::PrintToString(order);
        auto f = compile([&](const Array& v) { return GetParam().f(v, axes); });
        EXPECT_TRUE(array_equal(f(x), expected).item<bool>())
            << "compiled, axes " << some << ", layout " << testing::PrintToString(order) << backwards;
      }
    }
}
INSTANTIATE_TEST_SUITE_P(All, Layouts, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

}  // namespace
