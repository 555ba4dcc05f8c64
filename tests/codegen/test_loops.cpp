// Kernels with several loops, carried values and computed addresses against the interpreter.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "codegen/kernels.h"
#include "kernel/lower/lower.h"

namespace sinter::tests {
namespace {

std::vector<Dtype> numbers() { return {bool_, uint8, int16, int32, int64, float16, bfloat16, float32, float64, complex64}; }

// y[r] = fold of x[r, :], rows in parallel.
Kernel row_sum(Dtype t, int unroll, bool strided) {
  Builder b;
  b.buffer(t, false);
  b.buffer(t, true);
  const Ref rows = b.arg(), n = b.arg(), stride = b.arg(), step = b.arg();
  const Ref none = b.constant(t, 0);
  const Ref r = b.loop(LoopKind::Parallel, b.index(0), rows);
  const Ref start = b.compute(Op::Multiply, int64, r, stride);
  const Ref i = b.loop(LoopKind::Vector, b.index(0), n, unroll, 1024);
  const Ref sum = b.carry(t, none);
  const Ref at = strided ? b.compute(Op::Multiply, int64, i, step) : i;
  b.next(sum, b.compute(Op::Add, t, sum, b.load(0, b.compute(Op::Add, int64, start, at))));
  b.end();
  b.store(1, r, b.combine(Op::Add, sum));
  b.end();
  b.kernel.name = str("row_sum_", t);
  return std::move(b.kernel);
}

TEST(Loops, RowSums) {
  for (Dtype t : numbers()) {
    for (int unroll : {1, 4}) {
      const Kernel k = row_sum(t, unroll, false);
      for (int n : {0, 1, 5, 16, 31, 64, 65, 130}) {
        check_kernel(k, {{random_elements(t, 3 * 131, 4), random_elements(t, 3, 5)}, {3, n, 131, 1}, {}, 3}, str("length ", n));
      }
    }
  }
}

TEST(Loops, StridedRowSums) {
  for (Dtype t : {uint8, float16, float32, float64, complex64}) {
    const Kernel k = row_sum(t, 2, true);
    for (int n : {1, 16, 40})
      check_kernel(k, {{random_elements(t, 3 * 120, 4), random_elements(t, 3, 5)}, {3, n, 120, 3}, {}, 3}, str("length ", n));
  }
}

// y[r] = sum over i of x[(i + shift) % size] * ((i + shift) / size), where a size is shorter than the lanes that run at once, and longer.
TEST(Loops, IndicesDividedBySizes) {
  for (int unroll : {1, 4}) {
    Builder b;
    b.buffer(float64, false);
    b.buffer(float64, true);
    const Ref rows = b.arg(), n = b.arg(), size = b.arg(), shift = b.arg();
    const Ref none = b.constant(float64, 0);
    const Ref r = b.loop(LoopKind::Parallel, b.index(0), rows);
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n, unroll);
    const Ref sum = b.carry(float64, none);
    const Ref at = b.compute(Op::Add, int64, i, shift);
    const Ref quotient = b.cast(b.compute(Op::FloorDivide, int64, at, size), float64);
    const Ref x = b.load(0, b.compute(Op::Remainder, int64, at, size));
    b.next(sum, b.compute(Op::Add, float64, sum, b.compute(Op::Multiply, float64, x, quotient)));
    b.end();
    b.store(1, r, b.combine(Op::Add, sum));
    b.end();
    b.kernel.name = str("divided_indices_", unroll);
    for (int size_is : {1, 2, 3, 16, 31, 64, 67, 1000})
      for (int length : {1, 16, 63, 64, 200})
        for (int begin : {0, 5})
          check_kernel(b.kernel, {{random_elements(float64, 1000, 4), random_elements(float64, 2, 5)}, {2, length, size_is, begin}, {}, 2},
                       str("size ", size_is, ", length ", length));
  }
}

// Products of few rows: code against the interpreter, and one layout of the matrix against the other.
TEST(Loops, ProductsOfFewRows) {
  for (Dtype t : {float16, bfloat16, float32, float64})
    for (const auto& [rows, n, k] : {std::tuple{1, 70, 33}, {3, 5, 100}, {4, 130, 7}}) {
      const std::vector<std::uint8_t> few = random_elements(t, static_cast<std::size_t>(2 * rows * k), 6),
                                      matrix = random_elements(t, static_cast<std::size_t>(2 * n * k), 7);
      std::vector<std::uint8_t> transposed = matrix;  // of each of the two: (k, n) to (n, k)
      const auto size = static_cast<std::size_t>(size_of(t));
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i)
          for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
            const std::size_t begin = b * static_cast<std::size_t>(n * k);
            std::memcpy(&transposed[(begin + j * static_cast<std::size_t>(k) + i) * size],
                        &matrix[(begin + i * static_cast<std::size_t>(n) + j) * size], size);
          }
      for (int lanes : {8, 16}) {
        std::vector<std::vector<std::uint8_t>> sums;
        for (bool along : {false, true}) {
          kernel::FewRows f{t, 2, rows, n, k, {rows * k, k, 1}, {n * k, n, 1}, {rows * n, n, 1}};
          if (along) f.matrix = {n * k, 1, k};
          kernel::Lowered l = kernel::lower_few_rows(f, lanes);
          Launch launch{{few, along ? transposed : matrix, random_elements(t, static_cast<std::size_t>(2 * rows * n), 8)},
                        {l.integers.begin(), l.integers.end()},
                        {},
                        l.tasks};
          if (!along) launch.buffers.push_back(std::vector<std::uint8_t>(static_cast<std::size_t>(l.scratch_bytes)));
          check_kernel(l.kernel, launch, str(rows, " rows, ", lanes, " lanes, along ", along));
          const kernel::Block block = launch.block();
          kernel::interpret(l.kernel, lanes, 0, l.tasks, block.data());
          sums.push_back(launch.buffers[2]);
        }
        expect_equal(t, sums[1], sums[0], str(rows, " rows, ", lanes, " lanes"));
      }
    }
}

