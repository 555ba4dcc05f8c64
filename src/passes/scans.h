// Which elementwise work joins the loop of a cumulative operation. Layer: passes.
//
// A cumulative operation goes along an axis in order, so its kernel can compute what it reads, and what is made of its result at the same
// place, as it goes: neither is stored then.
#pragma once
#include <vector>

#include "graph/group.h"

namespace sinter::passes {

/// For each node the cumulative operation whose kernel computes it (itself for one of these); kKeep for all others.
/// `level`: kernels of one level never wait for each other; reads of stored nodes are of lower levels. `may_move`: of pointwise nodes that
/// no kernel over rows holds. `is_argument`: of constants that are no memory.
std::vector<graph::Id> find_scans(const graph::Graph& g, const std::vector<int>& level, FunctionRef<bool(graph::Id)> may_move,
                                  FunctionRef<bool(graph::Id)> is_argument);

}  // namespace sinter::passes
