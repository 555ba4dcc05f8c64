// Stores past the caches: who takes them, and that results of every dtype and layout are those of ordinary stores, at any number of
// threads.
#include <gtest/gtest.h>
#include <omp.h>

#include "base/knobs.h"
#include "engine/memory.h"
#include "sinter/sinter.h"
#include "support/graphs.h"

namespace {

using namespace sinter;

// Rows of results depend on the same rows of x alone. Of some rows at once the result is stored past the caches, of fewer it is not.
struct Case {
  const char* name;
  Dtype dtype;
  std::int64_t columns;
  Array (*f)(const Array&);
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};
Array twice(const Array& x) { return x * x + x; }
const Case kCases[] = {
    {"float32", float32, 1024, [](const Array& x) { return exp(-x) + x; }},
    {"odd_rows", float32, 1031, [](const Array& x) { return softmax(x, 1) + 1; }},
    {"rows", float32, 1040, [](const Array& x) { return x * rsqrt(mean(x * x, 1, true) + 1e-5); }},
    {"masked_loop", float32, 1000, [](const Array& x) { return erf(tanh(x)) * log(x + 200); }},
    {"float64", float64, 1003, twice},
    {"float16", float16, 1003, twice},
    {"bfloat16", bfloat16, 1003, twice},
    {"complex64", complex64, 1003, twice},
    {"int8", int8, 1003, twice},
    {"int64", int64, 1003, twice},
    {"bool", float32, 1003, [](const Array& x) { return x > 40; }},
    {"sliced", float32, 1003, [](const Array& x) { return slice(x, {0, 1}, {x.shape()[0], 1003}) * 3; }},
    {"strided", float32, 1003, [](const Array& x) { return slice(x, {0, 1}, {x.shape()[0], 1003}, {1, 2}) - 1; }},
    {"transposed", float32, 1003, [](const Array& x) { return transpose(transpose(x) * 3) + x; }},
    {"joined", float32, 1003, [](const Array& x) { return concatenate({x, exp(x)}, 1); }},
    {"folded", float32, 1003, [](const Array& x) { return cumsum(x, 1); }},
};

class Streams : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { omp_set_num_threads(before_); }
  int before_ = omp_get_max_threads();
};

TEST_P(Streams, StoreTheSame) {
  const Case& c = GetParam();
  const auto at_least = static_cast<std::int64_t>(base::knobs().stream_bytes);
  const std::int64_t rows = at_least / (c.columns / 2) / (c.name == std::string("bool") ? 1 : size_of(c.dtype)) + 9;
  Array x = astype(reshape(arange(rows * c.columns, int64) % 97 - 48, {rows, c.columns}), c.dtype);
  x.eval();
  std::vector<std::byte> expected;
  constexpr std::int64_t kPieces = 7;
  for (std::int64_t p = 0; p < kPieces; ++p) {
    const graph::Tensor piece = tests::read(c.f(slice(x, {p * rows / kPieces, 0}, {(p + 1) * rows / kPieces, c.columns})));
    ASSERT_LT(static_cast<std::int64_t>(piece.bytes.size()), at_least);
    expected.insert(expected.end(), piece.bytes.begin(), piece.bytes.end());
  }
  ASSERT_GE(static_cast<std::int64_t>(expected.size()), at_least);
  auto f = compile(c.f);
  for (int n : {1, 2, 3, 4}) {
    omp_set_num_threads(n);
    for (bool compiled : {false, true}) {
      if (!compiled && n > 1) continue;
      EXPECT_TRUE(tests::read(compiled ? f(x) : c.f(x)).bytes == expected) << n << " threads, compiled " << compiled;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Streams, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

// Input 0, and a result that has memory of its own or the input's.
TEST(StreamsOf, LargeResultsOutsideTheMemoryThatIsRead) {
  Array x = ones({64}), y = ones({64});
  x.eval(), y.eval();
  const engine::Slot input{true, 0, 0}, result{false, 0, 0}, part{false, 0, 64};
  auto of = [](const Array& a) { return engine::value_of(a, "test").buffer; };
  struct Row {
    std::vector<engine::Slot> buffers;
    std::uint64_t written, large;
    const Array& memory;  // of the result
    std::uint64_t expected;
  };
  const Row rows[] = {
      {{input, result}, 0b10, 0b10, y, 0b10},
      {{input, result}, 0b10, 0b10, x, 0},  // in place
      {{input, result}, 0b10, 0, y, 0},     // small
      {{result, input}, 0b01, 0b01, y, 0b01},
      {{result, part, input}, 0b011, 0b011, y, 0b011},  // parts of one result
      {{result, part, input}, 0b001, 0b001, y, 0b001},  // another part is read
      {{part, part, input}, 0b001, 0b001, y, 0},        // the same part
  };
  for (const Row& r : rows) {
    engine::Launch l;
    l.buffers = r.buffers, l.written = r.written, l.large = r.large;
    const Array inputs[] = {x};
    EXPECT_EQ(engine::streams_of(l, {std::span<const Array>(inputs), {of(r.memory)}}), r.expected) << &r - rows;
  }
}

TEST(StreamsOf, PlansKnowWhatIsLarge) {
  for (std::int64_t n : {1000, 1 << 21, 1 << 22, 1 << 23}) {
    const std::string type = str("float32[", n, "]");
    const graph::Graph g = graph::parse(str("graph g(%0: ", type, ") {\n  %1 = exp %0 : ", type, "\n  return %1\n}"));
    const Array inputs[] = {zeros({n})};
    inputs[0].eval();
    const engine::Plan plan = tests::plan_of(g, inputs);
    ASSERT_EQ(plan.steps().size(), 1u);
    const auto& l = std::get<engine::Launch>(plan.steps()[0]);
    EXPECT_EQ(l.large, 4 * n >= base::knobs().stream_bytes ? l.written : 0) << n;
    EXPECT_EQ(l.written, std::uint64_t{1} << (l.kernel->kernel().buffers[0].written ? 0 : 1));
  }
}

}  // namespace
