#include "runtime/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/fork_mutex.h"

namespace sinter::runtime {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;  // from here on: blocks of their own, aligned for and advised to use huge pages

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

struct Pool {
  ForkMutex lock{LockRank::Allocator};
  std::vector<void*> idle[260];  // by size class
  std::size_t idle_bytes = 0;
  std::atomic<std::size_t> active{0}, peak{0};
};
// Leaked: arrays of static storage duration may be released after everything else is gone.
Pool& pool() {
  static Pool* p = new Pool;
  return *p;
}

void* system_allocate(std::size_t bytes) {
  if (bytes < kHuge) return std::aligned_alloc(Buffer::kAlign, (bytes + Buffer::kAlign - 1) / Buffer::kAlign * Buffer::kAlign);
  // Over-map and trim, so that the block starts on a huge page.
  void* raw = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = reinterpret_cast<std::uintptr_t>(raw), aligned = (start + kHuge - 1) / kHuge * kHuge;
  if (aligned > start) munmap(raw, aligned - start);
  if (std::size_t tail = start + kHuge - aligned; tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}
void system_free(void* p, std::size_t bytes) {
  if (bytes < kHuge)
    std::free(p);
  else
    munmap(p, bytes);
}
std::size_t block_bytes(std::size_t c) {  // what a block of the class occupies: whole pages for mapped ones
  std::size_t b = class_bytes(c);
  return b < kHuge ? b : (b + 4095) / 4096 * 4096;
}

}  // namespace

BufferRef allocate(std::size_t bytes) {
  Pool& p = pool();
  if (bytes > (std::size_t{1} << 46))
    throw OutOfMemory(str("allocate: the size is beyond any memory; got ", bytes, " bytes; check the shape"));
  std::size_t c = class_of(bytes), capacity = block_bytes(c);
  void* data = nullptr;
  {
    std::lock_guard guard(p.lock);
    if (auto& idle = p.idle[c]; !idle.empty()) {
      data = idle.back();
      idle.pop_back();
      p.idle_bytes -= capacity;
    }
  }
  if (!data) data = system_allocate(capacity);
  if (!data) {
    release_cache();
    data = system_allocate(capacity);
  }
  if (!data)
    throw OutOfMemory(
        str("allocate: out of memory; got ", bytes, " bytes beside ", active_memory(), " in use; free arrays or use smaller ones"));
  auto* b = new Buffer;
  b->data = data;
  b->bytes = bytes;
  b->capacity = capacity;
  std::size_t now = p.active.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = p.peak.load(std::memory_order_relaxed);
  while (now > peak && !p.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return BufferRef(b);
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
    p.idle[class_of(buffer_->bytes)].push_back(buffer_->data);
    p.idle_bytes += buffer_->capacity;
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
  for (std::size_t c = 0; c < std::size(p.idle); ++c) {
    for (void* data : p.idle[c]) system_free(data, block_bytes(c));
    p.idle[c].clear();
  }
  p.idle_bytes = 0;
}

}  // namespace sinter::runtime
