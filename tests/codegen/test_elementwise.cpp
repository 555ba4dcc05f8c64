// Elementwise kernels of every dtype, operation and length against the interpreter.
#include <cfenv>
#include <cstring>

#include "codegen/kernels.h"

namespace sinter::tests {
namespace {

Launch launch_of(const Kernel& k, std::int64_t n, std::uint64_t seed = 1) {
  Launch l;
  for (std::size_t b = 0; b < k.buffers.size(); ++b) {
    l.buffers.push_back(random_elements(k.buffers[b].dtype, static_cast<std::size_t>(n), seed + b));
  }
  l.integers = {n};
  return l;
}

// Lengths around the ends of vectors and bundles of either target.
void check_lengths(const Kernel& k, std::initializer_list<int> lengths = {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 70}) {
  for (int n : lengths) check_kernel(k, launch_of(k, n), str("length ", n));
}

TEST(Elementwise, EveryLength) {
  for (int unroll : {1, 2, 4}) {
    const Kernel k =
        elementwise({float32, float32}, [](Builder& b, auto& in) { return b.compute(Op::Add, float32, in[0], in[1]); }, unroll, 256);
    for (int n = 0; n <= 70; ++n) check_kernel(k, launch_of(k, n), str("unroll ", unroll, " length ", n));
  }
}

TEST(Elementwise, EveryDtype) {
  for (int t = 0; t < kDtypeCount; ++t) {
    const auto dtype = static_cast<Dtype>(t);
    check_lengths(elementwise({dtype, dtype}, [&](Builder& b, auto& in) { return b.compute(Op::Add, dtype, in[0], in[1]); }, 2, 512));
    check_lengths(
        elementwise({bool_, dtype, dtype}, [&](Builder& b, auto& in) { return b.compute(Op::Where, dtype, in[0], in[1], in[2]); }),
        {1, 20, 40});
  }
}

TEST(Elementwise, EveryCast) {
  for (int from = 0; from < kDtypeCount; ++from) {
    Builder b;
    b.buffer(static_cast<Dtype>(from), false);
    const Ref n = b.arg();
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n);
    const Ref x = b.load(0, i);
    for (int to = 0; to < kDtypeCount; ++to)
      b.store(static_cast<int>(b.buffer(static_cast<Dtype>(to), true)), i, b.cast(x, static_cast<Dtype>(to)));
    b.end();
    b.kernel.name = str("cast_", static_cast<Dtype>(from));
    check_lengths(b.kernel, {5, 16, 67});
  }
}

// Functions that take numbers apart and look up tables, over all exponents and both signs.
TEST(Elementwise, EveryExponent) {
  std::vector<std::uint32_t> words;
  for (std::uint32_t top = 0; top < 512; ++top)
    for (std::uint32_t low : {0x0U, 0x1U, 0x2aaaaaU, 0x3fffffU, 0x400000U, 0x7fffffU}) words.push_back(top << 23 | low);
  Launch l;
  l.buffers.emplace_back(words.size() * 4);
  std::memcpy(l.buffers[0].data(), words.data(), words.size() * 4);
  l.integers = {static_cast<std::int64_t>(words.size())};
  for (Op op : {Op::Log, Op::Tanh, Op::Erf, Op::Exp}) {
    l.buffers.resize(1);
    l.buffers.emplace_back(words.size() * 4);
    check_kernel(elementwise({float32}, [&](Builder& b, auto& in) { return b.compute(op, float32, in[0]); }), l, str(ops::info(op).name));
  }
}

// All operations on the dtypes that they take; a kernel holds several, for the price of a compilation is mostly its start.
TEST(Elementwise, EveryOperation) {
  for (Dtype t : {bool_, uint8, int16, uint32, int64, float16, bfloat16, float32, float64, complex64}) {
    std::vector<Op> ops;
    for (std::size_t o = 0; o < ops::all_ops().size(); ++o) {
      const auto op = static_cast<Op>(o);
      if (!ops::is_elementwise(op) || op == Op::Where) continue;
      const std::vector<Dtype> operands(static_cast<std::size_t>(ops::info(op).operands), t);
      try {
        if (ops::elementwise_type(op, operands).compute == t) ops.push_back(op);
      } catch (const DtypeError&) {
      }
    }
    constexpr std::size_t kTogether = 8;
    for (std::size_t first = 0; first < ops.size(); first += kTogether) {
      Builder b;
      for (int x = 0; x < 3; ++x) b.buffer(t, false);
      const Ref n = b.arg();
      const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 2);
      Ref in[3];
      for (int x = 0; x < 3; ++x) in[x] = b.load(x, i);
      for (std::size_t o = first; o < std::min(first + kTogether, ops.size()); ++o) {
        const int operands = ops::info(ops[o]).operands;
        b.kernel.name += str(ops::info(ops[o]).name, " ");
        const Ref r = b.compute(ops[o], t, in[0], operands > 1 ? in[1] : kernel::kNone, operands > 2 ? in[2] : kernel::kNone);
        b.store(static_cast<int>(b.buffer(ops::result_dtype(ops[o], t), true)), i, r);
      }
      b.end();
      check_kernel(b.kernel, launch_of(b.kernel, 331), str(t));
    }
  }
}

