// Convolutions in dtypes for which no library serves, as products of windows. Layer: passes.
#pragma once
#include "graph/graph.h"

namespace sinter::passes {

/// The node n, Conv, ConvInput or ConvWeight of g's nodes, by `multiply`: a matrix product of (..., m, k) and (..., k, n).
graph::Id convolve_by_products(graph::Graph& g, const graph::Node& n, FunctionRef<graph::Id(graph::Id, graph::Id)> multiply);

}  // namespace sinter::passes
