// ForkMutex: a mutex that fork() holds. Layer: base.
#include "base/fork_mutex.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace sinter {
namespace {

struct All {
  std::mutex lock;  // of the list; taken for moments, and last by fork(), since a mutex may be made while others are held
  std::vector<std::pair<LockRank, ForkMutex*>> mutexes;  // by rank
};
All& all();

void before_fork() {
  All& a = all();
  while (true) {
    a.lock.lock();
    const auto mutexes = a.mutexes;
    a.lock.unlock();
    for (const auto& [rank, m] : mutexes) m->lock();
    a.lock.lock();
    if (a.mutexes.size() == mutexes.size()) return;
    a.lock.unlock();
    for (const auto& [rank, m] : mutexes) m->unlock();
  }
}
void after_fork() {
  for (auto& [rank, m] : all().mutexes) m->unlock();
  all().lock.unlock();
}

All& all() {
  static All* a = [] {
    auto* made = new All;
    pthread_atfork(before_fork, after_fork, after_fork);
    return made;
  }();
  return *a;
}

}  // namespace

ForkMutex::ForkMutex(LockRank rank) : rank_(rank) {
  All& a = all();
  std::lock_guard guard(a.lock);
  auto at = std::upper_bound(a.mutexes.begin(), a.mutexes.end(), rank, [](LockRank r, const auto& m) { return r < m.first; });
  a.mutexes.insert(at, {rank, this});
}

#ifdef SINTER_CHECK_LOCKS
namespace {
thread_local constinit std::array<int, static_cast<std::size_t>(LockRank::Leaf) + 1> held{};  // by rank
}

void ForkMutex::lock() {
  const auto rank = static_cast<std::size_t>(rank_);
  for (std::size_t r = rank + 1; r < held.size(); ++r)
    if (held[r] > 0) {
      std::fprintf(stderr, "sinter: a lock of rank %zu is taken by a thread that holds one of rank %zu\n", rank, r);
      std::abort();
    }
  mutex_.lock();
  ++held[rank];
}
void ForkMutex::unlock() {
  --held[static_cast<std::size_t>(rank_)];
  mutex_.unlock();
}
bool ForkMutex::try_lock() {
  const bool taken = mutex_.try_lock();
  held[static_cast<std::size_t>(rank_)] += taken;
  return taken;
}
#endif

}  // namespace sinter
