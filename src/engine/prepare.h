// prepare: from a graph as captured to groups that can be planned; the same for regular and compiled evaluation. Layer: engine.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/compiled_graph.h"
#include "graph/group.h"

namespace sinter::engine {

struct Prepared {
  graph::Graph graph;
  graph::Partition partition;
  std::unordered_map<graph::Id, std::vector<std::shared_ptr<const Prepared>>> bodies;  // of branches and loops
};
/// Regular evaluation: `g` is one operation. Bodies are compiled.
Prepared prepare(const graph::Graph& g);
/// Compiled: simplified and fused as the options say.
Prepared prepare(const graph::Graph& g, const GraphOptions& options);

/// Which nodes became which kernels.
std::string explain_groups(const Prepared& p);

}  // namespace sinter::engine
