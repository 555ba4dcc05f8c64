// Ways: how a program can be run, and what comes of it.
#pragma once
#include <cstdint>
#include <string>

#include "fuzz/program.h"

namespace sinter::fuzz {

/// Where a program differs between the regular call and its ways; empty: nowhere.
std::string difference_of_ways(const Program& p);
/// Where derivatives of the program's graph are wrong, or batches of it; empty: nowhere.
std::string wrong_derivatives(const Program& p);
std::string wrong_batches(const Program& p);

/// Of this process: so that one sees that programs compute, and are compiled.
struct Counters {
  std::int64_t calls = 0, threw = 0, elements = 0;  // of regular calls; elements of results and states
  std::int64_t compiled_calls = 0, hits = 0, traces = 0, kernels = 0, from_disk = 0;
  std::int64_t derivatives = 0;
};
Counters& counters();

}  // namespace sinter::fuzz
