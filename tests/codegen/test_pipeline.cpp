// Loops whose iterations overlap: against the interpreter at lengths around those at which they begin, in place, with several results, and
// what is read at computed places or follows from the index.
#include <cfenv>

#include "codegen/kernels.h"

namespace sinter::tests {
namespace {

// Enough arithmetic, of several kinds of units.
Ref much(Builder& b, Dtype t, Ref x, Ref y, int turns = 8) {
  Ref v = x;
  for (int n = 0; n < turns; ++n) {
    const Ref w = b.compute(Op::Subtract, t, b.compute(Op::Multiply, t, v, y), x);
    v = b.compute(Op::Divide, t, b.compute(Op::Add, t, w, v), b.compute(Op::Sqrt, t, b.compute(Op::Abs, t, w)));
    v = b.compute(Op::Maximum, t, v, b.compute(Op::Multiply, t, w, y));
  }
  return v;
}

Ref functions(Builder& b, Dtype t, Ref x, Ref y) {
  const Ref product = b.compute(Op::Multiply, t, b.compute(Op::Exp, t, y), b.compute(Op::Tanh, t, x));
  return b.compute(Op::Add, t, product, b.compute(Op::Log, t, b.compute(Op::Erf, t, y)));
}

struct Case {
  const char* name;
  Kernel kernel;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  auto add = [&](const char* name, Kernel k) {
    k.name = name;
    all.push_back({name, std::move(k)});
  };
  for (Dtype t : {float16, float32, float64})
    add("units", elementwise({t, t}, [&](Builder& b, auto& in) { return much(b, t, in[0], in[1], t == float16 ? 4 : 8); }, 4, 2048));
  add("functions", elementwise({float32, float32}, [](Builder& b, auto& in) { return functions(b, float32, in[0], in[1]); }, 4));
  // The last use of an operand is far behind its first.
  add("read_again", elementwise({float32, float32}, [](Builder& b, auto& in) {
        return b.compute(Op::Subtract, float32, functions(b, float32, functions(b, float32, in[0], in[1]), in[1]), in[0]);
      }));
  {
    Builder b;
    b.buffer(float32, true);
    b.buffer(float32, true);
    const Ref n = b.arg(), i = b.loop(LoopKind::Vector, b.index(0), n, 4);
    const Ref x = b.load(0, i), y = b.load(1, i), v = much(b, float32, x, y);
    const Ref w = b.compute(Op::Multiply, float32, v, b.compute(Op::Exp, float32, x));
    b.store(0, i, v);
    b.store(1, i, w);
    b.end();
    add("in_place_twice", std::move(b.kernel));
  }
  {
    Builder b;
    b.buffer(float32, false);
    b.buffer(int32, false);
    b.buffer(float32, true);
    const Ref n = b.arg(), zero = b.arg(), i = b.loop(LoopKind::Vector, b.index(0), n, 2);
    const Ref place = b.compute(Op::Remainder, int32, b.compute(Op::Abs, int32, b.load(1, i)), b.constant(int32, 7));
    const Ref x = b.load(0, b.cast(place, int64)), one = b.load(0, zero);
    const Ref number = b.cast(b.compute(Op::Multiply, int64, i, b.index(3)), float32);
    b.store(2, i, b.compute(Op::Add, float32, much(b, float32, x, one), b.compute(Op::Exp, float32, number)));
    b.end();
    add("gather_index_uniform", std::move(b.kernel));
  }
  return all;
}

Launch launch_of(const Kernel& k, std::int64_t n) {
  Launch l;
  for (std::size_t b = 0; b < k.buffers.size(); ++b)
    l.buffers.push_back(random_elements(k.buffers[b].dtype, static_cast<std::size_t>(std::max<std::int64_t>(n, 16)), b + 1));
  l.integers.resize(static_cast<std::size_t>(k.integers), 0);
  l.integers[0] = n;
  return l;
}

TEST(Pipeline, EveryKindOfLoopAtEveryEnd) {
  for (const Case& c : cases()) {
    for (const Target& target : targets()) {
      std::string ir;
      backends::codegen().compile(c.kernel, target, {.llvm_ir = &ir});
      EXPECT_EQ(ir.find("\nfirst:") != std::string::npos, target.avx512) << c.name << " overlaps on " << target.cpu;
    }
    for (int n : {0, 1, 15, 16, 17, 127, 128, 129, 144, 159, 160, 300}) check_kernel(c.kernel, launch_of(c.kernel, n), str("length ", n));
  }
}

// Where iterations begin and end, nothing is computed that no element asks for.
TEST(Pipeline, RaisesNothing) {
  const Kernel k = elementwise({float32, float32}, [](Builder& b, auto& in) {
    Ref v = in[0];
    for (int n = 0; n < 20; ++n) {  // 8 / (8 - (2 + 2)) * 4
      const Ref rest = b.compute(Op::Subtract, float32, v, b.compute(Op::Add, float32, in[1], in[1]));
      v = b.compute(Op::Multiply, float32, b.compute(Op::Divide, float32, v, rest), b.compute(Op::Multiply, float32, in[1], in[1]));
    }
    return v;
  });
  for (const Target& target : targets()) {
    const auto entry = image_of(k, target).entry();
    for (std::int64_t n : {127, 128, 136, 300}) {
      std::vector<float> x(static_cast<std::size_t>(n), 8.f), y(static_cast<std::size_t>(n), 2.f), z(static_cast<std::size_t>(n));
      std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(x.data()), reinterpret_cast<std::uint64_t>(y.data()),
                               reinterpret_cast<std::uint64_t>(z.data()), static_cast<std::uint64_t>(n)};
      std::feclearexcept(FE_ALL_EXCEPT);
      entry(0, 1, block, 0);
      EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << target.cpu << " length " << n;
      EXPECT_EQ(z, x);
    }
  }
}

}  // namespace
}  // namespace sinter::tests
