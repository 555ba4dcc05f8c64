// SPEC 9: limits that must not exist.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "engine/kernel_store.h"
#include "spec/helpers.h"

namespace spec {
namespace {

using Arrays = std::vector<Array>;

float value(const Array& a) { return a.item<float>(); }
double seconds(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(spec_9, a_thousand_inputs_outputs_and_constants) {
  constexpr int kMany = 1000;
  std::vector<Array> in, constants;
  for (int i = 0; i < kMany; ++i) {
    in.emplace_back(Array({static_cast<float>(i), 0.f}));
    constants.emplace_back(Array({static_cast<float>(2 * i), 1.f}));
  }
  auto f = compile([constants](const std::vector<Array>& v) {
    std::vector<Array> out;
    for (int i = 0; i < kMany; ++i) out.push_back(v[static_cast<std::size_t>(i)] + constants[static_cast<std::size_t>(i)]);
    return out;
  });
  for (int k = 0; k < 2; ++k) {
    std::vector<Array> out = f(in);
    ASSERT_EQ(out.size(), static_cast<std::size_t>(kMany));
    for (int i = 0; i < kMany; i += 111) EXPECT_TRUE(same(out[static_cast<std::size_t>(i)], Array({3.f * static_cast<float>(i), 1.f})));
  }
}

// Runs f on a thread with a stack of 256 KiB.
void on_small_stack(void (*f)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* g) -> void* {
                  reinterpret_cast<void (*)()>(g)();
                  return nullptr;
                },
                reinterpret_cast<void*>(f)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(spec_9, a_chain_of_100000_operations) {
  on_small_stack([] {
    auto f = compile([](const Array& x) {
      Array y = x;
      for (int i = 0; i < 50000; ++i) y = (y + 1) * 0.5;
      return y;
    });
    EXPECT_TRUE(same(f(zeros({4})), full({4}, 1.0)));
    EXPECT_EQ(f.stats().traces, 1);
  });
}

TEST(spec_9, threads_share_one_compiled) {
  Array k(2.0);
  auto f = compile([k](const Array& x, int n) { return x * k + n; });
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Array s(0.0);
      auto own = compile([k](Array& s, const Array& x) { s = s + x * k; });
      for (int i = 0; i < 60; ++i) {
        int n = (i + t) % 5;
        if (value(f(Array({3.f}), n)) != 6.f + static_cast<float>(n)) ++wrong;
        own(s, 1.0);
        if (value(s) != 2.f * static_cast<float>(i + 1)) ++wrong;
      }
    });
  std::thread clears([&] {
    while (!stop) {
      clear_cache();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  clears.join();
  EXPECT_EQ(wrong, 0);
}

TEST(spec_9, a_forked_child_calls_compiled_functions) {
  auto f = compile([](const Array& x) { return exp(x) + 5; });
  f(ones({8})).eval();
  for (int i = 0; i < 3; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      bool known = std::abs(f(ones({8})).to_vector<float>()[3] - (std::exp(1.f) + 5)) < 1e-4;
      bool fresh = f(zeros({3})).to_vector<float>()[2] == 6;
      _exit(known && fresh ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST(spec_9, ten_thousand_constants_and_one_kernel) {
  EnabledScope scope;
  const Array x = ones({4});
  (x * 0.5f).eval();
  const std::int64_t before = engine::kernel_count();
  for (int i = 0; i < 10000; ++i) ASSERT_EQ((x * (static_cast<float>(i) + 0.25f)).to_vector<float>()[3], static_cast<float>(i) + 0.25f);
  EXPECT_EQ(engine::kernel_count(), before);

  testing::internal::CaptureStderr();
  auto f = compile([](const Array& x, int n) { return sinh(x) * n; }, {.dynamic = Dynamic::never});
  for (int n = 2; n < 10002; ++n) f(x, n);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(f.stats().traces, 10000);
  EXPECT_LE(f.stats().kernels, 1);
  EXPECT_LE(engine::kernel_count(), before + 1);
}

TEST(spec_9, forty_thousand_consumers_of_one_scalar) {
  EnabledScope scope;
  const auto many = [](const Array& s) {
    Array y = s;
    for (int i = 0; i < 40000; ++i) y = abs(y - s);
    return y;
  };
  auto f = compile(many);
  Array y;
  EXPECT_LT(seconds([&] { y = f(Array(1.5f)); }), 2.0);
  EXPECT_TRUE(same(y, many(Array(1.5f))));
}

TEST(spec_9, five_thousand_signatures) {
  EnabledScope scope;
  auto f = compile([](const Array& x) { return exp(x) + 1; }, {.dynamic = Dynamic::never});
  testing::internal::CaptureStderr();
  for (int n = 1; n <= 1500; ++n) f(zeros({n}));
  const std::size_t memory = active_memory();
  for (int n = 1501; n <= 5000; ++n) f(zeros({n}));
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(f.stats().traces, 5000);
  EXPECT_EQ(f.stats().entries, 1024);
  EXPECT_LE(f.stats().kernels, 1);
  EXPECT_LE(active_memory(), memory + (1 << 20));
}

TEST(spec_9, closures_come_and_go) {
  EnabledScope scope;
  const auto round = [](int i) {
    const Array held = full({1000}, i);
    auto f = compile([held](const Array& x) { return sum(sqrt(x) * held); });
    EXPECT_EQ(f(full({1000}, 4.0)).item<float>(), 2000.0f * static_cast<float>(i));
  };
  round(2);
  const std::size_t memory = active_memory();
  const std::int64_t kernels = engine::kernel_count();
  for (int i = 0; i < 1000; ++i) round(i % 7 + 2);
  EXPECT_EQ(active_memory(), memory);
  EXPECT_EQ(engine::kernel_count(), kernels);
}

// 2 GiB and a bit of int8: where indices and sizes no longer fit in 32 bits.
TEST(spec_9, more_than_2_to_the_31_elements) {
  if (!std::getenv("SINTER_TEST_ALL")) GTEST_SKIP() << "needs 7 GB";
  EnabledScope scope;
  const std::int64_t n = (std::int64_t{1} << 31) + 1000;
  auto f = compile([](const Array& x) {
    const Array y =
        astype(x + 1, Dtype::int8) * astype(where(arange(n) < n - 5, Array(1, Dtype::int8), Array(3, Dtype::int8)), Dtype::int8);
    return Arrays{y, sum(astype(y, Dtype::int64)), argmax(y), max(reshape(y, {n / 8, 8}), 0)};
  });
  const Array x = full({n}, 1, Dtype::int8);
  const Arrays out = f(x);
  EXPECT_EQ(out[1].item<std::int64_t>(), 2 * (n - 5) + 6 * 5);
  EXPECT_EQ(out[2].item<std::int64_t>(), n - 5);
  EXPECT_EQ(out[0].size(), n);
  EXPECT_EQ(slice(out[0], {n - 6}, {n}).to_vector<int>(), (std::vector<int>{2, 6, 6, 6, 6, 6}));
  EXPECT_EQ(take(out[0], Array(n - 1)).item<int>(), 6);
  EXPECT_EQ(take(out[0], Array(n - 7)).item<int>(), 2);
  EXPECT_EQ(out[3].to_vector<int>(), (std::vector<int>{2, 2, 2, 6, 6, 6, 6, 6}));
}

}  // namespace
}  // namespace spec
