// Kernels: text, verify, and the interpreter against plain C++.
#include "kernel/kernel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <random>

#include "base/check.h"

namespace sinter::kernel {
namespace {

using ops::Op;

std::uint64_t word(float v) { return std::bit_cast<std::uint32_t>(v); }

// y[i] = x[i] * s + x[i], in a Parallel loop over rows and a Vector loop over columns.
Kernel scaled_sum(int unroll) {
  Builder b;
  b.kernel.name = "multiply_add";
  const int x = static_cast<int>(b.buffer(float32, false)), y = static_cast<int>(b.buffer(float32, true));
  const Ref rows = b.arg(), columns = b.arg(), scale = b.scalar(float32), zero = b.index(0);
  const Ref row = b.loop(LoopKind::Parallel, zero, rows);
  const Ref start = b.compute(Op::Multiply, int64, row, columns);
  const Ref column = b.loop(LoopKind::Vector, zero, columns, unroll);
  const Ref at = b.compute(Op::Add, int64, start, column);
  const Ref v = b.load(x, at);
  b.store(y, at, b.compute(Op::Add, float32, b.compute(Op::Multiply, float32, v, scale), v));
  b.end();
  b.end();
  verify(b.kernel);
  return b.kernel;
}

// out[0] = fold of x over n elements, starting from `identity`.
Kernel reduction(Op op, Dtype t, std::uint64_t identity, int unroll) {
  Builder b;
  b.kernel.name = "fold";
  const int x = static_cast<int>(b.buffer(t, false)), out = static_cast<int>(b.buffer(t, true));
  const Ref n = b.arg(), zero = b.index(0), start = b.constant(t, identity);
  const Ref i = b.loop(LoopKind::Vector, zero, n, unroll);
  const Ref carry = b.carry(t, start);
  b.next(carry, b.compute(op, t, carry, b.load(x, i)));
  b.end();
  b.store(out, zero, b.combine(op, carry));
  verify(b.kernel);
  return b.kernel;
}

Block block_of(std::initializer_list<const void*> buffers, std::initializer_list<std::uint64_t> rest) {
  Block block;
  for (const void* p : buffers) block.push_back(reinterpret_cast<std::uint64_t>(p));
  block.insert(block.end(), rest);
  return block;
}

TEST(KernelInterpret, ElementwiseWithTails) {
  for (int unroll : {1, 2, 8}) {
    const Kernel k = scaled_sum(unroll);
    for (int lanes : {1, 8, 16}) {
      for (std::int64_t columns = 0; columns <= 40; ++columns) {
        std::vector<float> x(static_cast<std::size_t>(3 * columns)), y(x.size() + 1, -1.0f);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.37f;
        const Block block = block_of({x.data(), y.data()}, {3, static_cast<std::uint64_t>(columns), word(1.7f)});
        interpret(k, lanes, 0, 2, block.data());  // rows 0 and 1, then row 2
        const std::vector<float> half = y;
        interpret(k, lanes, 2, 3, block.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
          ASSERT_EQ(y[i], x[i] * 1.7f + x[i]);
          ASSERT_EQ(half[i], i < static_cast<std::size_t>(2 * columns) ? y[i] : -1.0f);
        }
        ASSERT_EQ(y.back(), -1.0f) << "written beyond the end";
      }
    }
  }
}

// The order that kernel.h fixes, in plain C++.
float sum_in_order(const std::vector<float>& x, int lanes, int unroll) {
  std::vector<std::vector<float>> partial(static_cast<std::size_t>(unroll), std::vector<float>(static_cast<std::size_t>(lanes), 0.0f));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t copy = i % static_cast<std::size_t>(lanes * unroll);
    partial[copy / static_cast<std::size_t>(lanes)][copy % static_cast<std::size_t>(lanes)] += x[i];
  }
  for (std::size_t parts = partial.size(); parts > 1; parts /= 2) {
    for (std::size_t p = 0; p < parts / 2; ++p) {
      for (std::size_t l = 0; l < partial[p].size(); ++l) partial[p][l] += partial[p + parts / 2][l];
    }
  }
  for (std::size_t n = static_cast<std::size_t>(lanes); n > 1; n /= 2) {
    for (std::size_t l = 0; l < n / 2; ++l) partial[0][l] += partial[0][l + n / 2];
  }
  return partial[0][0];
}

TEST(KernelInterpret, SumsInTheOrderThatTheHeaderFixes) {
  std::mt19937 random(3);
  for (int unroll : {1, 4}) {
    for (int lanes : {1, 8, 16}) {
      for (std::size_t n : {0u, 1u, 7u, 16u, 33u, 64u, 100u, 1000u}) {
        std::vector<float> x(n);
        for (float& v : x) v = static_cast<float>(random()) / 1e9f - 2;
        float out = -1;
        const Block block = block_of({x.data(), &out}, {n});
        interpret(reduction(Op::Add, float32, 0, unroll), lanes, 0, 1, block.data());
        ASSERT_EQ(out, sum_in_order(x, lanes, unroll)) << n << " elements, " << lanes << " lanes, unroll " << unroll;
      }
    }
  }
}

TEST(KernelInterpret, FoldsOtherDtypes) {
  const std::int8_t bytes[] = {100, 100, -7};
  std::int8_t sum = 0;
  interpret(reduction(Op::Add, int8, 0, 1), 8, 0, 1, block_of({bytes, &sum}, {3}).data());
  EXPECT_EQ(sum, static_cast<std::int8_t>(193));
  const double values[] = {-3, -0.0, -5};
  double greatest = 0;
  interpret(reduction(Op::Maximum, float64, std::bit_cast<std::uint64_t>(-HUGE_VAL), 2), 8, 0, 1,
            block_of({values, &greatest}, {3}).data());
  EXPECT_EQ(greatest, 0);
  EXPECT_TRUE(std::signbit(greatest)) << "lanes that ran nothing hold the identity";
  const std::complex<float> z[] = {{1, 2}, {3, -5}, {0.5f, 0.25f}};
  std::complex<float> total;
  interpret(reduction(Op::Add, complex64, 0, 1), 8, 0, 1, block_of({z, &total}, {3}).data());
  EXPECT_EQ(total, std::complex<float>(4.5f, -2.75f));
}

// A Serial loop inside a Vector loop: each lane sums its column.
TEST(KernelInterpret, SerialInsideVector) {
  const Kernel k = parse(R"(kernel columns(b0: float32, b1: float32 out; ints 2; scalars 0) {
    %0 = arg 0
    %1 = arg 1
    %2 = const int64 0
    %3 = const float32 0
    vector %4 in %2..%1 unroll 2 {
      serial %5 in %2..%0 {
        carry %6: float32 = %3 next %10
        %7 = multiply %5, %1: int64
        %8 = add %7, %4: int64
        %9 = load b0[%8]
        %10 = add %6, %9: float32
      }
      store b1[%4] = %6
    }
  })");
  verify(k);
  for (std::int64_t columns : {1, 5, 16, 37}) {
    std::vector<float> x(static_cast<std::size_t>(3 * columns)), y(static_cast<std::size_t>(columns));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    interpret(k, 8, 0, 1, block_of({x.data(), y.data()}, {3, static_cast<std::uint64_t>(columns)}).data());
    for (std::int64_t c = 0; c < columns; ++c) ASSERT_EQ(y[static_cast<std::size_t>(c)], static_cast<float>(3 * c + 3 * columns));
  }
}