// Sums of columns: a serial loop inside a vector loop.
TEST(Loops, ColumnSums) {
  for (Dtype t : numbers()) {
    Builder b;
    b.buffer(t, false);
    b.buffer(t, true);
    const Ref rows = b.arg(), n = b.arg(), zero = b.index(0);
    const Ref none = b.constant(t, 0);
    const Ref c = b.loop(LoopKind::Vector, zero, n, 2);
    const Ref r = b.loop(LoopKind::Serial, zero, rows);
    const Ref sum = b.carry(t, none);
    const Ref at = b.compute(Op::Add, int64, b.compute(Op::Multiply, int64, r, n), c);
    b.next(sum, b.compute(Op::Add, t, sum, b.load(0, at)));
    b.end();
    b.store(1, c, sum);
    b.end();
    b.kernel.name = str("column_sum_", t);
    for (int columns : {1, 8, 23, 40}) check_kernel(b.kernel, {{random_elements(t, 5 * 40, 4), random_elements(t, 40, 5)}, {5, columns}});
    check_kernel(b.kernel, {{random_elements(t, 5 * 40, 4), random_elements(t, 40, 5)}, {0, 9}}, "no rows");
  }
}

// y[r] is the sum of x over the run's rows until r, less the run's last row number: what a run leaves from row to row, and where it ends.
TEST(Loops, RunsCarry) {
  for (Dtype t : {int64, float32, bfloat16, complex64}) {
    Builder b;
    b.buffer(t, false);
    b.buffer(t, true);
    const Ref rows = b.arg(), none = b.constant(t, 0);
    const Ref r = b.loop(LoopKind::Parallel, b.index(0), rows);
    const Ref sum = b.carry(t, none), next = b.compute(Op::Add, t, sum, b.load(0, r));
    const Ref bounds = b.compute(Op::Subtract, int64, b.range(1), b.range(0));
    b.store(1, r, b.compute(Op::Subtract, t, next, b.cast(bounds, t)));
    b.next(sum, next);
    b.end();
    const std::vector<std::uint8_t> x = random_elements(t, 9, 4), y = random_elements(t, 9, 5);
    check_kernel(b.kernel, {{x, y}, {9}, {}, 9}, "all of it");
    for (const Target& target : targets()) {
      std::vector<std::uint8_t> in = x, got = y, expected = y;
      std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(in.data()), reinterpret_cast<std::uint64_t>(got.data()), 9};
      image_of(b.kernel, target).entry()(3, 7, block, 0);
      block[1] = reinterpret_cast<std::uint64_t>(expected.data());
      kernel::interpret(b.kernel, target.lanes, 3, 7, block);
      expect_equal(t, got, expected, str("iterations 3 to 6 of ", t));
    }
  }
}

