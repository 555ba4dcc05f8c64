// Kernels of well-known functions, and the memory that they move: a lost fusion fails here rather than in a benchmark.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "engine/kernel_store.h"
#include "sinter/sinter.h"

namespace {

using namespace sinter;
using Function = std::vector<Array> (*)(const std::vector<Array>&);

struct Case {
  const char* name;
  Function f;
  int inputs;
  int kernels, loads, stores;  // of whole arrays: an array is loaded or stored once an element
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

Array normal_cdf(const Array& x) { return 0.5 * (1 + erf(x / ::std::sqrt(2.0))); }
std::vector<Array> black_scholes(const std::vector<Array>& in) {
  const Array &s = in[0], &k = in[1], &t = in[2];
  const double r = 0.03, v = 0.2;
  Array root = sqrt(t), d1 = (log(s / k) + (r + v * v / 2) * t) / (v * root), d2 = d1 - v * root;
  return {s * normal_cdf(d1) - k * exp(-r * t) * normal_cdf(d2)};
}
std::vector<Array> adam(const std::vector<Array>& in) {
  Array m = 0.9 * in[2] + 0.1 * in[1], v = 0.999 * in[3] + 0.001 * in[1] * in[1];
  return {in[0] - 1e-3 * m / (sqrt(v) + 1e-8), m, v};
}

const Case kCases[] = {
    {"expneg_add", [](const std::vector<Array>& in) { return std::vector<Array>{exp(-in[0]) + in[1]}; }, 2, 1, 2, 1},
    {"gelu_erf", [](const std::vector<Array>& in) { return std::vector<Array>{in[0] * (1 + erf(in[0] / ::std::sqrt(2.0))) / 2}; }, 1, 1, 1,
     1},
    {"gelu_tanh",
     [](const std::vector<Array>& in) {
       const Array& x = in[0];
       return std::vector<Array>{0.5 * x * (1 + tanh(::std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))};
     },
     1, 1, 1, 1},
    {"black_scholes", black_scholes, 3, 1, 3, 1},
    {"adam", adam, 4, 1, 4, 3},
    {"sum_of_exp_times_y", [](const std::vector<Array>& in) { return std::vector<Array>{sum(exp(in[0]) * in[1])}; }, 2, 1, 2, 1},
    {"product_beside_its_sum", [](const std::vector<Array>& in) { return std::vector<Array>{in[0] * 2, sum(in[0] * 2)}; }, 1, 1, 1, 2},
    {"two_sums_of_one_array", [](const std::vector<Array>& in) { return std::vector<Array>{sum(in[0]), sum(square(in[0]))}; }, 1, 1, 1, 2},
    {"softmax", [](const std::vector<Array>& in) { return std::vector<Array>{softmax(in[0], -1)}; }, 1, 1, 3, 2},
    {"log_softmax", [](const std::vector<Array>& in) { return std::vector<Array>{log_softmax(in[0], -1)}; }, 1, 1, 3, 1},
    {"layer_norm",
     [](const std::vector<Array>& in) {
       Array centred = in[0] - mean(in[0], -1, true);
       return std::vector<Array>{centred * rsqrt(mean(square(centred), -1, true) + 1e-5) * in[1] + in[2]};
     },
     3, 1, 5, 1},
    {"rms_norm",
     [](const std::vector<Array>& in) { return std::vector<Array>{in[0] * rsqrt(mean(square(in[0]), -1, true) + 1e-5) * in[1]}; }, 2, 1, 3,
     1},
    {"variance_of_rows", [](const std::vector<Array>& in) { return std::vector<Array>{var(in[0], 1), sqrt(mean(in[0], 1))}; }, 1, 1, 2, 2},
    {"softmax_of_columns", [](const std::vector<Array>& in) { return std::vector<Array>{softmax(in[0], 0)}; }, 1, 1, 3, 2},
    {"centered_columns", [](const std::vector<Array>& in) { return std::vector<Array>{in[0] - mean(in[0], 0, true)}; }, 1, 1, 2, 1},
    {"cross_entropy",
     [](const std::vector<Array>& in) {
       Array label = astype(expand_dims(arange(24, Dtype::int32), 1), Dtype::int32);
       return std::vector<Array>{logsumexp(in[0], -1) - squeeze(take_along_axis(in[0], label, 1), 1)};
     },
     1, 1, 4, 1},
    {"softmax_and_its_gradient",
     [](const std::vector<Array>& in) {
       Array e = exp(in[0] - max(in[0], -1, true)), s = e / sum(e, -1, true);
       return std::vector<Array>{s * (in[1] - sum(s * in[1], -1, true))};
     },
     2, 1, 6, 2},
    {"transposed_read", [](const std::vector<Array>& in) { return std::vector<Array>{exp(in[0].T()).T() + in[1]}; }, 2, 1, 2, 1},
    {"tiles_of_a_transposed_read",
     [](const std::vector<Array>& in) { return std::vector<Array>{(reshape(in[0], {20, 48}).T() + 1) * reshape(in[1], {48, 20})}; }, 2, 1,
     2, 1},
    {"pad", [](const std::vector<Array>& in) { return std::vector<Array>{exp(pad(in[0] * 2, 1, 3))}; }, 1, 1, 1, 1},
    {"sums_of_padded_rows", [](const std::vector<Array>& in) { return std::vector<Array>{sum(exp(pad(square(in[0]), {1, 2})), 1)}; }, 1, 1,
     1, 1},
    {"softmax_of_two_in_a_row", [](const std::vector<Array>& in) { return std::vector<Array>{exp(concatenate({in[0] * 2, in[1]}, 1))}; }, 2,
     1, 2, 1},
    {"halves_in_another_order",
     [](const std::vector<Array>& in) {
       const auto halves = split(in[0], 2, 1);
       return std::vector<Array>{concatenate({-halves[1], halves[0]}, 1) * in[1] + in[0]};
     },
     2, 1, 4, 1},
    {"product_of_a_shared_matrix",
     [](const std::vector<Array>& in) { return std::vector<Array>{matmul(in[0], reshape(in[1], {3, 40, 8}))}; }, 2, 0, 0, 0},
    {"cumulative_between_functions", [](const std::vector<Array>& in) { return std::vector<Array>{cumsum(exp(in[0]), 0) * in[1] + in[0]}; },
     2, 1, 2, 1},
    {"cumulative_and_what_it_is_made_of",
     [](const std::vector<Array>& in) {
       const Array x = in[0] * 2, c = cumsum(x, 1);
       return std::vector<Array>{c, c + 1};
     },
     1, 1, 1, 2},
    {"gradient_of_parts",
     [](const std::vector<Array>& in) {
       const auto gated = [](const Array& x) {
         const auto p = split(x, {8, 20}, 0);
         return sum(exp(p[0])) + sum(sigmoid(p[1]) * square(p[1])) + sum(tanh(p[2]));
       };
       return std::vector<Array>{grad(gated)(in[0])};
     },
     1, 3, 3, 3},
};

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

class Counts : public testing::TestWithParam<Case> {};

TEST_P(Counts, KernelsAndMemory) {
  const Case& c = GetParam();
  std::vector<Array> in;
  for (int i = 0; i < c.inputs; ++i) in.push_back(full({24, 40}, 0.5 + i));
  auto compiled = compile(c.f, {.name = c.name});
  std::string text = compiled.kernels(in);
  EXPECT_EQ(count(text, "\nlaunch ") + (text.rfind("launch ", 0) == 0), c.kernels) << text;
  int scratch_loads = 0, scratch_stores = 0;
  for (std::size_t at = text.find(": float32 scratch"); at != std::string::npos; at = text.find(": float32 scratch", at + 1)) {
    const std::size_t name = text.rfind(' ', at - 1);
    scratch_loads += count(text, " load" + text.substr(name, at - name) + "[");
    scratch_stores += count(text, " store" + text.substr(name, at - name) + "[");
  }
  EXPECT_EQ(count(text, " load ") - scratch_loads + count(text, " tile "), c.loads) << text;
  EXPECT_EQ(count(text, " store ") - scratch_stores + count(text, "\nstore "), c.stores) << text;
  EXPECT_EQ(count(text, "interpreted"), 0);
  EXPECT_EQ(count(compiled.explain(), "not fused"), count(compiled.explain(), "it is computed in its part of a larger array"))
      << compiled.explain();
}

INSTANTIATE_TEST_SUITE_P(All, Counts, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

Array gamma_like(const Array& x) { return exp(log(x + 1) * 3) + sin(x); }  // too much work to do twice

TEST(Order, OfALaterLaunchIsTheOther) {
  auto f = compile([](const Array& x) { return mean(square(x - mean(x, 0, true)), 0); }, {.name = "variance"});
  std::string large = f.kernels(zeros({2000, 300})), small = f.kernels(zeros({200, 30}));
  EXPECT_EQ(count(large, "backward"), 1) << large;
  EXPECT_EQ(count(small, "backward"), 0) << small;
}

TEST(Explain, TellsWhatAKernelMovesAndReaches) {
  auto f = compile([](const Array& x, const Array& y) { return (x + expand_dims(y, 1)).T() * 2; }, {.name = "moved"});
  const Array x = zeros({1000, 2000}), y = zeros({1000});
  f(x, y);
  const std::string first = f.explain();
  EXPECT_NE(first.find("    add_multiply: 16 MB, "), std::string::npos) << first;
  EXPECT_NE(first.find("instructions; at least "), std::string::npos) << first;
  EXPECT_EQ(first.find("measured"), std::string::npos) << first;
  f(x, y);
  const std::string second = f.explain();
  EXPECT_NE(second.find(" ms at "), std::string::npos) << second;
  EXPECT_NE(second.find("; measured "), std::string::npos) << second;
  EXPECT_NE(second.find(" of what memory gives"), std::string::npos) << second;
}

TEST(Explain, SaysWhyNeighboursDidNotFuse) {
  struct Refused {
    Array (*f)(const Array&);
    Shape shape;
    const char* reason;
  };
  const Refused cases[] = {
      {[](const Array& x) { return concatenate({x * 2, x + 1}); }, {4, 5}, "it is computed in its part of a larger array"},
      {[](const Array& x) { return concatenate({sum(x, 0), sum(x, 1)}); }, {4, 5}, "it is copied into a larger array"},
      {[](const Array& x) { return cumsum(gamma_like(x), 1); }, {4, 5}, "it is too much work for steps that wait for each other"},
      {[](const Array& x) { return flip(cumsum(x, 1)) + 1; },
       {4, 5},
       "its elements are made one after the other, and it is read in another"},
      {[](const Array& x) { return pad(gamma_like(x), {0, 100}); }, {4, 5}, "it is read at other places; others need it, or to compute it"},
      {[](const Array& x) { return x - mean(x, 0, true); },
       {4, 5},
       "the reduction's rows are few, far apart and long, or along axes apart"},
      {[](const Array& x) { return x - mean(x, 0, true); },
       {2000, 50},
       "the reduction's rows are few, far apart and long, or along axes apart"},
      {[](const Array& x) { return x - mean(x, 1, true); },
       {2, 20000},
       "the reduction's rows are few, far apart and long, or along axes apart"},
      {[](const Array& x) { return x - mean(x, {0, 2}, true); },
       {4, 5, 6},
       "the reduction's rows are few, far apart and long, or along axes apart"},
      {[](const Array& x) { return x - sum(x, 1); }, {5, 5}, "it is read in other rows than its own"},
      {[](const Array& x) { return gamma_like(x) - max(gamma_like(x), 1, true); },
       {4, 5},
       "the kernel would pass over its rows too often, or repeat too much work"},
  };
  for (const Refused& c : cases) {
    auto f = compile(c.f, {.name = "center"});
    f(zeros(c.shape));
    EXPECT_NE(f.explain().find(c.reason), std::string::npos) << f.explain();
  }
}

// What a trace computes of constants: nobody makes kernels for a little work, and few for more.
TEST(ConstantsOfATrace, NeedFewKernels) {
  struct Constants {
    const char* name;
    Array (*f)(const Array&);
    Shape shape;
    int kernels;  // of the call, and those that the trace adds to the store
  };
  const Constants cases[] = {
      {"little", [](const Array& x) { return x * sin(astype(arange(40) % 7, float32)) + cumsum(x, 0) * 0; }, {40}, 2},
      {"two_that_share",
       [](const Array& x) {
         const Array places = astype(arange(56) % 11, float32) / 3;
         return x * reshape(cos(places), {7, 8}) + max(reshape(cos(places), {7, 8}), 1, true) - sum(reshape(places, {7, 8}), 0);
       },
       {7, 8},
       1},
      {"much", [](const Array& x) { return x + tan(astype(arange(60000) % 13, float32) / 7 - 3.5); }, {60000}, 2},
      {"a_sum", [](const Array& x) { return x * cumsum(astype(arange(33) % 5, float32), 0); }, {33}, 1},
  };
  for (const Constants& c : cases) {
    const Array x = full(c.shape, 0.37f);
    x.eval();
    auto f = compile(c.f, {.name = c.name});
    clear_cache();
    const std::int64_t before = engine::kernel_count();
    const Array compiled = f(x);
    EXPECT_EQ(engine::kernel_count() - before, c.kernels) << c.name;
    EXPECT_EQ(compiled.to_vector<float>(), c.f(x).to_vector<float>()) << c.name;
  }
}

}  // namespace