// A Serial loop with a carry outside of Vector loops, whose value chooses what a Vector loop stores; a boolean byte of 2 is true.
TEST(KernelInterpret, SerialOutsideAndBooleans) {
  const Kernel k = parse(R"(kernel any(b0: bool, b1: bool out; ints 1; scalars 0) {
    %0 = arg 0
    %1 = const int64 0
    %2 = const bool false
    serial %3 in %1..%0 {
      carry %4: bool = %2 next %6
      %5 = load b0[%3]
      %6 = logical_or %4, %5: bool
    }
    vector %7 in %1..%0 {
      %8 = load b0[%7]
      %9 = logical_xor %8, %4: bool
      store b1[%7] = %9
    }
  })");
  verify(k);
  const std::uint8_t x[] = {0, 2, 0};
  std::uint8_t y[] = {9, 9, 9};
  interpret(k, 8, 0, 1, block_of({x, y}, {3}).data());
  EXPECT_EQ(std::vector<int>(y, y + 3), (std::vector<int>{1, 0, 1}));
}

TEST(KernelInterpret, HalvesRoundAtEachOperation) {
  const std::uint16_t x[] = {0x3c00, 0x6800};  // 1, 2048
  std::uint16_t out = 0;
  interpret(reduction(Op::Add, float16, 0, 1), 1, 0, 1, block_of({x, &out}, {2}).data());
  EXPECT_EQ(out, 0x6800) << "2049 is no float16: rounds to even";
}

TEST(KernelText, NamesAreNoPartOfTheKey) {
  Kernel a = scaled_sum(2), b = a;
  b.name = "something else (x)";
  std::string key_a, key_b;
  append_key(a, key_a);
  append_key(b, key_b);
  EXPECT_EQ(key_a, key_b);
  EXPECT_NE(print(a), print(b));
  EXPECT_EQ(parse(print(b)).name, b.name);
}

