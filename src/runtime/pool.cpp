#include "runtime/pool.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <mutex>

#include "base/fork_mutex.h"
#include "runtime/team.h"

namespace sinter::runtime {
namespace {
// Held while a parallel region runs. Kernels do not wait for it: they run on their own thread instead.
ForkMutex& region() {
  static ForkMutex* m = new ForkMutex(LockRank::Pool);
  return *m;
}
[[maybe_unused]] const auto& made_at_load = region();  // see ForkMutex

// OpenMP keeps a thread's workers for its next region. A child of fork() has the thread but not the workers, and would wait for them for
// ever: there this thread goes on alone. Threads that the child starts get workers of their own.
thread_local bool has_workers = false;
void note_workers() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] {
    if (has_workers) omp_set_num_threads(1);
  });
  has_workers = true;
  [[maybe_unused]] static const bool made = (make_team(), true);  // later threads' teams are not worth the 0.1 ms
}
}  // namespace

int max_threads() { return omp_get_max_threads(); }

namespace {
thread_local bool alone = false;  // within parallel_for_libraries, whose caller holds the pool

std::int64_t threads_for(std::int64_t n, std::int64_t grain) {
  return alone || in_team() ? 1 : std::min<std::int64_t>(omp_get_max_threads(), n / std::max<std::int64_t>(grain, 1));
}
// The pool is held.
void share(std::int64_t n, std::int64_t threads, FunctionRef<void(std::int64_t, std::int64_t)> f) {
  note_workers();
  run_team(threads, [&](std::int64_t part, std::int64_t parts) {
    const std::int64_t begin = n * part / parts, end = n * (part + 1) / parts;
    if (begin < end) f(begin, end);
  });
}
}  // namespace

void parallel_for(std::int64_t n, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> f) {
  const std::int64_t threads = threads_for(n, grain);
  std::unique_lock lock(region(), std::defer_lock);
  if (threads < 2 || !lock.try_lock()) return f(0, n);
  share(n, threads, f);
}

void parallel_for_libraries(std::int64_t n, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> f) {
  if (alone) return f(0, n);
  const std::int64_t threads = threads_for(n, grain);
  std::lock_guard lock(region());
  struct Alone {
    const int before = omp_get_max_threads();  // of this thread
    Alone() {
      omp_set_num_threads(1);
      alone = true;
    }
    ~Alone() {
      alone = false;
      omp_set_num_threads(before);
    }
  };
  const auto by_itself = [&](std::int64_t begin, std::int64_t end) {
    const Alone scope;
    f(begin, end);
  };
  if (threads < 2) return by_itself(0, n);
  share(n, threads, by_itself);
}

void with_pool(FunctionRef<void()> f) {
  if (alone) return f();
  std::lock_guard lock(region());
  note_workers();
  f();
}

}  // namespace sinter::runtime
