// prepare: from a graph as captured to groups that can be planned; the same for regular and compiled evaluation. Layer: engine.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/compiled_graph.h"
#include "graph/rebind.h"

namespace sinter::engine {

struct Prepared {
  graph::Graph graph;
  graph::Partition partition;
  std::unordered_map<graph::Id, std::vector<std::shared_ptr<const Prepared>>> bodies;  // of branches and loops
  std::vector<std::string> reasons = {};                                               // of passes, for explain()
  bool plain = false;                                                                  // it holds for row-major inputs alone
  bool measured = false;                                                               // a library was tried, to decide
};
/// Regular evaluation: `g` is one operation. Bodies are compiled.
Prepared prepare(const graph::Graph& g);
/// Compiled: simplified and fused as the options say.
Prepared prepare(const graph::Graph& g, const GraphOptions& options);

/// The same for other sizes.
Prepared rebind(const Prepared& p, const base::Symbols& symbols, const base::Symbols::Numbers& numbers);

/// Which nodes became which kernels.
std::string explain_groups(const Prepared& p);

}  // namespace sinter::engine
