// Several threads that do something at once, and one that changes what compiled functions rest on meanwhile.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "sinter/sinter.h"

namespace sinter::tests {

// Runs f(thread) on all of them at once.
inline void on_threads(int n, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  std::atomic<int> ready = 0;
  for (int t = 0; t < n; ++t)
    threads.emplace_back([&, t] {
      for (++ready; ready < n;) std::this_thread::yield();
      f(t);
    });
  for (std::thread& t : threads) t.join();
}

// Clears the cache, disables and enables compilation, one after the other with a pause, while `f` runs.
inline void among_changes(const std::function<void()>& f, std::chrono::microseconds pause = std::chrono::milliseconds(5)) {
  std::atomic<bool> stop = false;
  std::thread changes([&] {
    for (int i = 0; !stop; ++i) {
      if (i % 3 == 0)
        clear_cache();
      else if (i % 3 == 1)
        disable_compile();
      else
        enable_compile();
      std::this_thread::sleep_for(pause);
    }
    enable_compile();
  });
  f();
  stop = true;
  changes.join();
}

}  // namespace sinter::tests
