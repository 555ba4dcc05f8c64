// The threads of a parallel region: OpenMP's (team_openmp.cpp), or, for the thread sanitizer, which cannot see how those wait for each
// other, threads of C++ (team_threads.cpp). Layer: runtime.
#pragma once
#include <cstdint>

#include "base/check.h"

namespace sinter::runtime {

/// Calls f(part, parts) for each part at once, this thread's among them; parts is at most `threads`. `f` does not throw.
void run_team(std::int64_t threads, FunctionRef<void(std::int64_t, std::int64_t)> f);
/// Makes the calling thread's team, each thread on a core of its own: before its first region, which a system's scheduler would hold up.
void make_team();
/// Whether the calling thread runs a part.
bool in_team();

}  // namespace sinter::runtime
