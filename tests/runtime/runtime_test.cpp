// The allocator, the thread pool and the workers; lazy values under threads.
#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "engine/value.h"
#include "runtime/buffer.h"
#include "runtime/cores.h"
#include "runtime/pieces.h"
#include "runtime/pool.h"
#include "runtime/workers.h"
#include "sinter/sinter.h"

namespace {

using namespace sinter;

TEST(Buffer, AlignedWritableAndCounted) {
  std::size_t before = runtime::active_memory();
  for (std::size_t bytes : {0, 1, 63, 64, 65, 4096, 100'000, 3 << 20, 20'000'001}) {
    runtime::BufferRef b = runtime::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % runtime::Buffer::kAlign, 0u);
    EXPECT_EQ(b.bytes(), bytes);
    EXPECT_EQ(runtime::active_memory(), before + bytes);
    std::memset(b.data(), 1, bytes);
  }
  EXPECT_EQ(runtime::active_memory(), before);
}

TEST(Buffer, ReusesIdleMemoryOfTheSameSize) {
  for (std::size_t bytes : {100u, 5u << 20}) {
    void* first = runtime::allocate(bytes).data();
    EXPECT_GE(runtime::cache_memory(), bytes);
    EXPECT_EQ(runtime::allocate(bytes).data(), first);
  }
  runtime::release_cache();
  EXPECT_EQ(runtime::cache_memory(), 0u);
}

TEST(Buffer, PiecesOfHugePagesAreApartAndGoBack) {
  constexpr std::size_t kSizes[] = {256 << 10, 300 << 10, 1 << 20, 2 << 20, 700 << 10, 1900 << 10, 255 << 10};
  runtime::release_cache();
  for (int round = 0; round < 3; ++round) {
    std::vector<runtime::BufferRef> held;
    for (int i = 0; i < 40; ++i) {
      const std::size_t bytes = kSizes[static_cast<std::size_t>(i) % std::size(kSizes)];
      held.push_back(runtime::allocate(bytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(held.back().data()) % 64, 0u);
      std::memset(held.back().data(), i + round, bytes);
      if (i % 3 == 2) held.erase(held.begin() + i / 3);
    }
    for (const runtime::BufferRef& b : held) {  // nobody has written into it since
      const char* at = static_cast<const char*>(b.data());
      EXPECT_TRUE(std::all_of(at, at + b.bytes(), [&](char c) { return c == at[0]; }));
    }
    held.clear();
    if (round == 1) runtime::release_cache();
  }
  runtime::release_cache();
  EXPECT_EQ(runtime::cache_memory(), 0u);
}
TEST(Pieces, PagesWithoutPiecesAreUnmapped) {
  runtime::Pieces pieces;
  void* first = pieces.take(1 << 20);
  void* second = pieces.take(1 << 20);
  void* third = pieces.take(512 << 10);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(static_cast<char*>(second) - static_cast<char*>(first), 1 << 20);
  EXPECT_NE(reinterpret_cast<std::uintptr_t>(third) / runtime::kHugePage, reinterpret_cast<std::uintptr_t>(first) / runtime::kHugePage);
  unsigned char resident = 0;
  EXPECT_EQ(mincore(first, 4096, &resident), 0);
  std::memset(first, 1, 1 << 20);
  std::memset(second, 1, 1 << 20);
  pieces.give(first, 1 << 20);
  EXPECT_EQ(mincore(first, 4096, &resident), 0);
  EXPECT_EQ(resident & 1, 0) << "its memory is the system's again";
  EXPECT_EQ(*static_cast<char*>(second), 1);
  pieces.give(second, 1 << 20);
  EXPECT_NE(mincore(second, 4096, &resident), 0);
  pieces.give(third, 512 << 10);
}

// Blocks that several threads took and another gives back, before those threads have told of them.
TEST(Buffer, CountsWhatOtherThreadsGiveBack) {
  std::vector<runtime::BufferRef> blocks(48);
  const std::size_t before = runtime::active_memory();
  runtime::reset_peak_memory();
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 6; ++i) blocks[t * 6 + i] = runtime::allocate(8000);
      for (++done; done < 8;) std::this_thread::yield();
    });
  for (std::thread& t : threads) t.join();
  blocks.clear();
  EXPECT_EQ(runtime::active_memory(), before);
  EXPECT_LE(runtime::peak_memory(), before + 48 * 8000);
}

// While several threads work the peak misses at most 64 KiB of each other one, however small the arrays.
TEST(Buffer, PeakOfSeveralThreadsAtOnce) {
  constexpr int kThreads = 4;
  for (std::size_t bytes : {100, 8000, 48000, 200'000}) {
    const std::size_t count = 1'000'000 / bytes, before = runtime::active_memory();
    runtime::reset_peak_memory();
    std::atomic<int> held = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        std::vector<runtime::BufferRef> blocks;
        while (blocks.size() < count) blocks.push_back(runtime::allocate(bytes));
        for (++held; held < kThreads;) std::this_thread::yield();
      });
    for (std::thread& t : threads) t.join();
    EXPECT_GE(runtime::peak_memory() + (kThreads - 1) * (64 << 10), before + kThreads * count * bytes) << bytes;
    EXPECT_LE(runtime::peak_memory(), before + kThreads * count * bytes + (kThreads - 1) * (64 << 10)) << bytes;
  }
}

TEST(Buffer, PeakFollowsAndResets) {
  runtime::reset_peak_memory();
  std::size_t before = runtime::peak_memory();
  {
    runtime::BufferRef a = runtime::allocate(1000), b = runtime::allocate(2000);
    runtime::BufferRef c = a;
    EXPECT_FALSE(a.unique());
    EXPECT_TRUE(b.unique());
  }
  EXPECT_EQ(runtime::peak_memory(), before + 3000);
  runtime::reset_peak_memory();
  EXPECT_EQ(runtime::peak_memory(), before);
}

