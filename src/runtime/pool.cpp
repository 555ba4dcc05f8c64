#include "runtime/pool.h"

#include <omp.h>

#include <algorithm>
#include <mutex>

#include "base/fork_mutex.h"

namespace sinter::runtime {
namespace {
// Held while a parallel region runs. Kernels do not wait for it: they run on their own thread instead.
ForkMutex& region() {
  static ForkMutex* m = new ForkMutex(LockRank::Pool);
  return *m;
}
}  // namespace

int max_threads() { return omp_get_max_threads(); }

void parallel_for(std::int64_t n, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> f) {
  std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), n / std::max<std::int64_t>(grain, 1));
  std::unique_lock lock(region(), std::defer_lock);
  if (threads < 2 || omp_in_parallel() || !lock.try_lock()) {
    f(0, n);
    return;
  }
#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    std::int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    std::int64_t begin = n * part / parts, end = n * (part + 1) / parts;
    if (begin < end) f(begin, end);
  }
}

void with_pool(FunctionRef<void()> f) {
  std::lock_guard lock(region());
  f();
}

}  // namespace sinter::runtime
