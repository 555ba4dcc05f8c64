// A result takes the memory of an operand that nobody needs any more only where each element is written where it alone was read.
#include <gtest/gtest.h>
#include <omp.h>

#include "sinter/sinter.h"

namespace {

using namespace sinter;
using Arrays = std::vector<Array>;

struct Case {
  const char* name;
  Dtype dtype;
  int rows;  // x has this many, of n elements
  Arrays (*f)(Array x);
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};
// Each has a result of as many bytes as x, which is given away.
const Case kCases[] = {
    {"pointwise", float16, 1, [](Array x) { return Arrays{x * 2 + 1}; }},
    {"sum_in_a_wider_dtype", float16, 2, [](Array x) { return Arrays{x > 1, sum(x.astype(float32), 0)}; }},
    {"sum_in_a_wider_dtype_alone", float32, 2, [](Array x) { return Arrays{sum(x.astype(float64), 0)}; }},
    {"sum_of_bytes", uint8, 4, [](Array x) { return Arrays{x == 3, sum(x, 0)}; }},
    {"sum_of_flags", float16, 2, [](Array x) { return Arrays{x == max(x, 0, true), sum(where(x == x, 1.0f, 0.0f), 0)}; }},
    {"sum_of_neighbours", float16, 2,
     [](Array x) {
       Array pairs = reshape(x, {-1, 2});
       return Arrays{pairs > 1, sum(pairs.astype(float32), 1)};
     }},
    {"positions", uint16, 2, [](Array x) { return Arrays{x > 2, argmax(x, 0)}; }},
    {"first_half_widened", float16, 2, [](Array x) { return Arrays{take(x, 0, 0).astype(float32)}; }},
    {"second_half_widened", float16, 2, [](Array x) { return Arrays{take(x, 1, 0).astype(float32)}; }},
    {"shifted_down", float32, 1,
     [](Array x) {
       const Array flat = reshape(x, {-1});
       return Arrays{concatenate({slice(flat, {1}, {flat.size()}), ones({1})})};
     }},
    {"shifted_up", float32, 1, [](Array x) { return Arrays{concatenate({ones({1}), slice(reshape(x, {-1}), {0}, {-1})})}; }},
    {"columns_shifted", float32, 3, [](Array x) { return Arrays{pad(slice(x, {0, 1}, {3, x.shape(1)}), {{0, 0}, {1, 0}})}; }},
    {"reversed", float32, 3, [](Array x) { return Arrays{flip(x) + 1}; }},
    {"transposed", float32, 3, [](Array x) { return Arrays{x.T() + 1}; }},
    {"cumulative_backwards", float32, 3, [](Array x) { return Arrays{cumsum(x, 0, true), cumsum(x, 0)}; }},
};

class Overwrites : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { omp_set_num_threads(before_); }
  int before_ = omp_get_max_threads();
};

TEST_P(Overwrites, NothingThatIsStillRead) {
  const Case& c = GetParam();
  auto f = compile(c.f);
  for (int threads : {1, 4}) {
    omp_set_num_threads(threads);
    for (std::int64_t n : {5, 66, 1000, 50000}) {
      const Array x = random::randint(0, 7, {c.rows, n}, int32, random::key(static_cast<std::uint64_t>(n))).astype(c.dtype);
      const Arrays expected = c.f(x);
      eval(expected);
      // Memory that was a result of another kernel, and memory of an argument.
      auto inside = compile([g = c.f](const Array& v) { return g((v + v) * 1); });
      const Arrays doubled = c.f(x + x), made = inside(x);
      Array copy = x * 1;
      copy.eval();
      const Arrays got = f(std::move(copy));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(array_equal(got[i], expected[i]).item<bool>()) << threads << " threads, n " << n << ", result " << i;
        EXPECT_TRUE(array_equal(made[i], doubled[i]).item<bool>()) << threads << " threads, n " << n << ", result " << i << ", inside";
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Overwrites, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

}  // namespace
