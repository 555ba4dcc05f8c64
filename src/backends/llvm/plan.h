// Plan: what is known of a kernel before its code is written. Layer: backends.
#pragma once
#include <set>
#include <utility>
#include <vector>

#include "backends/target.h"
#include "kernel/kernel.h"

namespace sinter::backends {

struct Plan {
  std::vector<std::size_t> ends;                  // by Ref of a Loop: its End
  std::vector<bool> varying;                      // by Ref: may differ between the lanes of its Vector loop
  bool masked = false;                            // vector loops are one masked loop instead of a main loop and a tail
  std::vector<bool> tiles;                        // by Ref of a Loop: it has a Tile
  std::vector<bool> pipelined;                    // by Ref of a Vector loop: its iterations may overlap (pipeline.h)
  bool streams = false;                           // stores can go past the caches (kernel.h)
  std::set<std::pair<ops::Op, Dtype>> functions;  // operations that are called instead of written out
};

Plan make_plan(const kernel::Kernel& k, const Target& target);

}  // namespace sinter::backends
