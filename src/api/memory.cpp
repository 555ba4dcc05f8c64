// The public counters of memory. Layer: api.
#include "sinter/memory.h"

#include "runtime/buffer.h"

namespace sinter {

std::size_t active_memory() { return runtime::active_memory(); }
std::size_t peak_memory() { return runtime::peak_memory(); }
void reset_peak_memory() { runtime::reset_peak_memory(); }
std::size_t cache_memory() { return runtime::cache_memory(); }

}  // namespace sinter