// Two vector loops and a serial one inside a parallel loop: the shape of softmax.
TEST(Loops, RowsInSeveralPasses) {
  Builder b;
  b.buffer(float32, false);
  b.buffer(float32, true);
  const Ref rows = b.arg(), n = b.arg(), zero = b.index(0);
  const Ref low = b.constant(float32, 0xff800000), none = b.constant(float32, 0);
  const Ref r = b.loop(LoopKind::Parallel, zero, rows);
  const Ref start = b.compute(Op::Multiply, int64, r, n);
  Ref i = b.loop(LoopKind::Vector, zero, n, 2);
  const Ref most = b.carry(float32, low);
  b.next(most, b.compute(Op::Maximum, float32, most, b.load(0, b.compute(Op::Add, int64, start, i))));
  b.end();
  const Ref top = b.combine(Op::Maximum, most);
  i = b.loop(LoopKind::Vector, zero, n, 4);
  const Ref sum = b.carry(float32, none);
  Ref at = b.compute(Op::Add, int64, start, i);
  const Ref e = b.compute(Op::Exp, float32, b.compute(Op::Subtract, float32, b.load(0, at), top));
  b.store(1, at, e);
  b.next(sum, b.compute(Op::Add, float32, sum, e));
  b.end();
  const Ref total = b.combine(Op::Add, sum);
  i = b.loop(LoopKind::Vector, zero, n, 1, 512);
  at = b.compute(Op::Add, int64, start, i);
  b.store(1, at, b.compute(Op::Divide, float32, b.load(1, at), total));
  b.end();
  b.end();
  b.kernel.name = "softmax";
  for (int length : {1, 13, 64, 100}) {
    std::vector<float> x(5 * 100);
    for (std::size_t v = 0; v < x.size(); ++v) x[v] = static_cast<float>(v * 37 % 101) / 10;
    check_kernel(b.kernel, {{bytes_of(x), random_elements(float32, 500, 5)}, {5, length}, {}, 5}, str("length ", length));
  }
}

// Arrays that end where memory ends.
TEST(Loops, NothingBeyondTheEnd) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<std::uint8_t*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + page, page, PROT_NONE), 0);
  ASSERT_EQ(mprotect(memory + 3 * page, page, PROT_NONE), 0);
  for (Dtype t : {uint8, int16, float32, float64, complex64}) {
    for (int unroll : {1, 4}) {
      const Kernel k = elementwise({t}, [&](Builder& b, auto& in) { return b.compute(Op::Add, t, in[0], in[0]); }, unroll);
      for (const Target& target : targets()) {
        for (std::size_t n = 1; n <= 70; ++n) {
          const std::size_t bytes = n * static_cast<std::size_t>(size_of(t));
          std::fill(memory + 2 * page, memory + 3 * page, 9);
          std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(memory + page - bytes),
                                   reinterpret_cast<std::uint64_t>(memory + 3 * page - bytes), n};
          image_of(k, target).entry()(0, 1, block, 0);
          EXPECT_EQ(std::count(memory + 2 * page, memory + 3 * page - bytes, 9), static_cast<std::ptrdiff_t>(page - bytes));
        }
      }
    }
  }
  munmap(memory, 4 * page);
}