// Whatever code depends on is in the text: a change of any field of any instruction changes it.
TEST(KernelText, EveryFieldIsInTheKey) {
  auto key = [](const Kernel& k) {
    std::string text;
    append_key(k, text);
    return text;
  };
  std::vector<Kernel> kernels = {scaled_sum(1),
                                 scaled_sum(2),
                                 reduction(Op::Add, float32, 0, 1),
                                 reduction(Op::Maximum, float32, 0, 1),
                                 reduction(Op::Add, float64, 0, 1),
                                 reduction(Op::Add, float32, 0x80000000, 1),
                                 reduction(Op::Add, float32, 0, 2)};
  for (auto change :
       {+[](Kernel& k) { k.buffers[0].written = true; }, +[](Kernel& k) { k.buffers[0].written = k.buffers[0].scratch = true; },
        +[](Kernel& k) { k.buffers[0].written = k.buffers[0].large = true; }, +[](Kernel& k) { k.buffers[0].dtype = int8; },
        +[](Kernel& k) { ++k.integers; }, +[](Kernel& k) { ++k.scalars; }}) {
    Kernel k = scaled_sum(1);
    change(k);
    kernels.push_back(k);
  }
  const Kernel whole = scaled_sum(1);
  for (std::size_t i = 0; i < whole.body.size(); ++i) {
    if (whole.body[i].code == Code::Loop) {
      for (auto change : {+[](Inst& l) { l.unroll = 8; }, +[](Inst& l) { l.prefetch = 512; }, +[](Inst& l) { l.kind = LoopKind::Serial; },
                          +[](Inst& l) { l.in[1] = 0; }, +[](Inst& l) { l.in[0] = 1; }}) {
        Kernel k = whole;
        change(k.body[i]);
        if (!(k.body[i] == whole.body[i])) kernels.push_back(k);
      }
    }
    if (whole.body[i].code == Code::Load) {
      kernels.push_back(whole);
      kernels.back().body[i].in[1] = 0;
    }
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Kernel again = parse(print(kernels[i]));
    if (kernels[i].buffers[0].dtype == float32 && !kernels[i].buffers[0].written) {
      EXPECT_EQ(again.body, kernels[i].body) << print(kernels[i]);
    }
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(key(kernels[i]), key(kernels[j])) << print(kernels[i]);
  }
}

TEST(KernelText, ErrorsNameThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"kernel f(b0: float32; ints 0; scalars 0) {\n  %0 = foo %1\n}", "there is no such operation; got 'foo' at line 2, column 8"},
      {"kernel f(b1: float32; ints 0; scalars 0) {\n}", "expected buffer b0; got 'b1' at line 1, column 10"},
      {"kernel f(; ints 0; scalars 0) {\n  %0 = load b0[%0]\n}", "expected a buffer; got 'b0' at line 2, column 13"},
      {"kernel f(; ints 0; scalars 0) {\n  %0 = exp %1: float32\n}", "a value is used and not defined; got '%1' at line 2, column 12"},
      {"kernel f(; ints 0; scalars 0) {\n  loop %0 in %0..%0 {\n}", "expected an instruction; got 'loop' at line 2, column 3"},
      {"kernel f(; ints 0; scalars 0) {\n  %0 = const float32 1.5.5\n}", "expected a literal of float32"},
      {"kernel f(; ints 0; scalars 0) {\n", "expected an instruction; got the end at line 2, column 1"},
      {"kernel f(; ints -1; scalars 0) {\n}", "expected a number from 0 to"},
  };
  for (const auto& [text, message] : cases) {
    try {
      parse(text);
      ADD_FAILURE() << "parsed: " << text;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << text << "\n" << e.what();
    }
  }
}

