// Random typed graphs over the tables of operations.
#pragma once
#include <cstdint>

#include "graph/graph.h"

namespace sinter::fuzz {

/// A graph of about `size` operations: elementwise, views, reductions, gathers, products, branches and loops.
graph::Graph random_graph(std::uint32_t seed, int size);

}  // namespace sinter::fuzz