// out[i] = x[(i - low) * step] where low <= i < high, else 0; and last[0] = x[0] where low < high.
Kernel reads_within(Dtype t, int unroll, bool steps) {
  Builder b;
  b.buffer(t, false);
  b.buffer(t, true);
  b.buffer(t, true);
  const Ref n = b.arg(), low = b.arg(), high = b.arg(), step = b.arg(), zero = b.index(0);
  const Ref p = b.loop(LoopKind::Parallel, zero, b.index(1));
  b.store(2, p, b.load(0, p, b.compute(Op::Less, int64, low, high)));
  const Ref i = b.loop(LoopKind::Vector, zero, n, unroll);
  const Ref inside = b.compute(Op::LogicalAnd, bool_, b.compute(Op::GreaterEqual, int64, i, low), b.compute(Op::Less, int64, i, high));
  const Ref at = b.compute(Op::Subtract, int64, i, low);
  b.store(1, i, b.load(0, steps ? b.compute(Op::Multiply, int64, at, step) : at, inside));
  b.end();
  b.end();
  b.kernel.name = str("reads_within_", t);
  return std::move(b.kernel);
}

TEST(Loops, ConditionalLoads) {
  for (Dtype t : numbers())
    for (int unroll : {1, 4})
      for (bool steps : {false, true}) {
        const Kernel k = reads_within(t, unroll, steps);
        for (const auto& [low, high] : {std::pair{0, 90}, {3, 80}, {17, 18}, {40, 40}})
          check_kernel(k, {{random_elements(t, 200, 4), random_elements(t, 90, 5), random_elements(t, 1, 6)}, {90, low, high, 2}},
                       str(t, " from ", low, " to ", high, ", unroll ", unroll));
      }
}

// Nothing is read where the condition is false, and no lane but those that read may come near memory that is not there.
TEST(Loops, ConditionalLoadsAtTheEndsOfMemory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<std::uint8_t*>(mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + page, page, PROT_READ | PROT_WRITE), 0);
  std::fill_n(memory + page, page, 3);
  for (Dtype t : {uint8, int16, float32, float64, complex64})
    for (bool steps : {false, true})
      for (const Target& target : targets())
        for (std::size_t count : {0, 1, 5, 16, 40}) {
          const std::size_t bytes = count * static_cast<std::size_t>(size_of(t)), low = 19, n = 70;
          for (std::uint8_t* x : {memory + page, memory + 2 * page - bytes}) {
            std::vector<std::uint8_t> out(n * static_cast<std::size_t>(size_of(t)), 9), last(16, 9);
            std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(x),
                                     reinterpret_cast<std::uint64_t>(out.data()),
                                     reinterpret_cast<std::uint64_t>(last.data()),
                                     n,
                                     low,
                                     low + count,
                                     1};
            image_of(reads_within(t, 2, steps), target).entry()(0, 1, block, 0);
            EXPECT_EQ(std::count(out.begin(), out.end(), 3), static_cast<std::ptrdiff_t>(bytes));
            EXPECT_EQ(std::count(out.begin(), out.end(), 0), static_cast<std::ptrdiff_t>(out.size() - bytes));
            EXPECT_EQ(last[0], count > 0 ? 3 : 0);
          }
        }
  munmap(memory, 3 * page);
}

