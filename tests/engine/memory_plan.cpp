// The memory of a compiled call: what lives between steps lies in results that are not written yet, or where nothing is needed any more.
#include <gtest/gtest.h>

#include "sinter/sinter.h"
#include "support/thrown.h"

namespace {

using namespace sinter;
using Arrays = std::vector<Array>;

constexpr std::int64_t kRows = 256, kWide = 384, kNarrow = 128;

Array loss(const Arrays& in) {
  Array h = in[0];
  for (std::size_t i = 1; i < in.size(); ++i) h = relu(matmul(h, in[i]));
  return sum(h * h);
}
Arrays gradient(const Arrays& in) {
  return grad([&](Arrays w) {
    w.insert(w.begin(), in[0]);
    return loss(w);
  })(Arrays(in.begin() + 1, in.end()));
}

struct Case {
  const char* name;
  std::vector<Shape> inputs;
  Arrays (*f)(const Arrays&);
  std::int64_t most;  // bytes of arrays beside inputs and results
  const char* saved;  // in explain()
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};
constexpr std::int64_t kActivation = kRows * kWide * 4;
const Case kCases[] = {
    // Of three activations and their gradients no more than one is beside the gradients of the weights.
    {"gradient_of_products", {{kRows, kWide}, {kWide, kWide}, {kWide, kWide}, {kWide, kWide}}, gradient, 2 * kActivation, "in place"},
    {"chain_of_products",
     {{kRows, kNarrow}, {kNarrow, kNarrow}},
     [](const Arrays& in) {
       Array h = in[0];
       for (int i = 0; i < 6; ++i) h = tanh(matmul(h, in[1]));
       return Arrays{h};
     },
     kRows* kNarrow * 4,
     "by reuse"},
    // A small array beside a large result.
    {"inside_a_result",
     {{kRows, kWide}},
     [](const Arrays& in) {
       const Array means = cumsum(mean(in[0], 1));
       return Arrays{cumsum(expand_dims(means, 1) + in[0], 1), cumsum(in[0], 0)};
     },
     kActivation,
     "by reuse"},
    {"sums", {{kRows, kWide}}, [](const Arrays& in) { return Arrays{sum(in[0] * 2, 0), sum(in[0] + 1, 0)}; }, 1 << 16, "0 B by reuse"},
};

class MemoryPlan : public testing::TestWithParam<Case> {};

TEST_P(MemoryPlan, TakesNoMoreThanTheRegularCall) {
  const Case& c = GetParam();
  Arrays in;
  for (const Shape& s : c.inputs) in.push_back(random::normal(s, float32, 0, 0.1, random::key(in.size())));
  eval(in);
  auto f = compile(c.f, {.name = c.name});
  f(in);
  auto peak = [&](auto&& call) {
    const std::size_t before = active_memory();
    reset_peak_memory();
    const Arrays results = call();
    eval(results);
    return std::pair(static_cast<std::int64_t>(peak_memory() - before), results);
  };
  const auto [regular, expected] = peak([&] { return c.f(in); });
  const auto [compiled, results] = peak([&] { return f(in); });
  EXPECT_LE(compiled, regular + (1 << 20)) << f.explain();
  std::int64_t own = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    own += expected[i].nbytes();
    EXPECT_TRUE(array_equal(results[i], expected[i])) << i;
  }
  EXPECT_LE(compiled - own, c.most) << f.explain();
  EXPECT_TRUE(tests::has(f.explain(), "memory: ")) << f.explain();
  EXPECT_TRUE(tests::has(f.explain(), c.saved)) << f.explain();
}

INSTANTIATE_TEST_SUITE_P(All, MemoryPlan, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

// A result that takes an argument's memory cannot hold anything else before: what would have lain there has memory of its own.
TEST(MemoryPlan, GivenArgumentsAreIntactUntilTheyAreOverwritten) {
  auto step = [](const Arrays& in) {  // weights, input; a temporary array as large as each weight
    Arrays g = gradient({in[2], in[0], in[1]});
    return Arrays{in[0] - g[0] * 0.01, in[1] - g[1] * 0.01};
  };
  auto f = compile(step, {.name = "step"});
  auto start = [] {
    Arrays in;
    for (std::uint64_t i = 0; i < 3; ++i) in.push_back(random::normal({kRows, kRows}, float32, 0, 0.1, random::key(i)));
    eval(in);
    return in;
  };
  const Arrays expected = step(start());
  eval(expected);
  for (bool give : {false, true, true, false}) {
    Arrays in = start();
    const Arrays kept = give ? Arrays() : in;
    const Arrays results = f(std::move(in));
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(array_equal(results[i], expected[i])) << give << i;
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(array_equal(kept[i], start()[i])) << i;
  }
}

// Kernels of loops and blocks are told, and measured, too.
// A result of fewer axes than its kernel goes over is written while what it could be written over is still to be read along the others.
TEST(MemoryPlan, ResultsOfFewerAxesLeaveWhatIsReadAgain) {
  using Function = Array (*)(const Array& w, const Array& t);
  constexpr Function functions[] = {
      [](const Array& w, const Array& t) {
        const Array h = tanh(w), c = cumsum(w, 0);
        return sum(t * c, 0) * h + cumsum(sum(t * h * c, 0), 0);
      },
      [](const Array& w, const Array& t) {
        const Array h = exp(w), c = cummax(w, 0);
        return cumsum(sum(t * (h + c), 0) - h, 0) * h;
      },
      [](const Array& w, const Array& t) {
        const Array h = sin(w), c = sort(w, 0);
        return sort(max(t * c - h, 0), 0) + h * c;
      },
  };
  for (const Dtype dtype : {float32, float64, float16})
    for (const Function f : functions)
      for (const int rows : {1, 2, 5})
        for (const int n : {1, 2, 7, 15, 16, 17, 31, 32, 40, 65, 130}) {
          const Array w = linspace(-1, 1, n).astype(dtype), t = (ones({rows, n}) + arange(rows, float32).reshape({rows, 1})).astype(dtype);
          EXPECT_TRUE(array_equal(compile(f)(w, t), f(w, t)).item<bool>()) << dtype << ' ' << rows << 'x' << n;
        }
}

TEST(Explain, TellsOfKernelsInLoopsAndBlocks) {
  auto attention = compile([](const Array& q) { return scaled_dot_product_attention(q, q, q, 0.25); }, {.name = "attention"});
  auto loop = compile(
      [](const Array& x) { return while_loop([](const Array& y) { return sum(y) < 100; }, [](const Array& y) { return y * 2; }, x); },
      {.name = "loop"});
  const Array q = ones({2, 2, 64, 16}), x = ones({10});
  std::string told[2];
  for (int i = 0; i < 2; ++i) {
    attention(q), loop(x);
    told[0] = attention.explain(), told[1] = loop.explain();
  }
  EXPECT_TRUE(tests::has(told[0], "  blocks, ")) << told[0];
  EXPECT_TRUE(tests::has(told[1], "  while_loop, ")) << told[1];
  for (const std::string& text : told) {
    EXPECT_TRUE(tests::has(text, ", each time:\n      memory: ")) << text;
    EXPECT_TRUE(tests::has(text, " instructions; measured ")) << text;
  }
}

}  // namespace