// Every magnitude: denormal results, overflow, the seldom branches of reductions.
TEST(Elementwise, EveryMagnitude) {
  for (Dtype t : {float32, float64}) {
    Builder b;
    b.buffer(t, false);
    const Ref n = b.arg();
    const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 2);
    const Ref x = b.load(0, i);
    for (Op op : {Op::Exp, Op::Exp2, Op::Tanh, Op::Log, Op::Sin, Op::Tan})
      b.store(static_cast<int>(b.buffer(t, true)), i, b.compute(op, t, x));
    b.end();
    Launch l;
    std::vector<double> values;
    for (double v = -760; v < 720; v += 0.37) values.push_back(v);
    for (double v = 1e-320; v < 1e300; v *= 3.7) values.insert(values.end(), {v, -v});
    const std::vector<float> narrow(values.begin(), values.end());
    l.buffers.push_back(t == float32 ? bytes_of(narrow) : bytes_of(values));
    for (std::size_t o = 1; o < b.kernel.buffers.size(); ++o) l.buffers.push_back(random_elements(t, values.size(), o));
    l.integers = {static_cast<std::int64_t>(values.size())};
    check_kernel(b.kernel, l, str(t));
  }
}

// Uniform values stay scalars: constants, scalar arguments, broadcast loads.
TEST(Elementwise, UniformOperands) {
  for (int t = 0; t < kDtypeCount; ++t) {
    const auto dtype = static_cast<Dtype>(t);
    Builder b;
    b.buffer(dtype, false);
    b.buffer(dtype, false);
    b.buffer(dtype, true);
    const Ref n = b.arg(), s = b.scalar(dtype), zero = b.index(0);
    const Ref i = b.loop(LoopKind::Vector, zero, n, 2);
    const Ref once = b.load(1, zero);
    const Ref sum = b.compute(Op::Add, dtype, s, once);
    b.store(2, i, b.compute(Op::Multiply, dtype, b.load(0, i), sum));
    b.end();
    Launch l = launch_of(b.kernel, 37);
    const std::vector<std::uint8_t> word = random_elements(dtype, 1, 5);
    l.scalars.resize(1);
    std::copy(word.begin(), word.end(), reinterpret_cast<std::uint8_t*>(l.scalars.data()));
    check_kernel(b.kernel, l);
  }
}

TEST(Elementwise, InPlace) {
  Builder b;
  b.buffer(float32, true);
  const Ref n = b.arg();
  const Ref i = b.loop(LoopKind::Vector, b.index(0), n, 4);
  const Ref x = b.load(0, i);
  b.store(0, i, b.compute(Op::Multiply, float32, x, x));
  b.end();
  check_lengths(b.kernel);
}

// The same memory as operand and result of two arguments, at the same index.
TEST(Elementwise, AliasedArguments) {
  const Kernel k = elementwise({float32, float32}, [](Builder& b, auto& in) { return b.compute(Op::Add, float32, in[0], in[1]); }, 4);
  for (const Target& target : targets()) {
    std::vector<float> x(101, 1.5f), y(101, 2.f);
    std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(x.data()), reinterpret_cast<std::uint64_t>(y.data()),
                             reinterpret_cast<std::uint64_t>(x.data()), 101};
    image_of(k, target).entry()(0, 1, block, 0);
    EXPECT_EQ(x, std::vector<float>(101, 3.5f));
  }
}

// Only the range asked for, and nothing behind the end of the arrays.
TEST(Elementwise, ParallelRanges) {
  Builder b;
  b.buffer(float64, false);
  b.buffer(float64, true);
  const Ref n = b.arg(), rows = b.arg();
  const Ref p = b.loop(LoopKind::Parallel, b.index(0), rows);
  const Ref start = b.compute(Op::Multiply, int64, p, n);
  const Ref i = b.loop(LoopKind::Vector, b.index(0), n);
  const Ref at = b.compute(Op::Add, int64, start, i);
  b.store(1, at, b.compute(Op::Negative, float64, b.load(0, at)));
  b.end();
  b.end();
  for (const Target& target : targets()) {
    std::vector<double> x(7 * 19, 1), y(7 * 19, 5), expected = y;
    std::fill(expected.begin() + 2 * 19, expected.begin() + 4 * 19, -1.0);
    std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(x.data()), reinterpret_cast<std::uint64_t>(y.data()), 19, 7};
    image_of(b.kernel, target).entry()(2, 4, block, 0);
    EXPECT_EQ(y, expected);
  }
}

// Padding lanes must not trap or raise what no element raises.
TEST(Elementwise, TailsRaiseNothing) {
  std::vector<Kernel> kernels;
  for (Op op : {Op::Divide, Op::Multiply, Op::Add}) {
    for (int unroll : {1, 4})
      kernels.push_back(
          elementwise({float32, float32}, [&](Builder& b, auto& in) { return b.compute(op, float32, in[0], in[1]); }, unroll));
  }
  for (const Kernel& k : kernels) {
    for (const Target& target : targets()) {
      const auto entry = image_of(k, target).entry();
      for (std::int64_t n = 1; n <= 70; ++n) {
        std::vector<float> x(static_cast<std::size_t>(n), 8.f), y(static_cast<std::size_t>(n), 2.f), z(static_cast<std::size_t>(n));
        std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(x.data()), reinterpret_cast<std::uint64_t>(y.data()),
                                 reinterpret_cast<std::uint64_t>(z.data()), static_cast<std::uint64_t>(n)};
        std::feclearexcept(FE_ALL_EXCEPT);
        entry(0, 1, block, 0);
        EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << target.cpu << " length " << n;
      }
    }
  }
  const Kernel divide = elementwise({int32, int32}, [](Builder& b, auto& in) { return b.compute(Op::FloorDivide, int32, in[0], in[1]); });
  check_lengths(divide);
}

}  // namespace
}  // namespace sinter::tests
