// roll: a loop of the user's function that tracing wrote out becomes a loop again. Layer: kernel.
#pragma once
#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace sinter::kernel {

/// Within Vector loops, runs of the same instructions, each run on the results of the one before, become Serial loops that carry those
/// results. That changes no value; the code is as small as one run. Returns the numbers of iterations, which are new integer arguments,
/// the kernel's last.
std::vector<std::int64_t> roll(Kernel& k);

}  // namespace sinter::kernel
