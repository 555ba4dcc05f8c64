// Kernels over rows: the last pass of a row within a pass over the next, rows that begin within a line of the caches; and panels.
#include <gtest/gtest.h>
#include <omp.h>

#include <cfenv>
#include <limits>

#include "sinter/sinter.h"
#include "support/graphs.h"

namespace {

using namespace sinter;
using Function = Array (*)(const Array&);

Array exponentials(const Array& x) { return exp(x - max(x, -1, true)); }
struct Case {
  const char* name;
  Function f;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};
const Case kCases[] = {
    {"softmax",
     [](const Array& x) {
       Array e = exponentials(x);
       return e / sum(e, -1, true);
     }},
    {"without_maximum",
     [](const Array& x) {
       Array e = exp(x);
       return e / sum(e, -1, true);
     }},
    {"reads_rows_between",  // after the pass that also does the row before
     [](const Array& x) {
       Array e = exponentials(x);
       return e / sum(x * sum(e, -1, true), -1, true);
     }},
    {"row_value_of_before_and_now",
     [](const Array& x) {
       Array top = max(x, -1, true);
       return sqrt(exp(x - top)) * top;
     }},
    {"two_operations",
     [](const Array& x) {
       Array e = exponentials(x);
       return e / sum(e, -1, true) + 1;
     }},
    {"two_outputs_memory",
     [](const Array& x) {
       Array e = exponentials(x);
       return concatenate({e / sum(e, -1, true), x}, -1);
     }},
};

Array rows_of(Dtype t, std::int64_t rows, std::int64_t columns) {
  Array x = random::normal({rows, columns}, float32, 0, 3, random::key(static_cast<std::uint64_t>(columns)));
  const double infinity = std::numeric_limits<double>::infinity();
  Array row = reshape(arange(rows), {rows, 1});
  x = where(row == 3, -infinity, where((row == 5) & (arange(columns) % 7 == 0), std::nan(""), x));
  return astype(where(row == 66, 0.0, x), t);
}

class Rows : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { omp_set_num_threads(before_); }
  int before_ = omp_get_max_threads();
};

// Few rows do not overlap: they give what many rows have to give. Memory of x itself may take the result.
TEST_P(Rows, ManyAreAsFew) {
  constexpr std::int64_t kRows = 131, kFew = 32;
  auto f = compile(GetParam().f);
  for (Dtype t : {float32, bfloat16, float64})
    for (std::int64_t columns : {512, 513, 527, 1031, 4096}) {
      Array x = rows_of(t, kRows, columns);
      x.eval();
      std::vector<Array> pieces;
      for (std::int64_t r = 0; r < kRows; r += kFew) pieces.push_back(f(slice(x, {r, 0}, {std::min(r + kFew, kRows), columns})));
      const graph::Tensor expected = tests::read(concatenate(pieces, 0));
      for (int threads : {1, 2, 5}) {
        omp_set_num_threads(threads);
        EXPECT_EQ(tests::read(f(x)).bytes, expected.bytes) << t << " of " << columns << ", " << threads << " threads";
        Array own = x + 0;
        own.eval();
        EXPECT_EQ(tests::read(f(std::move(own))).bytes, expected.bytes) << t << " of " << columns << ", in place";
      }
    }
}
INSTANTIATE_TEST_SUITE_P(All, Rows, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

// Of arrays that no cache holds, rows are folded eight at a time; of pieces, one by one in a loop.
TEST(Columns, RowsThatAreWrittenOutAreFoldedInOrder) {
  constexpr std::int64_t kRows = 43, kColumns = 25000, kPiece = 1000;
  const std::pair<Function, bool> functions[] = {
      {[](const Array& x) { return sum(x, 0); }, false},
      {[](const Array& x) { return max(x * 2, 0); }, false},
      {[](const Array& x) { return var(x, 0); }, false},
      {[](const Array& x) { return x - mean(x, 0, true); }, true},
      {[](const Array& x) { return mean(x, 0, true) * max(x, 0, true); }, true},
  };
  Array x = random::normal({kRows, kColumns}, float32, 0, 3, random::key(3));
  x.eval();
  for (const auto& [f, keeps] : functions) {
    std::vector<Array> parts;
    for (std::int64_t c = 0; c < kColumns; c += kPiece) parts.push_back(f(slice(x, {0, c}, {kRows, c + kPiece}) + 0));
    const graph::Tensor expected = tests::read(concatenate(parts, keeps ? 1 : 0));
    auto compiled = compile(f);
    EXPECT_TRUE(tests::read(compiled(x)).bytes == expected.bytes) << compiled.kernels(x);
    EXPECT_TRUE(tests::read(f(x)).bytes == expected.bytes);
  }
}

// So many that the least of each in scratch memory is more than is meant for all.
TEST(Panels, ManyTransposedArrays) {
  auto f = compile([](const std::vector<Array>& in) {
    Array sum = in[0].T();
    for (std::size_t i = 1; i < in.size(); ++i) sum = sum * 0.5 + in[i].T();
    return sum;
  });
  std::vector<Array> in, across;
  for (std::uint64_t i = 0; i < 11; ++i) {
    in.push_back(random::normal({300, 200}, float32, 0, 1, random::key(i)));
    in.back().eval();
    across.push_back(reshape(in.back().T(), {200, 300}) + 0);
    across.back().eval();
  }
  Array expected = across[0];
  for (std::size_t i = 1; i < across.size(); ++i) expected = expected * 0.5 + across[i];
  EXPECT_EQ(f(in).to_vector<float>(), expected.to_vector<float>());
}

// Below, at and above the sizes of panels and of vectors, in a batch too, element by element: what is read is numbered.
TEST(Panels, EdgesOfAllSizes) {
  const auto f = [](const Array& x, const Array& y) { return x.swapaxes(-1, -2) * 2 + y; };
  for (Dtype t : {int8, bfloat16, int32, float64})
    for (std::int64_t rows : {15, 16, 17, 33, 63, 64, 65, 129, 200})
      for (std::int64_t columns : {1, 8, 16, 31, 127, 128, 130, 257})
        for (std::int64_t batch : {1, 3}) {
          const auto value = [](std::int64_t n) { return static_cast<float>(n % 31); };
          std::vector<float> x, y, expected;
          for (std::int64_t n = 0; n < batch * rows * columns; ++n) {
            const std::int64_t of = n / (rows * columns), row = n / columns % rows, column = n % columns;
            x.push_back(value(n)), y.push_back(value(7 * n));
            expected.push_back(2 * value((of * columns + column) * rows + row) + value(7 * n));
          }
          const Array a = Array(x, Shape{batch, columns, rows}).astype(t), b = Array(y, Shape{batch, rows, columns}).astype(t);
          EXPECT_EQ(f(a, b).astype(float32).to_vector<float>(), expected) << rows << " rows, " << columns << " columns, " << batch;
        }
}

// The first row's neighbour is none; what stands for it raises no exception of its own.
TEST(RowsRaise, Nothing) {
  auto f = compile(kCases[0].f);
  Array x = full({64, 700}, 0.5);
  x.eval();
  f(x).eval();
  {
    full({800}, std::numeric_limits<float>::signaling_NaN()).eval();
  }  // about as large as the scratch memory, which may lie there next
  std::feclearexcept(FE_ALL_EXCEPT);
  f(x).eval();
  EXPECT_EQ(std::fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW), 0);
}

}  // namespace
