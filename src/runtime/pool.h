// The thread pool: OpenMP, because the product libraries run on it, behind two functions. Layer: runtime.
#pragma once
#include <cstdint>

#include "base/check.h"

namespace sinter::runtime {

/// Threads that a parallel region may use now.
int max_threads();

/// Calls f(begin, end) over disjoint ranges that cover [0, n), each of at least `grain` iterations, on up to max_threads() threads.
/// Runs on the calling thread when one range is enough or another region holds the pool. `f` does not throw.
void parallel_for(std::int64_t n, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> f);

/// Runs f while no other region of ours uses the pool: for library products, whose bits depend on their number of threads.
void with_pool(FunctionRef<void()> f);

/// parallel_for that waits for the pool, and in which the libraries that run on it use one thread: so their bits depend on no number of
/// threads. What f calls of these functions runs on f's own thread.
void parallel_for_libraries(std::int64_t n, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> f);

}  // namespace sinter::runtime
