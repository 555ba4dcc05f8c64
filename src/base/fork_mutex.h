// ForkMutex: a mutex that fork() holds, so that a child never finds it taken by a thread it does not have. Layer: base.
#pragma once
#include <cstdint>
#include <mutex>

namespace sinter {

/// The order in which fork() takes the locks: a thread that holds one may take those of higher rank alone.
enum class LockRank : std::uint8_t { Registry, Program, Recent, Names, Plan, Evaluate, Codegen, Kernels, Pool, Lane, Allocator, Leaf };

/// For locks that live as long as the process: allocated once, when the library is loaded, and never destroyed: were a thread to make one
/// while another forks, the child would wait for it to be done (a constant `made_at_load` beside it sees to that). Works with
/// std::lock_guard. With SINTER_CHECK_LOCKS (builds with sanitizers) a thread that takes one out of order ends the process.
class ForkMutex {
 public:
  explicit ForkMutex(LockRank rank);
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;
#ifdef SINTER_CHECK_LOCKS
  void lock();
  void unlock();
  bool try_lock();
#else
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }
#endif

 private:
  [[maybe_unused]] const LockRank rank_;
  std::mutex mutex_;
};

}  // namespace sinter
