// Threads for code generation: short-lived, with a stack of their own size, because LLVM recurses and a user's stack may be small.
// Layer: runtime.
#pragma once
#include <cstdint>

#include "base/check.h"

namespace sinter::runtime {

/// Calls f(i) for each i in [0, n), on a thread for each core that the calling thread may run on (8 at most), however many threads compute;
/// with stacks of `stack_bytes`. Returns when all are done; the first exception is thrown again here.
void run_on_workers(std::int64_t n, std::size_t stack_bytes, FunctionRef<void(std::int64_t)> f);

/// Calls f() on a thread of its own, on another core, and does not wait for it: the program may end meanwhile. Does nothing where there is
/// no other core, or no thread to be had.
void run_aside(std::size_t stack_bytes, void (*f)() noexcept);

}  // namespace sinter::runtime
