// Memory: what the steps of a plan work on during one call. Layer: engine.
#pragma once
#include <span>
#include <vector>

#include "engine/plan.h"
#include "engine/value.h"

namespace sinter::engine {

/// An array for the length of a call: on the stack where it is short, so that a step takes no memory.
template <class T>
class Few {
 public:
  explicit Few(std::size_t size) : size_(size), heap_(size > kOnStack ? size : 0) {}
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;
  T* data() { return size_ > kOnStack ? heap_.data() : stack_; }
  T& operator[](std::size_t i) { return data()[i]; }
  operator std::span<const T>() { return {data(), size_}; }

 private:
  static constexpr std::size_t kOnStack = 128;
  std::size_t size_;
  T stack_[kOnStack];
  std::vector<T> heap_;
};

struct Memory {
  Inputs inputs;
  std::vector<runtime::BufferRef> buffers;
  runtime::BufferRef scratch = {};  // of all threads, one after the other; a launch at a time

  char* at(const Slot& s) const {
    if (!s.is_input) return static_cast<char*>(buffers[s.number].data()) + s.offset;
    const Value& v = value_of(inputs[s.number], "run");
    return static_cast<char*>(v.buffer.data()) + v.layout.offset * size_of(v.dtype) + s.offset;
  }
  /// Row-major elements at a slot, as an array that shares the memory.
  Array array(const Slot& s, const graph::Type& t, std::int64_t elements = 0) const {
    const bool input = s.is_input;
    const Value* v = input ? &value_of(inputs[s.number], "run") : nullptr;
    const std::int64_t offset = s.offset / size_of(t.dtype) + (input ? v->layout.offset : Dim(0)) + elements;
    return make_ready(input ? v->buffer : buffers[s.number], {offset, graph::row_major(t.shape)}, t.dtype, t.shape);
  }
};

/// The buffers of a launch that stream (kernel.h): large ones whose memory it does not read, for what is read lies in a cache when it is
/// written. Bit b: buffer b.
std::uint64_t streams_of(const Launch& l, const Memory& memory);

/// Runs a branch or a loop; its results' memory becomes the plan's, but for stacked results, which have theirs. May throw OutOfMemory.
void run_region(const Region& r, Memory& memory, bool interpreted);
/// Runs blocks; their results' memory is there. May throw OutOfMemory before it writes.
void run_blocks(const Region& r, const Memory& memory, bool interpreted);

}  // namespace sinter::engine
