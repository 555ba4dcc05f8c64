#include "runtime/workers.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "runtime/cores.h"

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
constexpr std::size_t kMostWorkers = 8;

}  // namespace

void run_on_workers(std::int64_t n, std::size_t stack_bytes, FunctionRef<void(std::int64_t)> f) {
  Work work{n, f, {}, {}, {}};
  const Cores cores;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const std::size_t most = std::min(cores.order.empty() ? kMostWorkers : cores.order.size(), kMostWorkers),
                    wanted = std::min(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)), most);
  std::vector<pthread_t> threads;
  threads.reserve(wanted);  // they work with this frame: nothing may fail from here on
  for (std::size_t i = 0; i < wanted; ++i)
    if (pthread_t t; start_thread(cores, i, attributes, start, &work, t)) threads.push_back(t);
  pthread_attr_destroy(&attributes);
  if (threads.empty()) work.run();  // no thread to be had: on ours
  for (pthread_t t : threads) pthread_join(t, nullptr);
  if (work.error) std::rethrow_exception(work.error);
}

void run_aside(std::size_t stack_bytes, void (*f)() noexcept) {
  const Cores cores;
  if (cores.order.size() < 2) return;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const auto call = [](void* what) -> void* {
    reinterpret_cast<void (*)() noexcept>(what)();
    return nullptr;
  };
  pthread_t thread;
  if (start_thread(cores, 0, attributes, call, reinterpret_cast<void*>(f), thread)) pthread_detach(thread);
  pthread_attr_destroy(&attributes);
}

}  // namespace sinter::runtime
