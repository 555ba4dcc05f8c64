// Results do not depend on the number of threads, and memory stays at what a call needs.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstring>

#include "engine/kernel_store.h"
#include "sinter/sinter.h"

namespace {

using namespace sinter;

struct Case {
  const char* name;
  Array (*f)(const Array&);
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};
const Case kCases[] = {
    {"pointwise", [](const Array& x) { return exp(-x) + x; }},
    {"transposed", [](const Array& x) { return x.T() * 2 + 1; }},
    {"transposed_and_not", [](const Array& x) { return reshape(x, {700, 1500}).T() * x; }},
    {"transposed_softmax", [](const Array& x) { return softmax(reshape(x, {700, 1500}).T() + x, -1); }},
    {"transposed_columns", [](const Array& x) { return sum(reshape(x, {700, 1500}).T() * x, 0); }},
    {"sum_all", [](const Array& x) { return sum(exp(x)); }},
    {"sum_rows", [](const Array& x) { return sum(x * x, 1); }},
    {"sum_columns", [](const Array& x) { return sum(x * x, 0); }},
    {"variance", [](const Array& x) { return var(x, 0); }},
    {"largest", [](const Array& x) { return argmax(x); }},
    {"softmax", [](const Array& x) { return softmax(x, -1); }},
    {"cumsum", [](const Array& x) { return cumsum(x, 1); }},
    {"cumprod", [](const Array& x) { return cumprod(1 + 1e-3 * x, 0); }},
    {"sort", [](const Array& x) { return sort(x, 1); }},
    {"sort_columns", [](const Array& x) { return sort(x, 0) + random::permutation(x, random::key(1)); }},
    {"solve", [](const Array& x) { return linalg::solve(slice(x, {0, 0}, {700, 700}), transpose(slice(x, {0, 0}, {9, 700}))); }},
    {"many_systems", [](const Array& x) { return linalg::solve(reshape(slice(x, {0, 0}, {900, 700}), {700, 30, 30}), ones({30})); }},
    {"layer_norm", [](const Array& x) { return (x - mean(x, 1, true)) * rsqrt(var(x, 1, true) + 1e-5); }},
    {"long_rows", [](const Array& x) { return log_softmax(reshape(x, {20, 52500}), 1); }},
    {"concatenate", [](const Array& x) { return concatenate({x, exp(x)}, 0); }},
};

class Threads : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { omp_set_num_threads(before_); }
  int before_ = omp_get_max_threads();
};

TEST_P(Threads, SameBitsWithAnyNumber) {
  Array x = random::normal({1500, 700}, float32, 0, 1, random::key(3));
  x.eval();
  std::vector<float> first;
  for (int n : {1, 2, 3, 4}) {
    omp_set_num_threads(n);
    for (bool compiled : {false, true}) {
      std::vector<float> got = (compiled ? compile(GetParam().f)(x) : GetParam().f(x)).to_vector<float>();
      if (first.empty()) first = got;
      ASSERT_EQ(got.size(), first.size());
      EXPECT_EQ(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)), 0) << n << " threads, compiled " << compiled;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Threads, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

TEST(Memory, OneKernelTakesItsOutputsAlone) {
  auto gelu = compile([](const Array& x) { return 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x * x * x))); });
  Array x = ones({1000, 1000});
  gelu(x);
  std::size_t before = active_memory();
  reset_peak_memory();
  Array y = gelu(x);
  EXPECT_EQ(peak_memory() - before, static_cast<std::size_t>(y.nbytes()));
}

TEST(Memory, TransposedReadsTakeAMebibyteAThread) {
  using Function = Array (*)(const Array&);
  for (Function function : {+[](const Array& x) { return x.T() + 1; }, +[](const Array& x) { return softmax(x.T(), -1); }}) {
    auto f = compile(function);
    Array x = ones({1100, 1000});
    f(x);
    std::size_t before = active_memory();
    reset_peak_memory();
    Array y = f(x);
    EXPECT_LE(peak_memory() - before, static_cast<std::size_t>(y.nbytes() + (omp_get_max_threads() << 20)));
  }
}

TEST(Memory, StateIsUpdatedInPlace) {
  struct Moments {
    Array p, m;
    SINTER_FIELDS(p, m)
  };
  auto step = compile([](Moments& s, const Array& g) {
    s.m = 0.9 * s.m + g;
    s.p = s.p - 0.1 * s.m;
  });
  Moments s{ones({1000, 100}), zeros({1000, 100})};
  Array g = ones({1000, 100});
  step(s, g);
  const void *p = s.p.data<float>(), *m = s.m.data<float>();
  std::size_t before = active_memory();
  reset_peak_memory();
  for (int i = 0; i < 3; ++i) step(s, g);
  EXPECT_EQ(peak_memory(), before);
  EXPECT_EQ(s.p.data<float>(), p);
  EXPECT_EQ(s.m.data<float>(), m);
  Array held = s.p;  // somebody else's now: not to be overwritten
  float old = held.to_vector<float>()[0];
  step(s, g);
  EXPECT_EQ(held.to_vector<float>()[0], old);
  EXPECT_NE(s.p.to_vector<float>()[0], old);
}

TEST(Memory, ClearCacheForgetsTheKernelsOfRegularCallsToo) {
  (exp(ones({100})) * 3).eval();
  compile([](const Array& x) { return exp(x) - 2; })(ones({100}));
  EXPECT_GT(engine::kernel_count(), 0);
  clear_cache();
  EXPECT_EQ(engine::kernel_count(), 0);
  EXPECT_EQ((exp(zeros({100})) * 3).to_vector<float>()[7], 3);
}

TEST(Memory, RegularOperationsReuseWhatNobodyHolds) {
  Array x = ones({1000, 1000});
  x.eval();
  std::size_t before = active_memory();
  reset_peak_memory();
  Array y = exp(-x) * 2 + 1;
  y.eval();
  EXPECT_EQ(peak_memory() - before, static_cast<std::size_t>(y.nbytes()));
}

}  // namespace