// A running value of a serial loop that is the same in all lanes, fed by folds.
TEST(Loops, SerialLoopAroundVectorLoop) {
  Builder b;
  b.buffer(float64, false);
  b.buffer(float64, true);
  const Ref rows = b.arg(), n = b.arg(), zero = b.index(0), none = b.constant(float64, 0);
  const Ref r = b.loop(LoopKind::Serial, zero, rows);
  const Ref running = b.carry(float64, none);
  const Ref count = b.carry(int64, zero);
  const Ref start = b.compute(Op::Multiply, int64, r, n);
  const Ref i = b.loop(LoopKind::Vector, zero, n, 2);
  const Ref sum = b.carry(float64, none);
  b.next(sum, b.compute(Op::Add, float64, sum, b.compute(Op::Multiply, float64, b.load(0, b.compute(Op::Add, int64, start, i)), running)));
  b.end();
  b.next(running, b.compute(Op::Add, float64, b.constant(float64, 0x3ff0000000000000), b.combine(Op::Add, sum)));
  b.next(count, b.compute(Op::Add, int64, count, n));
  b.end();
  b.store(1, zero, running);
  b.store(1, b.index(1), b.cast(count, float64));
  std::vector<double> x(6 * 21);
  for (std::size_t v = 0; v < x.size(); ++v) x[v] = static_cast<double>(v % 7) / 64;
  check_kernel(b.kernel, {{bytes_of(x), random_elements(float64, 2, 5)}, {6, 21}});
}

TEST(Loops, ReversedStridedAndBroadcast) {
  for (Dtype t : {bool_, uint8, int16, bfloat16, float32, int64, complex64}) {
    Builder b;
    b.buffer(t, false);
    b.buffer(t, true);
    const Ref n = b.arg(), step = b.arg(), offset = b.arg(), out = b.arg();
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 2);
    const Ref from = b.compute(Op::Add, int64, offset, b.compute(Op::Multiply, int64, step, i));
    b.store(1, b.compute(Op::Multiply, int64, i, out), b.load(0, from));
    b.end();
    b.kernel.name = str("strided_copy_", t);
    for (int length : {1, 15, 16, 50}) {
      for (int s : {-1, 0, 1, 2}) {
        check_kernel(b.kernel, {{random_elements(t, 150, 4), random_elements(t, 150, 5)}, {length, s, s < 0 ? length - 1 : 3, 2}},
                     str("step ", s));
      }
    }
  }
}

// out[i] = x[index[i]], and the index itself as a value.
TEST(Loops, Gather) {
  for (Dtype t : {uint8, float16, float32, float64, complex64}) {
    Builder b;
    b.buffer(t, false);
    b.buffer(int32, false);
    b.buffer(t, true);
    b.buffer(float32, true);
    const Ref n = b.arg();
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 2);
    b.store(2, i, b.load(0, b.cast(b.load(1, i), int64)));
    b.store(3, i, b.cast(b.compute(Op::Subtract, int64, b.index(7), b.compute(Op::Multiply, int64, i, i)), float32));
    b.end();
    b.kernel.name = str("gather_", t);
    for (int length : {1, 17, 45}) {
      std::vector<std::int32_t> index(45);
      for (std::size_t v = 0; v < index.size(); ++v) index[v] = static_cast<std::int32_t>(v * 29 % 60);
      check_kernel(b.kernel,
                   {{random_elements(t, 60, 4), bytes_of(index), random_elements(t, 45, 5), random_elements(float32, 45, 5)}, {length}});
    }
  }
}

// out[index[i]] = x[i].
TEST(Loops, Scatter) {
  for (Dtype t : {uint8, float32, float64}) {
    Builder b;
    b.buffer(t, false);
    b.buffer(int64, false);
    b.buffer(t, true);
    const Ref n = b.arg();
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 2);
    b.store(2, b.load(1, i), b.load(0, i));
    b.end();
    b.kernel.name = str("scatter_", t);
    for (int length : {1, 17, 45}) {
      std::vector<std::int64_t> index(45);
      for (std::size_t v = 0; v < index.size(); ++v) index[v] = static_cast<std::int64_t>(v * 29 % 61);
      check_kernel(b.kernel, {{random_elements(t, 45, 4), bytes_of(index), random_elements(t, 61, 5)}, {length}});
    }
  }
}

