// The public counters and limits of memory. Layer: api.
#include "sinter/memory.h"

#include "runtime/buffer.h"

namespace sinter {

std::size_t active_memory() { return runtime::active_memory(); }
std::size_t peak_memory() { return runtime::peak_memory(); }
void reset_peak_memory() { runtime::reset_peak_memory(); }
std::size_t cache_memory() { return runtime::cache_memory(); }
std::size_t set_memory_limit(std::size_t bytes) { return runtime::set_memory_limit(bytes); }
std::size_t set_cache_limit(std::size_t bytes) { return runtime::set_cache_limit(bytes); }

}  // namespace sinter
