// roll: which kernels get a loop, and that it computes what was written out.
#include "codegen/kernels.h"
#include "kernel/lower/roll.h"

namespace sinter::tests {
namespace {

constexpr std::size_t kElements = 37;

struct Iteration {
  Builder& b;
  Dtype t;
  const std::vector<Ref>& x;  // the inputs
  Ref op(Op o, Ref p, Ref q = kernel::kNone) { return b.compute(o, t, p, q); }
};
using State = std::vector<Ref>;

struct Case {
  const char* name;
  int iterations;
  std::function<State(Iteration, int, State)> step;
  std::function<Ref(Iteration, State)> result;  // of the last state
  std::int64_t loop;                            // iterations of the loop that is found; 0: none
  std::vector<Dtype> dtypes = {float32};
};

const std::function<Ref(Iteration, State)> kFirst = [](Iteration, State s) { return s[0]; };

std::vector<Case> cases() {
  auto chain = [](Iteration i, int, State s) { return State{i.op(Op::Add, i.op(Op::Tanh, s[0]), i.x[1])}; };
  return {
      {"a chain", 20, chain, kFirst, 20, {float32, float64, float16, bfloat16}},
      {"integers",
       60,
       [](Iteration i, int, State s) { return State{i.op(Op::Add, i.op(Op::Multiply, s[0], s[0]), i.x[1])}; },
       kFirst,
       60,
       {Dtype::int32, Dtype::uint8, Dtype::int64}},
      {"complex",
       60,
       [](Iteration i, int, State s) { return State{i.op(Op::Add, i.op(Op::Multiply, s[0], s[0]), i.x[1])}; },
       kFirst,
       60,
       {Dtype::complex64}},
      {"a use of the start behind it", 20, chain, [](Iteration i, State s) { return i.op(Op::Subtract, s[0], i.x[0]); }, 20},
      {"commutative operands in any order", 20,
       [](Iteration i, int n, State s) {
         const Ref y = i.op(Op::Tanh, s[0]);
         return State{n % 2 ? i.op(Op::Add, y, i.x[1]) : i.op(Op::Add, i.x[1], y)};
       },
       kFirst, 20},
      {"two states", 20,
       [](Iteration i, int, State s) {
         return State{i.op(Op::Subtract, i.op(Op::Sin, s[1]), s[0]), i.op(Op::Multiply, i.op(Op::Cos, s[0]), i.x[1])};
       },
       [](Iteration i, State s) { return i.op(Op::Divide, s[0], s[1]); }, 20},
      {"the state before the last one", 24,
       [](Iteration i, int, State s) { return State{i.op(Op::Tanh, i.op(Op::Add, s[0], s[1])), s[0]}; }, kFirst, 23},
      {"a value of the last iteration that no next one reads", 20,
       [](Iteration i, int, State s) {
         const Ref y = i.op(Op::Tanh, s[0]);
         return State{i.op(Op::Add, y, i.x[1]), y};
       },
       [](Iteration i, State s) { return i.op(Op::Multiply, s[0], s[1]); }, 19},
      {"a value of an early iteration", 20,
       [](Iteration i, int n, State s) {
         const Ref y = i.op(Op::Tanh, s[0]);
         return State{i.op(Op::Add, y, i.x[1]), n == 3 ? y : s[1]};
       },
       [](Iteration i, State s) { return i.op(Op::Multiply, s[0], s[1]); }, 16},
      {"another operation in the middle", 20,
       [](Iteration i, int n, State s) { return State{i.op(n == 9 ? Op::Exp : Op::Tanh, i.op(Op::Add, s[0], i.x[1]))}; }, kFirst, 10},
      {"a value of the first iteration in all others", 20,
       [](Iteration i, int n, State s) {
         const Ref y = i.op(Op::Tanh, s[0]);
         return State{i.op(Op::Add, y, s[1]), n == 0 ? y : s[1]};
       },
       kFirst, 19},
      {"too few", 3, chain, kFirst, 0},
      {"too little", 9, [](Iteration i, int, State s) { return State{i.op(Op::Add, s[0], i.x[1])}; }, kFirst, 0},
      {"all from the start", 20, [](Iteration i, int, State s) { return State{s[0], i.op(Op::Add, s[1], i.op(Op::Tanh, s[0]))}; },
       [](Iteration, State s) { return s[1]; }, 20},
      {"never the same", 20,
       [](Iteration i, int n, State s) {
         static constexpr Op kOps[] = {Op::Tanh, Op::Sin, Op::Exp, Op::Cos, Op::Erf};
         return State{i.op(Op::Add, i.op(kOps[(n * n + n / 3) % 5], s[0]), i.x[1])};
       },
       kFirst, 0},
  };
}

Kernel written_out(const Case& c, Dtype t, int unroll) {
  return elementwise(
      {t, t},
      [&](Builder& b, const std::vector<Ref>& x) {
        State s = {x[0], x[1]};
        for (int n = 0; n < c.iterations; ++n) s = c.step({b, t, x}, n, s);
        return c.result({b, t, x}, s);
      },
      unroll);
}

std::vector<std::uint8_t> interpreted(const Kernel& k, Launch launch) {
  const kernel::Block block = launch.block();
  kernel::interpret(k, 8, 0, 1, block.data());
  return launch.buffers.back();
}

TEST(Roll, FindsLoopsAndKeepsBits) {
  for (const Case& c : cases())
    for (Dtype t : c.dtypes)
      for (int unroll : {1, 8}) {
        SCOPED_TRACE(std::string(c.name) + " of " + sinter::name(t));
        const Kernel k = written_out(c, t, unroll);
        Kernel rolled = k;
        const std::vector<std::int64_t> counts = kernel::roll(rolled);
        kernel::verify(rolled);
        std::int64_t longest = 0;
        for (std::int64_t n : counts) longest = std::max(longest, n);
        EXPECT_EQ(longest, c.loop) << kernel::print(rolled);
        Launch launch;
        for (std::uint64_t seed : {1, 2, 3}) launch.buffers.push_back(random_elements(t, kElements, seed));
        launch.integers = {static_cast<std::int64_t>(kElements)};
        const std::vector<std::uint8_t> expected = interpreted(k, launch);
        launch.integers.insert(launch.integers.end(), counts.begin(), counts.end());
        expect_equal(t, interpreted(rolled, launch), expected, c.name);
        check_kernel(rolled, launch, c.name);
        EXPECT_EQ(counts.empty(), kernel::print(k) == kernel::print(rolled));
      }
}

// One kernel for any number of iterations.
TEST(Roll, TheNumberOfIterationsIsAnArgument) {
  std::string keys[2];
  for (int n : {0, 1}) {
    Case c = cases()[0];
    c.iterations = n ? 50 : 20;
    Kernel k = written_out(c, float32, 4);
    kernel::roll(k);
    kernel::append_key(k, keys[n]);
  }
  EXPECT_EQ(keys[0], keys[1]);
}

// Steps of random operations on random earlier values, repeated.
TEST(Roll, RandomPrograms) {
  static constexpr Op kOps[] = {Op::Add, Op::Multiply, Op::Subtract, Op::Maximum, Op::Tanh, Op::Sin, Op::Abs, Op::Negative};
  int rolled_ones = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    struct Drawn {
      Op op;
      std::size_t x, y;
    };
    std::vector<Drawn> program;
    for (std::size_t n = 0, size = 1 + below(8); n < size; ++n) program.push_back({kOps[below(8)], below(n + 4), below(n + 4)});
    const std::size_t next[] = {below(program.size() + 4), below(program.size() + 4)};
    const int iterations = static_cast<int>(below(30));
    const Kernel k = elementwise({float32, float32}, [&](Builder& b, const std::vector<Ref>& x) {
      State s = x;
      for (int i = 0; i < iterations; ++i) {
        State values = {s[0], s[1], x[0], x[1]};
        for (const Drawn& d : program)
          values.push_back(b.compute(d.op, float32, values[d.x], ops::info(d.op).operands == 2 ? values[d.y] : kernel::kNone));
        s = {values[next[0]], values[next[1]]};
      }
      return b.compute(Op::Add, float32, s[0], s[1]);
    });
    Kernel rolled = k;
    const std::vector<std::int64_t> counts = kernel::roll(rolled);
    rolled_ones += !counts.empty();
    kernel::verify(rolled);
    Launch launch;
    for (std::uint64_t b : {1, 2, 3}) launch.buffers.push_back(random_elements(float32, kElements, b + seed));
    launch.integers = {static_cast<std::int64_t>(kElements)};
    const std::vector<std::uint8_t> expected = interpreted(k, launch);
    launch.integers.insert(launch.integers.end(), counts.begin(), counts.end());
    expect_equal(float32, interpreted(rolled, launch), expected, kernel::print(k));
  }
  EXPECT_GT(rolled_ones, 50);
}

}  // namespace
}  // namespace sinter::tests