// y[j, i] = x[i, j] for some columns j: rows in lanes, tiles of the columns, through scratch memory whose rows are longer. Their number is
// an argument, or a constant: then they ask for what others read later.
TEST(Loops, Tiles) {
  constexpr int kRows = 37, kColumns = 41, kStep = 43;
  for (int columns : {0, kernel::kTile, 2 * kernel::kTile, kColumns})
    for (Dtype t : {bool_, uint8, int16, float16, float32, int64, float64, complex64}) {
      Builder b;
      b.buffer(t, false);
      b.buffer(t, true);
      b.buffer(t, true, true);
      const Ref n = b.arg(), number = b.arg(), pitch = b.arg(), step = b.arg(), count = columns == 0 ? number : b.index(columns);
      const Ref i = b.loop(LoopKind::Vector, b.index(0), n);
      const Ref from_row = b.compute(Op::Multiply, int64, i, pitch);
      b.tile(0, from_row, 2, i, step, count, columns == 0 ? kernel::kNone : b.compute(Op::Add, int64, from_row, number));
      b.end();
      const Ref j = b.loop(LoopKind::Serial, b.index(0), count);
      const Ref from = b.compute(Op::Multiply, int64, j, step), to = b.compute(Op::Multiply, int64, j, n);
      const Ref k = b.loop(LoopKind::Vector, b.index(0), n);
      b.store(1, b.compute(Op::Add, int64, to, k), b.load(2, b.compute(Op::Add, int64, from, k)));
      b.end();
      b.end();
      b.kernel.name = str("tiles_", t);
      const auto x = random_elements(t, kRows * kColumns, 4), y = random_elements(t, kRows * kColumns, 5),
                 scratch = random_elements(t, kStep * kColumns, 6);
      for (int length : {0, 1, 7, 8, 16, kRows})
        for (int c : {kernel::kTile, kernel::kTile + 1, 2 * kernel::kTile, kColumns})
          check_kernel(b.kernel, {{x, y, scratch}, {length, c, kColumns, kStep}}, str("length ", length, ", columns ", columns, " of ", c));
    }
}

// Functions of a fold, outside Vector loops, and their results inside the next one.
TEST(Loops, ValuesBetweenLoops) {
  for (Op op : {Op::Exp, Op::Tan, Op::Sin, Op::Remainder, Op::Sign, Op::Floor}) {
    const Dtype t = float32;
    Builder b;
    b.buffer(t, false);
    b.buffer(t, true);
    const Ref rows = b.arg(), n = b.arg(), none = b.constant(t, 0);
    const Ref start = b.compute(Op::Multiply, int64, b.loop(LoopKind::Parallel, b.index(0), rows), n);
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 4);
    const Ref sum = b.carry(t, none);
    b.next(sum, b.compute(Op::Add, t, sum, b.load(0, b.compute(Op::Add, int64, start, i))));
    b.end();
    const Ref total = b.combine(Op::Add, sum);
    const Ref value = b.compute(op, t, total, ops::info(op).operands == 2 ? total : kernel::kNone);
    const Ref positive = b.compute(Op::Less, t, none, value);
    const Ref k = b.loop(LoopKind::Vector, b.index(0), n);
    const Ref at = b.compute(Op::Add, int64, start, k);
    b.store(1, at, b.compute(Op::Where, t, positive, b.compute(Op::Multiply, t, b.load(0, at), value), value));
    b.end();
    b.end();
    b.kernel.name = str("between_", ops::info(op).name);
    for (int length : {1, 20, 70})
      check_kernel(b.kernel, {{random_elements(t, 210, 4), random_elements(t, 210, 5)}, {3, length}, {}, 3}, str("length ", length));
  }
}

