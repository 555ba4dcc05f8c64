#include "runtime/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#include "base/check.h"
#include "base/fork_mutex.h"
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
struct Pool {
  ForkMutex lock{LockRank::Allocator};
  Idle* idle[260] = {};  // by size class
  std::size_t idle_bytes = 0;
  Pieces pieces;
  std::atomic<std::size_t> active{0}, peak{0}, limit{kNoLimit}, cache_limit{kNoLimit};
};
thread_local std::int64_t allocations_left = -1;
// Leaked: arrays of static storage duration may be released after everything else is gone.
Pool& pool() {
  static Pool* p = new Pool;
  return *p;
}

// Large blocks are pages of their own, medium ones pieces of such.
void* system_allocate(Pool& p, std::size_t bytes) {
  if (bytes >= kHugePage) return map_huge(bytes);
  if (!Pieces::serves(bytes)) return std::aligned_alloc(Buffer::kAlign, (bytes + Buffer::kAlign - 1) / Buffer::kAlign * Buffer::kAlign);
  std::lock_guard guard(p.lock);
  return p.pieces.take(bytes);
}
// The lock is held.
void system_free(Pool& p, void* block, std::size_t bytes) {
  if (bytes >= kHugePage)
    munmap(block, bytes);
  else if (Pieces::serves(bytes))
    p.pieces.give(block);
  else
    std::free(block);
}
std::size_t block_bytes(std::size_t c) {  // what a block of the class occupies: whole pages for mapped ones
  std::size_t b = class_bytes(c);
  return b < kHugePage ? b : (b + 4095) / 4096 * 4096;
}

}  // namespace

BufferRef allocate(std::size_t bytes) {
  Pool& p = pool();
  if (bytes > (std::size_t{1} << 46))
    throw OutOfMemory(str("allocate: the size is beyond any memory; got ", bytes, " bytes; check the shape"));
  if (allocations_left >= 0 && allocations_left-- == 0)
    throw OutOfMemory(str("allocate: told to fail; got ", bytes, " bytes; this is a test"));
  auto b = std::make_unique<Buffer>();
  const std::size_t c = class_of(bytes), capacity = block_bytes(c);
  const std::size_t now = p.active.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const std::size_t limit = p.limit.load(std::memory_order_relaxed);
  if (now > limit) {
    p.active.fetch_sub(bytes, std::memory_order_relaxed);
    throw OutOfMemory(str("allocate: the memory limit is reached; got ", bytes, " bytes beside ", now - bytes, " in use, of ", limit,
                          "; free arrays, use smaller ones or call set_memory_limit()"));
  }
  bool trim = false;
  {
    std::lock_guard guard(p.lock);
    if (Idle* first = p.idle[c]) {
      p.idle[c] = first->next;
      p.idle_bytes -= capacity;
      b->data = first;
    }
    trim = p.idle_bytes > limit - now;
  }
  if (trim) release_cache();
  if (!b->data) b->data = system_allocate(p, capacity);
  if (!b->data) {
    release_cache();
    b->data = system_allocate(p, capacity);
  }
  if (!b->data) {
    p.active.fetch_sub(bytes, std::memory_order_relaxed);
    throw OutOfMemory(
        str("allocate: out of memory; got ", bytes, " bytes beside ", now - bytes, " in use; free arrays or use smaller ones"));
  }
  b->bytes = bytes;
  b->capacity = capacity;
  std::size_t peak = p.peak.load(std::memory_order_relaxed);
  while (now > peak && !p.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
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
    p.active.fetch_sub(buffer_->bytes, std::memory_order_relaxed);
    std::lock_guard guard(p.lock);
    if (p.idle_bytes + buffer_->capacity > p.cache_limit.load(std::memory_order_relaxed)) {
      system_free(p, buffer_->data, buffer_->capacity);
    } else {
      Idle*& first = p.idle[class_of(buffer_->bytes)];
      first = new (buffer_->data) Idle{first};
      p.idle_bytes += buffer_->capacity;
    }
  }
  delete buffer_;
}

std::size_t active_memory() { return pool().active.load(std::memory_order_relaxed); }
std::size_t peak_memory() { return pool().peak.load(std::memory_order_relaxed); }
void reset_peak_memory() { pool().peak.store(active_memory(), std::memory_order_relaxed); }
std::size_t cache_memory() {
  std::lock_guard guard(pool().lock);
  return pool().idle_bytes;
}
void release_cache() {
  Pool& p = pool();
  std::lock_guard guard(p.lock);
  for (std::size_t c = 0; c < std::size(p.idle); ++c)
    while (Idle* first = p.idle[c]) {
      p.idle[c] = first->next;
      system_free(p, first, block_bytes(c));
    }
  p.idle_bytes = 0;
}
std::size_t set_memory_limit(std::size_t bytes) { return pool().limit.exchange(bytes); }
std::size_t set_cache_limit(std::size_t bytes) {
  const std::size_t before = pool().cache_limit.exchange(bytes);
  if (cache_memory() > bytes) release_cache();
  return before;
}
void fail_allocation(std::int64_t after) { allocations_left = after; }

}  // namespace sinter::runtime
