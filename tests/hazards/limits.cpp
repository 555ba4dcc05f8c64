// Deep chains, large constants, fork, failures of code generation.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <thread>

#include "engine/kernel_store.h"
#include "hazards/hazards.h"

namespace sinter::tests {
namespace {

// Runs f on a thread with a stack of 256 KiB.
void on_small_stack(void (*f)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  const int made = pthread_create(
      &thread, &attributes,
      [](void* g) -> void* {
        reinterpret_cast<void (*)()>(g)();
        return nullptr;
      },
      reinterpret_cast<void*>(f));
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(made, 0);
  pthread_join(thread, nullptr);
}

Array sines(const Array& x, int n) {
  Array y = x;
  for (int i = 0; i < n; ++i) y = sin(y);
  return y;
}
// Two results a step, both used.
Array halves(const Array& x, int n) {
  Array y = x;
  for (int i = 0; i < n; ++i) {
    const Arrays parts = split(y, 2);
    y = concatenate({parts[1] + 1, parts[0]});
  }
  return y;
}

TEST(hazard, hazard_23_deep_chains_are_dropped) {
  on_small_stack([] {
    const Array x = full({2}, 0.5);
    {
      Array dropped = sines(x, 100000);
    }
    {
      Array dropped = halves(x, 30000);
    }
    Arrays all;
    for (int i = 0; i < 100; ++i) all.push_back(sines(i ? all.back() : x, 1000));
  });
}

TEST(hazard, hazard_23_deep_chains_are_evaluated) {
  on_small_stack([] {
    const Array x = full({2}, 0.5);
    float expected = 0.5f;
    const Array y = sines(x, 100000);
    const std::vector<float> got = y.to_vector<float>();
    for (int i = 0; i < 100000; ++i) expected = std::sin(expected);
    EXPECT_NEAR(got[1], expected, 1e-4 * expected);
    EXPECT_EQ(sum(halves(x, 4000)).item<float>(), 4001);
  });
}

TEST(hazard, hazard_23_deep_chains_are_compiled) {
  on_small_stack([] {
    const Array x = full({2}, 0.5);
    auto f = compile([](const Array& x) { return sines(x, 3000); });
    auto g = compile([](const Array& x) { return halves(x, 300); });
    EXPECT_EQ(difference(f(x), sines(x, 3000)), "");
    EXPECT_EQ(difference(g(x), halves(x, 300)), "");
    auto thrower = compile([](const Array& x) -> Array {
      const Array y = sines(x, 100000);
      throw Error("the trace is dropped");
    });
    EXPECT_THROW(thrower(x), Error);
  });
}

TEST(hazard, hazard_33_large_constants) {
  const std::size_t before = active_memory();
  {
    Array big = zeros({25'000'000});  // 100 MB
    big.eval();
    reset_peak_memory();
    auto f = compile([big](const Array& x) { return sum(slice(big, {0}, {1000}) + x); });
    EXPECT_EQ(f(2.0).item<float>(), 2000);
    EXPECT_LT(peak_memory(), before + 101'000'000) << "the constant is not copied";
    EXPECT_LT(f.graph(2.0).size() + f.kernels(2.0).size() + f.explain().size(), 20000u) << "nor printed";
  }
  // Work on constants alone is not done while tracing when its result is large.
  reset_peak_memory();
  const std::size_t now = active_memory();
  auto g = compile([](const Array& x) { return sum(slice((full({100'000'000}, 2.0) * 3 + 1) * x, {5}, {7})); });
  EXPECT_LT(g.graph(1.0).size(), 20000u);
  EXPECT_LT(peak_memory(), now + (1 << 20));
  EXPECT_LE(active_memory(), before + (1 << 20));
}

TEST(hazard, hazard_38_fork) {
  auto f = compile([](const Array& x) { return exp(x) + 7; });
  Array lazy = ones({100}) * 3;
  EXPECT_EQ(f(zeros({1 << 18})).to_vector<float>()[9], 8);  // the pool has run
  EXPECT_EQ(matmul(ones({300, 300}), ones({300, 300})).to_vector<float>()[7], 300);
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      const bool known = f(zeros({1 << 18})).to_vector<float>()[5] == 8;
      const bool fresh = f(zeros({3, 2})).to_vector<float>()[2] == 8;
      auto made = compile([i](const Array& x) { return tanh(x) * x - i; });
      const bool own = made(zeros({5})).to_vector<float>()[4] == static_cast<float>(-i);
      const bool product = matmul(ones({300, 300}), ones({300, 300})).to_vector<float>()[7] == 300;
      float on_thread = 0;
      std::thread([&] { on_thread = f(zeros({1 << 18})).to_vector<float>()[5]; }).join();
      const bool evaluates = sum(lazy).item<float>() == 300;
      clear_cache();
      const bool again = f(zeros({4})).to_vector<float>()[3] == 8;
      _exit(known && fresh && own && evaluates && product && on_thread == 8 && again ? 0 : 1);
    }
    EXPECT_EQ(f(zeros({5 + i})).to_vector<float>()[4], 8) << "the parent goes on";
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child " << i << ": " << status;
  }
}

// A kernel that cannot be generated: the cause is told, the others of its set and later ones are not harmed, and it may come again.
TEST(hazard, hazard_39_a_kernel_that_fails) {
  const auto square = [](float k) {
    kernel::Builder b;
    b.buffer(float32, true);
    const kernel::Ref i = b.loop(kernel::LoopKind::Vector, b.index(0), b.arg());
    b.store(0, i, b.compute(ops::Op::Multiply, float32, b.load(0, i), b.constant(float32, std::bit_cast<std::uint32_t>(k))));
    b.end();
    b.kernel.name = "square";
    return b.kernel;
  };
  kernel::Kernel broken = square(3.25f);
  broken.name = "broken_multiply";
  for (kernel::Inst& i : broken.body)
    if (i.code == kernel::Code::Compute) i.in[1] = kernel::kNone;
  const std::int64_t before = engine::kernel_count();
  for (int round = 0; round < 2; ++round) {
    engine::KernelCost cost;
    try {
      engine::load_kernels({{broken, square(17.5f)}}, false, cost);
      ADD_FAILURE() << "a broken kernel was generated";
    } catch (const std::exception& e) {
      const std::string text = e.what();
      EXPECT_TRUE(text.find("wrong operands") != std::string::npos && text.find("broken_multiply") != std::string::npos) << text;
    }
    engine::release_kernels();
    EXPECT_LE(engine::kernel_count(), before + 1);
    auto good = engine::load_kernels({{square(17.5f)}}, false, cost);
    std::vector<float> v{1, 2, 3};
    const std::uint64_t block[] = {reinterpret_cast<std::uint64_t>(v.data()), 3};
    good[0]->run(0, 1, block, 0);
    EXPECT_EQ(v, (std::vector<float>{17.5, 35, 52.5}));
  }
  EXPECT_EQ(compile([](const Array& x) { return x * 21.5; })(2.0).item<float>(), 43);
}

}  // namespace
}  // namespace sinter::tests
