#include "runtime/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <span>

#include "base/check.h"
#include "base/fork_mutex.h"
#include "base/lanes.h"
#include "runtime/pieces.h"

namespace sinter::runtime {
namespace {

// Size classes: four steps per power of two, so that at most a fifth of a block is unused.
std::size_t class_of(std::size_t bytes) {
  std::size_t b = std::max<std::size_t>(bytes, Buffer::kAlign);
  int log = std::bit_width(b - 1);  // smallest power of two that holds it
  std::size_t half = std::size_t{1} << (log - 1), step = half / 4;
  std::size_t quarter = step == 0 ? 4 : (b - half + step - 1) / step;  // 1..4 steps above half
  return static_cast<std::size_t>(log) * 4 + quarter - 1;
}
std::size_t class_bytes(std::size_t c) {
  std::size_t half = std::size_t{1} << (c / 4 - 1);
  return half + half / 4 * (c % 4 + 1);
}

// An idle block holds the next one of its class, so that giving memory back takes none.
struct Idle {
  Idle* next;
};
// Small blocks stay with the thread that gave them back, and are counted by it: threads that call at the same time share neither a lock
// nor a counter.
struct alignas(64) Lane {
  static constexpr std::size_t kSmall = 64 << 10, kMostIdle = 256 << 10, kMostUnsettled = 64 << 10;  // bytes; memory.h tells of the last
  ForkMutex lock{LockRank::Lane};
  Idle* idle[68] = {};  // by size class
  std::size_t idle_bytes = 0;
  std::ptrdiff_t active = 0, peak = 0;  // beyond what the pool counts; the highest value since that was last told
};
struct Pool {
  ForkMutex lock{LockRank::Allocator};
  Idle* idle[260] = {};  // by size class
  std::size_t idle_bytes = 0;
  Pieces pieces;
  std::atomic<std::ptrdiff_t> active{0};  // below 0 while lanes hold what other threads have given back
  std::atomic<std::size_t> peak{0}, limit{kNoLimit}, cache_limit{kNoLimit};
  std::atomic<bool> limited{false};  // either limit is set: lanes are empty, so that limits hold to the byte
  Lane lanes[base::kLanes];
};
thread_local std::int64_t allocations_left = -1;
// Leaked: arrays of static storage duration may be released after everything else is gone.
Pool& pool() {
  static Pool* p = new Pool;
  return *p;
}
[[maybe_unused]] const auto& made_at_load = pool();  // see ForkMutex

std::size_t at_least_none(std::ptrdiff_t bytes) { return static_cast<std::size_t>(std::max<std::ptrdiff_t>(bytes, 0)); }
void note_peak(Pool& p, std::ptrdiff_t active) {
  const std::size_t now = at_least_none(active);
  std::size_t peak = p.peak.load(std::memory_order_relaxed);
  while (now > peak && !p.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}
// The lane's lock is held.
void settle(Pool& p, Lane& l) {
  const std::ptrdiff_t before = p.active.fetch_add(l.active, std::memory_order_relaxed);
  note_peak(p, before + l.peak);
  l.active = l.peak = 0;
}
void settle_own(Pool& p) {
  Lane& l = p.lanes[base::lane()];
  std::lock_guard guard(l.lock);
  if (l.peak != 0 || l.active != 0) settle(p, l);
}
void settle_all(Pool& p) {
  for (std::size_t i = 0; i < base::lanes_used(); ++i) {
    std::lock_guard guard(p.lanes[i].lock);
    settle(p, p.lanes[i]);
  }
}

// Large blocks are pages of their own, medium ones pieces of such.
void* system_allocate(Pool& p, std::size_t bytes) {
  if (bytes >= kHugePage) return map_huge(bytes);
  if (!Pieces::serves(bytes)) return std::aligned_alloc(Buffer::kAlign, Buffer::aligned(bytes));
  std::lock_guard guard(p.lock);
  return p.pieces.take(bytes);
}
// The pool's lock is held, or the block is small.
void system_free(Pool& p, void* block, std::size_t bytes) {
  if (bytes >= kHugePage)
    munmap(block, bytes);
  else if (Pieces::serves(bytes))
    p.pieces.give(block, bytes);
  else
    std::free(block);
}
static_assert(!Pieces::serves(Lane::kSmall));
std::size_t block_bytes(std::size_t c) {  // what a block of the class occupies: whole pages for mapped ones
  std::size_t b = class_bytes(c);
  return b < kHugePage ? b : (b + 4095) / 4096 * 4096;
}

// A block of a small class by the calling thread's lane; false: the pool has to be asked. `block` stays null if the lane has none.
bool allocate_in_lane(Pool& p, std::size_t c, std::size_t bytes, void*& block) {
  Lane& l = p.lanes[base::lane()];
  std::lock_guard guard(l.lock);
  if (p.limited.load()) return false;
  if (Idle* first = l.idle[c]) {
    l.idle[c] = first->next;
    l.idle_bytes -= block_bytes(c);
    block = first;
  }
  l.active += static_cast<std::ptrdiff_t>(bytes);
  l.peak = std::max(l.peak, l.active);
  if (l.active > static_cast<std::ptrdiff_t>(Lane::kMostUnsettled)) settle(p, l);
  return true;
}
// Counts the block as given back; true: it is kept.
bool free_in_lane(Pool& p, std::size_t c, std::size_t bytes, void* block) {
  Lane& l = p.lanes[base::lane()];
  std::lock_guard guard(l.lock);
  l.active -= static_cast<std::ptrdiff_t>(bytes);
  const bool limited = p.limited.load();
  if (limited || -l.active > static_cast<std::ptrdiff_t>(Lane::kMostUnsettled)) settle(p, l);
  if (limited || l.idle_bytes + block_bytes(c) > Lane::kMostIdle) return false;
  l.idle[c] = new (block) Idle{l.idle[c]};
  l.idle_bytes += block_bytes(c);
  return true;
}
// From what is idle in the pool, else from the system; counted already, as `now` in all. Null: there is none.
void* allocate_in_pool(Pool& p, std::size_t c, std::size_t now) {
  const std::size_t capacity = block_bytes(c), limit = p.limit.load(std::memory_order_relaxed);
  void* block = nullptr;
  bool trim = false;
  {
    std::lock_guard guard(p.lock);
    if (Idle* first = p.idle[c]) {
      p.idle[c] = first->next;
      p.idle_bytes -= capacity;
      block = first;
    }
    trim = p.idle_bytes > limit - now;
  }
  if (trim) release_cache();
  if (!block) block = system_allocate(p, capacity);
  if (!block) {
    release_cache();
    block = system_allocate(p, capacity);
  }
  return block;
}

}  // namespace

BufferRef allocate(std::size_t bytes) {
  Pool& p = pool();
  if (bytes > (std::size_t{1} << 46))
    throw OutOfMemory(str("allocate: the size is beyond any memory; got ", bytes, " bytes; check the shape"));
  if (allocations_left >= 0 && allocations_left-- == 0)
    throw OutOfMemory(str("allocate: told to fail; got ", bytes, " bytes; this is a test"));
  auto b = std::make_unique<Buffer>();
  const std::size_t c = class_of(bytes);
  const bool small = bytes <= Lane::kSmall && allocate_in_lane(p, c, bytes, b->data);
  std::size_t now = 0;
  if (!small) {
    settle_own(p);  // so that the peak is right where one thread works
    const auto more = static_cast<std::ptrdiff_t>(bytes), active = p.active.fetch_add(more, std::memory_order_relaxed) + more;
    now = at_least_none(active);
    if (const std::size_t limit = p.limit.load(std::memory_order_relaxed); now > limit) {
      p.active.fetch_sub(more, std::memory_order_relaxed);
      throw OutOfMemory(str("allocate: the memory limit is reached; got ", bytes, " bytes beside ", at_least_none(active - more),
                            " in use, of ", limit, "; free arrays, use smaller ones or call set_memory_limit()"));
    }
    note_peak(p, active);
  }
  if (!b->data) b->data = allocate_in_pool(p, c, now);
  if (!b->data) {
    p.active.fetch_sub(static_cast<std::ptrdiff_t>(bytes), std::memory_order_relaxed);
    throw OutOfMemory(
        str("allocate: out of memory; got ", bytes, " bytes beside ", active_memory(), " in use; free arrays or use smaller ones"));
  }
  b->bytes = bytes;
  b->capacity = block_bytes(c);
  return BufferRef(b.release());
}

BufferRef adopt(void* data, std::size_t bytes, std::function<void(void*)> deleter) {
  auto* b = new Buffer;
  b->data = data;
  b->bytes = bytes;
  b->deleter = std::move(deleter);
  return BufferRef(b);
}

BufferRef::~BufferRef() {
  if (!buffer_ || buffer_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (buffer_->capacity == 0) {
    if (buffer_->deleter) buffer_->deleter(buffer_->data);
  } else {
    Pool& p = pool();
    const std::size_t c = class_of(buffer_->bytes);
    const bool small = buffer_->bytes <= Lane::kSmall;
    if (!small) {
      settle_own(p);
      p.active.fetch_sub(static_cast<std::ptrdiff_t>(buffer_->bytes), std::memory_order_relaxed);
    }
    if (!small || !free_in_lane(p, c, buffer_->bytes, buffer_->data)) {
      std::lock_guard guard(p.lock);
      if (p.idle_bytes + buffer_->capacity > p.cache_limit.load(std::memory_order_relaxed)) {
        system_free(p, buffer_->data, buffer_->capacity);
      } else {
        p.idle[c] = new (buffer_->data) Idle{p.idle[c]};
        p.idle_bytes += buffer_->capacity;
      }
    }
  }
  delete buffer_;
}

std::size_t active_memory() {
  settle_all(pool());
  return at_least_none(pool().active.load(std::memory_order_relaxed));
}
std::size_t peak_memory() {
  settle_all(pool());
  return pool().peak.load(std::memory_order_relaxed);
}
void reset_peak_memory() { pool().peak.store(active_memory(), std::memory_order_relaxed); }
std::size_t cache_memory() {
  Pool& p = pool();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < base::lanes_used(); ++i) {
    std::lock_guard guard(p.lanes[i].lock);
    bytes += p.lanes[i].idle_bytes;
  }
  std::lock_guard guard(p.lock);
  return bytes + p.idle_bytes;
}

namespace {
void release(Pool& p, std::span<Idle*> classes) {
  for (std::size_t c = 0; c < classes.size(); ++c)
    while (Idle* first = classes[c]) {
      classes[c] = first->next;
      system_free(p, first, block_bytes(c));
    }
}
void release_lanes(Pool& p) {
  for (std::size_t i = 0; i < base::lanes_used(); ++i) {
    std::lock_guard guard(p.lanes[i].lock);
    release(p, p.lanes[i].idle);
    p.lanes[i].idle_bytes = 0;
  }
}
// After a limit was changed: no lane uses memory without asking the pool while there is one.
void note_limits(Pool& p) {
  p.limited.store(p.limit.load() != kNoLimit || p.cache_limit.load() != kNoLimit);
  settle_all(p);
  if (!p.limited.load()) return;
  release_lanes(p);
  if (cache_memory() > p.cache_limit.load()) release_cache();
}
}  // namespace

void release_cache() {
  Pool& p = pool();
  release_lanes(p);
  std::lock_guard guard(p.lock);
  release(p, p.idle);
  p.idle_bytes = 0;
}
std::size_t set_memory_limit(std::size_t bytes) {
  const std::size_t before = pool().limit.exchange(bytes);
  note_limits(pool());
  return before;
}
std::size_t set_cache_limit(std::size_t bytes) {
  const std::size_t before = pool().cache_limit.exchange(bytes);
  note_limits(pool());
  return before;
}
void fail_allocation(std::int64_t after) { allocations_left = after; }

}  // namespace sinter::runtime
