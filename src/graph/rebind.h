// Rebind: a graph for other sizes. Layer: graph.
#pragma once
#include "base/symbols.h"
#include "graph/graph.h"
#include "graph/group.h"

namespace sinter::graph {

/// Whether a size, or a number made of one, may change with the open table (base::changes), in bodies too.
bool changes(const Graph& g);
/// Looks at each of them as a number: what is made of the graph holds for these alone.
void pin(const Graph& g);
/// Whether no array would have more than 2^63 bytes.
bool fits(const Graph& g, const base::Symbols& symbols, const base::Symbols::Numbers& numbers);
/// A view of its operand's shape that shows its elements in their order: a flip and a transpose are none.
bool changes_nothing(const Graph& g, const Node& n);
/// Whether there are sizes for which it would.
bool may_change_nothing(ops::Op op);
/// The attributes as a trace of fixed sizes would have written them: the step of a slice that takes one element is 1.
ops::Attrs meaning(const Node& n);
/// The graph for the numbers that its sizes have, as a trace of fixed sizes would have made it: sizes that no table changes, one node for
/// what is equal, and no views that change nothing.
Graph fixed(const Graph& g);
/// The graph with the numbers that its sizes have now: the same nodes under the same ids.
Graph rebind(const Graph& g, const base::Symbols& symbols, const base::Symbols::Numbers& numbers);
Partition rebind(const Partition& p, const base::Symbols& symbols, const base::Symbols::Numbers& numbers);

}  // namespace sinter::graph
