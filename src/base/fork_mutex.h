// ForkMutex: a mutex that fork() holds, so that a child never finds it taken by a thread it does not have. Layer: base.
#pragma once
#include <cstdint>
#include <mutex>

namespace sinter {

/// The order in which fork() takes the locks: a thread that holds one may take those of higher rank alone.
enum class LockRank : std::uint8_t { Registry, Program, Recent, Names, Plan, Evaluate, Kernels, Codegen, Pool, Lane, Allocator, Leaf };

/// For locks that live as long as the process: allocated once and never destroyed. Works with std::lock_guard.
class ForkMutex {
 public:
  explicit ForkMutex(LockRank rank);
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

}  // namespace sinter