// Stores inside a loop that carries partials: padding lanes differ from lane 0 and must not be written.
TEST(Loops, StoreOfACarriedValue) {
  for (Dtype t : {uint8, float32}) {
    Builder b;
    b.buffer(t, false);
    b.buffer(t, true);
    b.buffer(t, true);
    const Ref n = b.arg(), none = b.constant(t, 0);
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 2);
    const Ref sum = b.carry(t, none);
    const Ref next = b.compute(Op::Add, t, sum, b.load(0, i));
    b.store(1, i, next);
    b.store(2, b.compute(Op::Multiply, int64, i, b.index(2)), next);
    b.next(sum, next);
    b.end();
    b.kernel.name = str("running_", t);
    for (int length : {1, 17, 45, 70})
      check_kernel(b.kernel, {{random_elements(t, 140, 4), random_elements(t, 140, 5), random_elements(t, 140, 6)}, {length}});
  }
}

// Much arithmetic: one masked loop, functions, values that live across calls, a fold, contiguous and strided stores.
TEST(Loops, LongKernels) {
  for (auto [t, op] :
       {std::pair{float16, Op::Tanh}, {float32, Op::Sin}, {float64, Op::Exp}, {complex64, Op::Abs}, {int32, Op::FloorDivide}}) {
    Builder b;
    b.buffer(t, false);
    b.buffer(t, false);
    for (int out = 0; out < 4; ++out) b.buffer(t, true);
    const Ref n = b.arg(), s = b.scalar(t), zero = b.index(0), none = b.constant(t, 0);
    const Ref i = b.loop(LoopKind::Vector, zero, n, 4, 256);
    const Ref sum = b.carry(t, none);
    const Ref x = b.load(0, i), y = b.load(1, i);
    Ref v = x;
    const bool two = ops::info(op).operands == 2;
    for (int repeat = 0; repeat < 12; ++repeat) {
      const Ref kept = b.compute(Op::Add, t, v, s);
      v = b.cast(b.compute(op, t, v, two ? y : kernel::kNone), t);
      v = b.compute(Op::Add, t, b.compute(Op::Multiply, t, v, x), kept);
    }
    b.next(sum, b.compute(Op::Add, t, sum, v));
    b.store(2, i, v);
    b.store(3, b.compute(Op::Multiply, int64, i, b.index(2)), b.compute(Op::Subtract, t, v, sum));
    b.end();
    const Ref again = b.loop(LoopKind::Vector, zero, n, 4);
    b.store(4, again, b.cast(b.compute(op, t, b.load(1, again), two ? s : kernel::kNone), t));
    b.end();
    b.store(5, zero, b.combine(Op::Add, sum));
    b.kernel.name = str("long_", t);
    for (int length : {1, 17, 64, 100, 150}) {
      std::vector<std::vector<std::uint8_t>> buffers;
      for (std::uint64_t seed = 1; seed <= 6; ++seed) buffers.push_back(random_elements(t, 300, seed));
      check_kernel(b.kernel, {buffers, {length}, {0x3f803f803f803f80}, 1}, str("length ", length));
    }
  }
}

// Indices as operands of operations that loop.
TEST(Loops, IndexInALoop) {
  Builder b;
  b.buffer(int64, true);
  b.buffer(float64, true);
  const Ref n = b.arg();
  const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 4);
  const Ref shifted = b.compute(Op::Add, int64, i, b.index(3));
  b.store(0, i, b.compute(Op::Power, int64, shifted, i));
  b.store(1, i, b.compute(Op::Remainder, float64, b.constant(float64, 0x7e37e43c8800759c), b.cast(shifted, float64)));
  b.end();
  b.kernel.name = "index_power";
  for (int length : {1, 20, 64, 100})
    check_kernel(b.kernel, {{random_elements(int64, 100, 1), random_elements(float64, 100, 2)}, {length}});
}

}  // namespace
}  // namespace sinter::tests
