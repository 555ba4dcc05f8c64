// The memory that arrays use, in bytes: counters and limits.
#pragma once
#include <cstddef>

#include "sinter/error.h"

namespace sinter {

/// In live arrays.
SINTER_API std::size_t active_memory();
/// The highest active_memory since the start or the last reset. Exact for one thread; while several work, to within 64 KiB for each other
/// one: a thread counts its small arrays by itself, so that threads do not wait for each other.
SINTER_API std::size_t peak_memory();
SINTER_API void reset_peak_memory();
/// Kept by the allocator for reuse.
SINTER_API std::size_t cache_memory();
/// Arrays may use at most `bytes` at once: what would need more throws OutOfMemory and leaves every array, state and cache as it was. What
/// is kept for reuse counts too, but is given up first. Returns the limit before; at the start there is none: the highest std::size_t.
SINTER_API std::size_t set_memory_limit(std::size_t bytes);
/// At most `bytes` are kept for reuse. Returns the limit before; at the start there is none.
SINTER_API std::size_t set_cache_limit(std::size_t bytes);

}  // namespace sinter
