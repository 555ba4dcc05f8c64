// Buffer: reference-counted memory from the caching allocator, or foreign memory with a deleter. Layer: runtime.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace sinter::runtime {

struct Buffer {
  static constexpr std::size_t kAlign = 64;  // of `data`, for buffers of ours
  /// Rounded up to it.
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
  void* data = nullptr;
  std::size_t bytes = 0;     // as asked for
  std::size_t capacity = 0;  // of the block that the allocator handed out; 0 for foreign memory
  std::atomic<std::int64_t> references{1};
  std::function<void(void*)> deleter;  // foreign memory only
};

/// A shared pointer to a Buffer: one word.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* adopt) : buffer_(adopt) {}
  BufferRef(const BufferRef& o) : buffer_(o.buffer_) {
    if (buffer_) buffer_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef&& o) noexcept : buffer_(std::exchange(o.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(buffer_, o.buffer_);
    return *this;
  }
  ~BufferRef();
  explicit operator bool() const { return buffer_ != nullptr; }
  void* data() const { return buffer_->data; }
  std::size_t bytes() const { return buffer_->bytes; }
  /// Nobody else refers to this memory, and it is ours to write.
  bool unique() const { return buffer_->references.load(std::memory_order_acquire) == 1 && !buffer_->deleter; }
  bool operator==(const BufferRef&) const = default;

 private:
  Buffer* buffer_ = nullptr;
};

/// Uninitialised memory. Throws OutOfMemory. 0 bytes give a valid empty buffer.
BufferRef allocate(std::size_t bytes);
/// Memory of somebody else; `deleter(data)` runs when the last reference goes.
BufferRef adopt(void* data, std::size_t bytes, std::function<void(void*)> deleter);

/// Bytes in live buffers, their highest value since the last reset, and bytes kept for reuse.
std::size_t active_memory();
std::size_t peak_memory();
void reset_peak_memory();
std::size_t cache_memory();
/// Returns the idle memory to the system.
void release_cache();

inline constexpr std::size_t kNoLimit = ~std::size_t{0};
/// allocate() throws OutOfMemory rather than let active memory pass the limit. Returns the limit before.
std::size_t set_memory_limit(std::size_t bytes);
/// At most so many bytes are kept for reuse. Returns the limit before.
std::size_t set_cache_limit(std::size_t bytes);
/// For tests: the calling thread's allocation after the next `after` ones throws OutOfMemory; negative: none does.
void fail_allocation(std::int64_t after);

}  // namespace sinter::runtime
