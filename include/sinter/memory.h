// Counters of the memory that arrays use, in bytes.
#pragma once
#include <cstddef>

#include "sinter/error.h"

namespace sinter {

/// In live arrays.
SINTER_API std::size_t active_memory();
/// The highest active_memory since the start or the last reset.
SINTER_API std::size_t peak_memory();
SINTER_API void reset_peak_memory();
/// Kept by the allocator for reuse.
SINTER_API std::size_t cache_memory();

}  // namespace sinter
