#include "base/lanes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "base/fork_mutex.h"

namespace sinter::base {
namespace {

struct Lanes {
  ForkMutex lock{LockRank::Leaf};
  std::array<int, kLanes> threads{};  // that have each lane
  std::atomic<std::size_t> used{1};   // lane 0 is also that of threads that end
};
Lanes& lanes() {
  static Lanes* l = new Lanes;  // never destroyed: arrays of static storage duration outlive all else
  return *l;
}
[[maybe_unused]] const auto& made_at_load = lanes();  // see ForkMutex

constexpr std::size_t kNone = kLanes;
thread_local constinit std::size_t mine = kNone;
struct GiveBack {
  ~GiveBack() {
    Lanes& l = lanes();
    std::lock_guard guard(l.lock);
    --l.threads[mine];
    mine = 0;  // destructors that run later may still ask
  }
};

}  // namespace

std::size_t lane() {
  if (mine == kNone) [[unlikely]] {
    Lanes& l = lanes();
    {
      std::lock_guard guard(l.lock);
      mine = static_cast<std::size_t>(std::ranges::min_element(l.threads) - l.threads.begin());
      ++l.threads[mine];
      l.used.store(std::max(l.used.load(), mine + 1));
    }
    thread_local GiveBack at_thread_end;
  }
  return mine;
}
std::size_t lanes_used() { return lanes().used.load(); }

}  // namespace sinter::base