TEST(Buffer, TooLargeIsOutOfMemory) {
  std::size_t active = runtime::active_memory();
  EXPECT_THROW(runtime::allocate(std::size_t{1} << 60), OutOfMemory);
  EXPECT_THROW(runtime::allocate(std::size_t{1} << 45), OutOfMemory);
  EXPECT_EQ(runtime::active_memory(), active);
}

TEST(Buffer, ForeignMemoryIsReleasedByItsDeleterOnce) {
  int released = 0, data = 7;
  {
    runtime::BufferRef b = runtime::adopt(&data, sizeof data, [&](void* p) { released += p == &data; });
    runtime::BufferRef c = b;
    EXPECT_FALSE(c.unique());
  }
  EXPECT_EQ(released, 1);
}

TEST(Pool, EveryIterationOnceWhateverTheGrain) {
  for (std::int64_t n : {0, 1, 2, 7, 1000})
    for (std::int64_t grain : {1, 3, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
      runtime::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (auto& s : seen) EXPECT_EQ(s, 1);
    }
}

// Every iteration once, and a library that asks how many threads it may use hears one.
TEST(Pool, LibrariesRunOnOneThread) {
  const int before = omp_get_max_threads();
  for (int threads : {1, 3})
    for (std::int64_t n : {0, 1, 2, 7, 1000})
      for (std::int64_t grain : {1, 3, 5000}) {
        omp_set_num_threads(threads);
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
        std::atomic<int> several{0};
        runtime::parallel_for_libraries(n, grain, [&](std::int64_t begin, std::int64_t end) {
          several += !omp_in_parallel() && omp_get_max_threads() != 1;
          for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        for (auto& s : seen) EXPECT_EQ(s, 1);
        EXPECT_EQ(several, 0);
        EXPECT_EQ(omp_get_max_threads(), threads);
      }
  omp_set_num_threads(before);
}

TEST(Workers, RunAllOnTheirOwnStackAndPassExceptionsOn) {
  std::atomic<int> runs{0};
  runtime::run_on_workers(5, std::size_t{32} << 20, [&](std::int64_t) {
    volatile char big[std::size_t{8} << 20];  // more than this thread's own limit would allow
    big[0] = 1;
    big[sizeof big - 1] = 1;
    ++runs;
  });
  EXPECT_EQ(runs, 5);
  EXPECT_THROW(runtime::run_on_workers(3, 1 << 20,
                                       [](std::int64_t i) {
                                         if (i == 1) throw ShapeError("one");
                                       }),
               ShapeError);
}

bool may_go_where(const cpu_set_t& all) {
  cpu_set_t own;
  return sched_getaffinity(0, sizeof own, &own) == 0 && CPU_EQUAL(&own, &all);
}

TEST(Cores, ThreadsBeginOnOneEachAndMayGoEverywhere) {
  const runtime::Cores cores;
  ASSERT_EQ(cores.order.size(), static_cast<std::size_t>(CPU_COUNT(&cores.all)));
  for (const int core : cores.order) EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(core), &cores.all));
  EXPECT_EQ(std::set<int>(cores.order.begin(), cores.order.end()).size(), cores.order.size());
  std::atomic<int> free{0};
  runtime::run_on_workers(3, 1 << 20, [&](std::int64_t) {
    for (int i = 0; i < 20000 && !may_go_where(cores.all); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    free += may_go_where(cores.all);
  });
  EXPECT_EQ(free, 3);
  std::atomic<int> parts{0}, bound{0};
  runtime::parallel_for(1 << 10, 1, [&](std::int64_t, std::int64_t) { ++parts, bound += !may_go_where(cores.all); });
  EXPECT_GE(parts, 1);
  EXPECT_EQ(bound, 0);
}

std::atomic<int> runs_aside{0};
TEST(Workers, RunAThreadAside) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  runtime::run_aside(1 << 20, []() noexcept { ++runs_aside; });
  for (int i = 0; i < 20000 && runs_aside == 0 && CPU_COUNT(&set) > 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(runs_aside, CPU_COUNT(&set) > 1 ? 1 : 0);
  std::thread([] {  // that may run on one core
    const runtime::Cores cores;
    const cpu_set_t one = cores.one(0);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const int before = runs_aside;
    runtime::run_aside(1 << 20, []() noexcept { ++runs_aside; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(runs_aside, before);
  })
      .join();
}

TEST(Values, ThreadsThatEvaluateOneLazyArrayAgree) {
  for (int round = 0; round < 50; ++round) {
    Array x = arange(1000).astype(float32), y = exp(x * 0.001), left = y + x, right = y * left, both = left - right;
    std::vector<float> expected = (exp(x * 0.001) + x - exp(x * 0.001) * (exp(x * 0.001) + x)).to_vector<float>();
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t, mine = t % 2 ? both : right, other = both] {
        if (t % 2 == 0) mine.eval();
        wrong += other.to_vector<float>() != expected;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Values, AFailedEvaluationCanBeRepeated) {
  Array key = random::key(1), broken = engine::make(ops::Op::RandomBits, {key}, {3}, uint32, Shape{4}),
        after = broken + key.astype(uint32).sum();
  for (int i = 0; i < 3; ++i) EXPECT_THROW(after.eval(), InternalError);
  EXPECT_EQ(key.to_vector<unsigned>(), random::key(1).to_vector<unsigned>());
}

}  // namespace
