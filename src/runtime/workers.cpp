#include "runtime/workers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

namespace sinter::runtime {
namespace {

struct Work {
  std::int64_t n;
  FunctionRef<void(std::int64_t)> f;
  std::atomic<std::int64_t> next{0};
  std::mutex lock;
  std::exception_ptr error;

  void run() {
    for (std::int64_t i; (i = next.fetch_add(1)) < n;) {
      try {
        f(i);
      } catch (...) {
        std::lock_guard guard(lock);
        if (!error) error = std::current_exception();
      }
    }
  }
};

void* start(void* work) {
  static_cast<Work*>(work)->run();
  return nullptr;
}

// A plan's longest kernel decides when all are there; more threads take memory, and cores that others want.
constexpr std::int64_t kMostWorkers = 8;

std::int64_t cores() {  // that the calling thread may run on, and threads that it starts
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : kMostWorkers;
}

}  // namespace

void run_on_workers(std::int64_t n, std::size_t stack_bytes, FunctionRef<void(std::int64_t)> f) {
  Work work{n, f, {}, {}, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const std::int64_t wanted = std::min({n, cores(), kMostWorkers});
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<std::size_t>(std::max<std::int64_t>(wanted, 0)));  // they work with this frame: nothing may fail from here on
  for (std::int64_t i = wanted; i > 0; --i) {
    pthread_t t;
    if (pthread_create(&t, &attributes, start, &work) == 0) threads.push_back(t);
  }
  pthread_attr_destroy(&attributes);
  if (threads.empty()) work.run();  // no thread to be had: on ours
  for (pthread_t t : threads) pthread_join(t, nullptr);
  if (work.error) std::rethrow_exception(work.error);
}

}  // namespace sinter::runtime
