// Compiled functions called by several threads: results, counters and the life of entries, with sizes that change or not.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sinter/sinter.h"
#include "support/threads.h"
#include "support/thrown.h"

namespace {

using namespace sinter;
using tests::among_changes;
using tests::on_threads;

constexpr int kThreads = 8;

struct Way {
  const char* name;
  CompileOptions options;
  friend void PrintTo(const Way& w, std::ostream* out) { *out << w.name; }
};
const Way kWays[] = {
    {"shapeless", {.shapeless = true}},
    {"automatic", {}},
    {"never", {.dynamic = Dynamic::never}},
    {"few_entries", {.max_entries = 2}},
};
class CallerThreads : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override { testing::internal::CaptureStderr(); }  // of what keeps changing
  void TearDown() override { testing::internal::GetCapturedStderr(); }
};

// A sum that depends on every element and on the length, which the function reads.
Array weighed(const Array& x, const Array& k) { return sum(x * k) + x.shape(0); }
float weighed(std::int64_t n) { return 3 * static_cast<float>(n); }  // of ones, with k = 2

TEST_P(CallerThreads, EachWithItsOwnLengths) {
  auto f = compile([](const Array& x, const Array& k) { return weighed(x, k); }, GetParam().options);
  std::atomic<int> wrong = 0;
  constexpr int kCalls = 120;
  on_threads(kThreads, [&](int t) {
    const Array k(2.f);
    for (int i = 0; i < kCalls; ++i) {
      const std::int64_t n = 1 + (i * 7 + t * 3) % 23;
      if (f(ones({n}), k).item<float>() != weighed(n)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.stats().calls, kThreads * kCalls);
  EXPECT_LE(f.stats().entries, GetParam().options.max_entries);
  if (GetParam().options.shapeless) {
    EXPECT_LE(f.stats().traces, 3 * kThreads) << f.explain();
  }
}

TEST(CallerThreadsAlone, TracesThatServeAllSizesAreBoundedToo) {
  auto f = compile([](const Array& x) { return x + 1; }, {.shapeless = true, .max_entries = 2});
  for (Dtype t : {Dtype::float32, Dtype::float64, Dtype::int32}) {
    for (int n : {1, 5, 9}) EXPECT_EQ(sum(f(ones({n}, t))).item<int>(), 2 * n);
    EXPECT_LE(f.stats().entries, 2);
  }
}

TEST_P(CallerThreads, WhileOthersClearAndDisable) {
  Array two(2.f);
  auto f = compile([two](const Array& x) { return weighed(x, two); }, GetParam().options);
  std::atomic<int> wrong = 0;
  among_changes([&] {
    on_threads(kThreads, [&](int t) {
      for (int i = 0; i < 40; ++i) {
        const std::int64_t n = 1 + (i + t) % 9;
        if (f(ones({n})).item<float>() != weighed(n)) ++wrong;
      }
    });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.stats().calls, kThreads * 40);
}

// Made by one thread, called by others, destroyed by whichever comes last, while others are made where they were.
TEST_P(CallerThreads, DestroyedByOthers) {
  using Compiled = decltype(compile(std::function<Array(const Array&)>()));
  struct Given {
    Compiled f;
    float k;
  };
  std::mutex lock;
  std::vector<Given> given;
  std::atomic<int> wrong = 0;
  among_changes([&] {
    on_threads(kThreads, [&](int t) {
      for (int i = 0; i < 12; ++i) {
        const float k = static_cast<float>(1 + i + t);
        const Array held = full({3}, k);
        Given mine{compile(std::function<Array(const Array&)>([held](const Array& x) { return sum(x) * sum(held); }), GetParam().options),
                   k};
        std::vector<Given> others;
        {
          std::lock_guard guard(lock);
          given.push_back(mine);
          if (given.size() > kThreads) others.swap(given);
        }
        others.push_back(std::move(mine));
        for (const Given& g : others)
          for (std::int64_t n : {1, 1 + i % 5, 7})
            if (g.f(ones({n})).item<float>() != 3 * g.k * static_cast<float>(n)) ++wrong;
      }
    });
  });
  EXPECT_EQ(wrong, 0);
}

// A cache that grows, one for each thread.
TEST_P(CallerThreads, StatesThatGrow) {
  auto append = compile(
      [](Array& all, const Array& x) {
        all = concatenate({all, x}, 0);
        return sum(all);
      },
      GetParam().options);
  std::atomic<int> wrong = 0;
  on_threads(kThreads, [&](int t) {
    Array all = ones({1});
    for (int i = 0; i < 20; ++i) {
      const std::int64_t before = all.size();
      if (append(all, ones({1 + t % 3})).item<float>() != static_cast<float>(before + 1 + t % 3)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}
INSTANTIATE_TEST_SUITE_P(All, CallerThreads, testing::ValuesIn(kWays), [](const auto& i) { return i.param.name; });

// Entries that threads keep at hand are counted, bounded, dropped and explained like others.

TEST(RecentThreads, EveryCallIsCountedOnce) {
  auto f = compile([](const Array& x, int n) { return x * n + 0.25; }, {.dynamic = Dynamic::never});
  for (int n = 0; n < 3; ++n) f(1.f, n);
  on_threads(kThreads, [&](int) {
    for (int i = 0; i < 500; ++i) f(1.f, i % 3);
  });
  EXPECT_EQ(f.stats().calls, 3 + 500 * kThreads);
  EXPECT_EQ(f.stats().hits, 500 * kThreads);
  EXPECT_EQ(f.stats().traces, 3);
  for (int i = 0; i < 7; ++i) f(1.f, 1);
  EXPECT_EQ(f.stats().hits, 500 * kThreads + 7);
  EXPECT_TRUE(tests::has(f.explain(), "hits: ")) << f.explain();
}

TEST(RecentThreads, DroppedEntriesAreGoneAtOnce) {
  const std::size_t before = active_memory();
  for (int way = 0; way < 3; ++way) {
    const Array big = ones({1 << 18});
    big.eval();
    std::optional f = compile([big](const Array& x) { return x * big; });
    std::atomic<int> called = 0;
    std::atomic<bool> stop = false;
    std::vector<std::thread> idle;  // threads that have used it and live on
    for (int t = 0; t < 3; ++t)
      idle.emplace_back([&] {
        for (int i = 0; i < 5; ++i) (*f)(1.f);
        ++called;
        while (!stop) std::this_thread::yield();
      });
    while (called < 3) std::this_thread::yield();
    std::int64_t traces = f->stats().traces;
    if (way == 0) {
      clear_cache();
      EXPECT_EQ(f->stats().entries, 0);
      (*f)(1.f);
      EXPECT_EQ(f->stats().traces, traces + 1);
    } else if (way == 1) {
      f->clear();
      (*f)(1.f);
      EXPECT_EQ(f->stats().traces, traces + 1);
    }
    f.reset();
    EXPECT_LE(active_memory(), before + static_cast<std::size_t>(big.nbytes()) + 4096);
    stop = true;
    for (std::thread& t : idle) t.join();
  }
}

TEST(RecentThreads, WhatIsUsedIsNotTheFirstToGo) {
  auto f = compile([](const Array& x, int k) { return x + k; }, {.dynamic = Dynamic::never, .max_entries = 2});
  for (int i = 0; i < 4; ++i) f(1.f, 1);
  f(1.f, 2);
  f(1.f, 1);
  f(1.f, 3);
  std::int64_t traces = f.stats().traces;
  f(1.f, 1);
  EXPECT_EQ(f.stats().traces, traces);
  f(1.f, 2);
  EXPECT_EQ(f.stats().traces, traces + 1);
  EXPECT_EQ(f.stats().entries, 2);
}

TEST(RecentThreads, TheLastMissTellsOfTheEntryUsedLast) {
  auto f = compile([](const Array& x) { return x + 0.125; }, {.dynamic = Dynamic::never});
  for (int i = 0; i < 4; ++i) f(ones({2}));
  f(ones({3}));
  f(ones({2}));
  f(ones({5}));
  EXPECT_TRUE(tests::has(f.explain(), "float32[2] -> float32[5]")) << f.explain();
}

// While other threads trace, generate, run and clear: the child has none of them, and finds no lock taken.
TEST(Callers, ForkWhileOthersCall) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer's own allocator leaves its locks to fork() as they are";
#endif
  auto known = compile([](const Array& x) { return exp(x) + 0.5; });
  auto changing = compile([](const Array& x) { return sum(x * x.shape(0)); }, true);
  EXPECT_EQ(known(zeros({4})).to_vector<float>()[3], 1.5f);
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int t = 0; t < 4; ++t)
    others.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        known(zeros({1 + i % 5})).eval();
        changing(ones({2 + i % 7})).eval();
        const float k = static_cast<float>(i);
        compile([k](const Array& x) { return x * k; })(1.0f);
        if (t == 0 && i % 50 == 0) clear_cache();
      }
    });
  for (int i = 0; i < 12; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(30);
      const bool right = known(zeros({4})).to_vector<float>()[3] == 1.5f && known(zeros({3, 2})).to_vector<float>()[5] == 1.5f &&
                         changing(ones({3})).item<float>() == 9 && changing(ones({40})).item<float>() == 1600 &&
                         compile([i](const Array& x) { return tanh(x) - i; })(0.0f).item<float>() == static_cast<float>(-i);
      _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  for (std::thread& t : others) t.join();
}

// With kernels that are made anew all the time, so that fork() meets every lock of theirs.
TEST(Callers, ForkWhileOthersGenerate) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer's own allocator leaves its locks to fork() as they are";
#endif
  auto known = compile([](const Array& x) { return exp(-x) + 1; });
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int t = 0; t < 2; ++t)
    others.emplace_back([&] {
      while (!stop) {
        known(ones({3})).eval();
        clear_cache();
      }
    });
  for (int i = 0; i < 60; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  stop = true;
  for (std::thread& t : others) t.join();
}

// Memory given back by another thread than took it: counted to the byte, and idle where it can be released.
TEST(RecentThreads, MemoryThatChangesHands) {
  clear_cache();
  const std::size_t before = active_memory();
  reset_peak_memory();
  constexpr int kArrays = 200;
  std::vector<Array> made[kThreads];
  on_threads(kThreads, [&](int t) {
    for (int i = 0; i < kArrays; ++i) {
      made[t].push_back(full({1 + i}, t));
      made[t].back().eval();
    }
  });
  const std::size_t held = before + std::size_t{kThreads} * kArrays * (kArrays + 1) / 2 * sizeof(float);
  EXPECT_EQ(active_memory(), held);
  EXPECT_GE(peak_memory(), held);
  on_threads(kThreads, [&](int t) { made[(t + 1) % kThreads].clear(); });
  EXPECT_EQ(active_memory(), before);
  EXPECT_GE(cache_memory(), held - before);
  clear_cache();
  EXPECT_EQ(cache_memory(), 0u);
}

}  // namespace
