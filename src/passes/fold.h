// Folding of one node; the pass is in pass.h. Layer: passes.
#pragma once
#include "graph/graph.h"

namespace sinter::passes {

/// The constant that equals a node over constants, or kKeep.
graph::Id fold_node(graph::Graph& g, const graph::Node& n);

}  // namespace sinter::passes