TEST(KernelVerify, RejectsEachBrokenRule) {
  const std::pair<const char*, const char*> cases[] = {
      // the body after %0 = arg 0, %1 = const int64 0, %2 = const float32 1
      {"%3 = arg 1", "there is no such integer argument"},
      {"%3 = scalar 0: float32", "there is no such scalar argument"},
      {"%3 = exp %2, %2: float32", "the number of operands is wrong"},
      {"%3 = exp %1: float32", "an operand has not the compute dtype"},
      {"%3 = bitwise_and %2, %2: float32", "the operation does not take this dtype"},
      {"%3 = where %2, %2, %2: float32", "an operand has not the compute dtype"},
      {"%3 = sum %2: float32", "Compute needs an elementwise operation"},
      {"%3 = load b0[%2]", "an index is not int64"},
      {"store b0[%1] = %2", "the buffer is not written"},
      {"store b1[%1] = %1", "the stored value has not the buffer's dtype"},
      {"parallel %3 in %1..%0 {\n}\nparallel %4 in %1..%0 {\n}", "there is a second Parallel loop"},
      {"serial %3 in %1..%0 {\nparallel %4 in %1..%0 {\n}\n}", "a Parallel loop is not outermost"},
      {"vector %3 in %1..%0 {\nvector %4 in %1..%0 {\n}\n}", "a Vector loop inside a Vector loop"},
      {"vector %3 in %1..%0 unroll 3 {\n}", "unroll is not 1, 2, 4 or 8"},
      {"serial %3 in %1..%0 unroll 2 {\n}", "unroll and prefetch belong to Vector loops"},
      {"serial %3 in %2..%0 {\n}", "a loop's bounds are not int64"},
      {"vector %3 in %1..%0 {\nserial %4 in %1..%3 {\n}\n}", "the bounds of a loop inside a Vector loop differ between lanes"},
      {"serial %3 in %1..%0 {\n%4 = exp %2: float32\n}\n%5 = exp %4: float32", "an operand belongs to a closed loop"},
      {"serial %3 in %1..%0 {\n}\n%5 = negative %3: int64", "an operand belongs to a closed loop"},
      {"serial %3 in %1..%0 {\n%4 = exp %2: float32\ncarry %5: float32 = %2 next %4\n}", "a Carry does not stand right after its loop"},
      {"%3 = range 0", "a Range without a Parallel loop"},
      {"serial %3 in %1..%0 {\ncarry %5: float32 = %1 next %5\n}", "the initial value has not the dtype of its Carry"},
      {"serial %3 in %1..%0 {\ncarry %5: float32 = %2 next %3\n}", "the next value has not the dtype of its Carry"},
      {"vector %3 in %1..%0 {\ncarry %5: float32 = %2 next %5\n}\n%6 = exp %5: float32",
       "only Combine reads the carry of a closed Vector loop"},
      {"serial %3 in %1..%0 {\ncarry %5: float32 = %2 next %5\n}\n%6 = combine add %5: float32",
       "Combine needs the Carry of a closed Vector loop"},
      {"vector %3 in %1..%0 {\ncarry %5: float32 = %2 next %5\n}\n%6 = combine subtract %5: float32",
       "Combine needs a commutative operation"},
      {"%3 = combine add %2: float32", "Combine needs a Carry"},
      {"tile b2[%1] step %1 = b0[%1] count %0", "a Tile outside a Vector loop"},
      {"vector %3 in %1..%0 {\ntile b1[%3] step %1 = b0[%3] count %0\n}", "a Tile does not go to a scratch buffer of its dtype"},
      {"vector %3 in %1..%0 {\ntile b2[%3] step %1 = b0[%1] count %0\n}", "the index of a Tile is the same in all lanes"},
      {"vector %3 in %1..%0 {\ntile b2[%1] step %1 = b0[%3] count %0\n}", "the place of a Tile is not an int64 of each lane"},
      {"vector %3 in %1..%0 {\ntile b2[%3] step %1 = b0[%3] count %3\n}", "the step or the count of a Tile is not a uniform int64"},
      {"vector %3 in %1..%0 {\ntile b2[%3] step %1 = b0[%3] count %0 later %1\n}", "what a Tile asks for is not an int64 of each lane"},
      {"parallel %3 in %1..%0 {\n}\nstore b1[%1] = %2", "a Store outside the Parallel loop"},
      {"%3 = load b3[%1]", "a large buffer is read"},
  };
  for (const auto& [body, rule] : cases) {
    const std::string text = std::string(
                                 "kernel f(b0: float32, b1: float32 out, b2: float32 scratch, b3: float32 large out; ints 1; scalars 0) "
                                 "{\n%0 = arg 0\n%1 = const "
                                 "int64 0\n%2 = const float32 1\n") +
                             body + "\n}";
    try {
      verify(parse(text));
      ADD_FAILURE() << "accepted: " << body;
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(rule), std::string::npos) << body << "\n" << e.what();
    }
  }
  // What text cannot say.
  const std::pair<void (*)(Inst&), const char*> fields[] = {
      {[](Inst& i) { i.imm = 3; }, "a number belongs to"},
      {[](Inst& i) { i.unroll = 2; }, "unroll and prefetch belong to loops"},
      {[](Inst& i) { i.in[0] = 1000; }, "an operand is not defined before its use"},
      {[](Inst& i) {
         i.code = Code::End;
         i.in[0] = i.in[1] = kNone;
         i.op = Op{};
         i.dtype = int64;
       },
       "End without a loop"},
  };
  for (const auto& [change, rule] : fields) {
    Builder b;
    const Ref one = b.index(1);
    change(b.kernel.body[b.compute(Op::Add, int64, one, one)]);
    try {
      verify(b.kernel);
      ADD_FAILURE() << "accepted: " << rule;
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(rule), std::string::npos) << e.what();
    }
  }
  Builder open;
  open.loop(LoopKind::Serial, open.index(0), open.index(1));
  EXPECT_THROW(verify(open.kernel), InternalError);
}

}  // namespace
}  // namespace sinter::kernel
