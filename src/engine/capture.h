// From values to graphs, and back: the only bridge between the two. Layer: engine.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/value.h"
#include "graph/graph.h"

namespace sinter::engine {

using NodeOf = std::unordered_map<const Value*, graph::Id>;

/// The node of `root`, after adding to `g` what it is made of, operands first. `known(a)` says whether a value has a node in `ids`; it
/// gives one to values whose operands are not to be looked at (inputs, constants).
graph::Id capture(graph::Graph& g, NodeOf& ids, const Array& root, FunctionRef<bool(const Array&)> known);

/// The graph's outputs as lazy values, its inputs bound to arrays by slot.
std::vector<Array> replay(const graph::Graph& g, std::span<const Array> bindings);

}  // namespace sinter::engine
