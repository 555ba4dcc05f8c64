// Branches and loops on arrays that a compiled function holds by value: they are constants of it, but for the sizes of a call in a body.
#include <gtest/gtest.h>

#include "sinter/sinter.h"

namespace {

using namespace sinter;
using Arrays = std::vector<Array>;

struct Case {
  const char* name;
  Arrays (*f)(const Array& held, const Array& x);
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};
const Case kCases[] = {
    {"one_result_of_a_size_that_changes",
     [](const Array& held, const Array& x) {
       auto both = [&](const Array& v) { return Arrays{ones(x.shape()), v}; };
       return cond(sum(held) > 0, both, both, held);
     }},
    {"a_number_that_is_a_size",
     [](const Array& held, const Array& x) {
       auto scaled = [&](const Array& v) { return v * x.size(); };
       return Arrays{cond(sum(held) > 0, scaled, scaled, held), x};
     }},
    {"as_many_steps_as_rows",
     [](const Array& held, const Array& x) {
       return Arrays{fori_loop(0, 3, [&](const Array& i, const Array& v) { return v + i * x.shape(0); }, held), x};
     }},
    {"within_a_body",
     [](const Array& held, const Array& x) {
       auto inner = [&](const Array& v) { return v / x.shape(0); };
       auto outer = [&](const Array& v) { return cond(sum(v) > 100, inner, inner, v); };
       return Arrays{cond(sum(held) > 0, outer, outer, held), x};
     }},
    {"looked_at",
     [](const Array& held, const Array& x) {
       auto scaled = [&](const Array& v) { return v * x.size(); };
       return Arrays{x * cond(sum(held) > 0, scaled, scaled, sum(held)).item<float>()};
     }},
    {"one_result_looked_at_and_a_large_one",
     [](const Array& held, const Array& x) {
       auto both = [](const Array& v) { return Arrays{broadcast_to(v, {200000, 3}) * 2, sum(v)}; };
       const Arrays results = cond(sum(held) > 0, both, both, held);
       return Arrays{results[0], x * results[1].item<float>()};
     }},
};

class Constants : public testing::TestWithParam<Case> {};

TEST_P(Constants, FollowTheSizesOfACall) {
  Array held({1.f, 2.f, 3.f});
  auto regular = [held](const Array& x) { return GetParam().f(held, x); };
  auto automatic = compile(regular), shapeless = compile(regular, true);
  for (std::int64_t n : {1, 3, 2, 5, 2, 0}) {
    const Array x = arange(n).astype(float32) + 1;
    const Arrays expected = regular(x);
    for (auto& f : {automatic, shapeless}) {
      const Arrays got = f(x);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(array_equal(got[i], expected[i]).item<bool>()) << "n " << n << ", result " << i << ": " << got[i] << expected[i];
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Constants, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

}  // namespace
