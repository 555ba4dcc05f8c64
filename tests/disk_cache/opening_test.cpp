// The code generator, opened on another core before it is needed, in processes that have not opened it yet; and what else they do then.
#include <sys/wait.h>

#include <cstdlib>
#include <thread>

#include "backends/codegen.h"
#include "disk_cache/worker.h"
#include "engine/kernel_store.h"
#include "sinter/sinter.h"

namespace sinter::tests {
namespace {

constexpr int kSteps = 12;  // of 300 us: the opening takes about 3 ms
void wait_for(int step) { std::this_thread::sleep_for(std::chrono::microseconds(300 * step)); }

// Runs f in a child that has opened nothing yet. Whether the child ends well, and soon.
template <class F>
testing::AssertionResult ends_well(F f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    f();
    std::exit(0);
  }
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && status == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "status " << status;
}

float half_tanh(float x) {
  return compile([](const Array& a) { return tanh(a) * 0.5f; })(Array(x)).item<float>();
}
void fail_unless(bool right) {
  if (!right) _exit(1);
}

TEST(Worker, Opens) {
  if (!is_worker()) GTEST_SKIP();
  ASSERT_FALSE(backends::codegen_loaded());
  engine::expect_kernels();
  for (int i = 0; i < 20000 && !backends::codegen_loaded(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(backends::codegen_loaded() || std::thread::hardware_concurrency() < 2);
  engine::expect_kernels();
  EXPECT_EQ(half_tanh(0), 0);
}

TEST(Worker, Ends) {
  if (!is_worker()) GTEST_SKIP();
  for (int step = 0; step < kSteps; ++step)
    EXPECT_TRUE(ends_well([&] {
      engine::expect_kernels();
      wait_for(step);
    })) << step;
}

TEST(Worker, Forks) {
  if (!is_worker()) GTEST_SKIP();
  for (const bool needed : {false, true})  // by another thread, which waits for it
    for (int step = 0; step < kSteps; ++step)
      EXPECT_TRUE(ends_well([&] {
        std::thread other([&] { needed ? fail_unless(half_tanh(0) == 0) : engine::expect_kernels(); });
        wait_for(step);
        fail_unless(static_cast<bool>(ends_well([] { fail_unless(half_tanh(0) == 0); })));
        other.join();
        fail_unless(half_tanh(0) == 0);
      })) << needed
          << step;
}

testing::AssertionResult passes(const char* test) {
  if (!generates()) return testing::AssertionSuccess();
  const std::string said = Worker({{"SINTER_CACHE_MB", "0"}}, 0, {}, test).finish().said;
  if (said.find("[  PASSED  ] 1 test") != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << said;
}

TEST(Opening, HappensWhenKernelsAreExpected) { EXPECT_TRUE(passes("Opens")); }
TEST(Opening, LetsTheProcessEnd) { EXPECT_TRUE(passes("Ends")); }
TEST(Opening, LetsTheProcessFork) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer's own allocator leaves its locks to fork() as they are";
#endif
  EXPECT_TRUE(passes("Forks"));
}

}  // namespace
}  // namespace sinter::tests
