// Memory: what the steps of a plan work on during one call. Layer: engine.
#pragma once
#include <span>
#include <vector>

#include "engine/plan.h"
#include "engine/value.h"

namespace sinter::engine {

struct Memory {
  std::span<const Array> inputs;
  std::vector<runtime::BufferRef> buffers;
  runtime::BufferRef scratch = {};  // of all threads, one after the other; a launch at a time

  const runtime::BufferRef& of(const Slot& s) const { return s.is_input ? value_of(inputs[s.number], "run").buffer : buffers[s.number]; }
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
