// ForkMutex: a mutex that fork() holds. Layer: base.
#include "base/fork_mutex.h"

#include <pthread.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace sinter {
namespace {

struct All {
  std::mutex lock;                                       // of the list; taken first by fork()
  std::vector<std::pair<LockRank, ForkMutex*>> mutexes;  // by rank
};
All& all();

void before_fork() {
  all().lock.lock();
  for (auto& [rank, m] : all().mutexes) m->lock();
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

ForkMutex::ForkMutex(LockRank rank) {
  All& a = all();
  std::lock_guard guard(a.lock);
  auto at = std::upper_bound(a.mutexes.begin(), a.mutexes.end(), rank, [](LockRank r, const auto& m) { return r < m.first; });
  a.mutexes.insert(at, {rank, this});
}

}  // namespace sinter
