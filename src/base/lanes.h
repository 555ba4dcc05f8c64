// Lanes: a number for each thread, for what it keeps to itself and others may have to take away. Layer: base.
//
// A table with a place and a lock for each lane: its thread finds the lock free and in its own cache, and who has to see all places takes
// the locks one after the other.
#pragma once
#include <cstddef>

namespace sinter::base {

inline constexpr std::size_t kLanes = 64;

/// The calling thread's, below kLanes. Threads that run at the same time have different ones, unless there are more of them than lanes.
std::size_t lane();
/// No thread has had this lane or a higher one.
std::size_t lanes_used();

}  // namespace sinter::base
