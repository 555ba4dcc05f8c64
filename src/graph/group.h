// Group: nodes that become one kernel (a long reduction: two). Partition: a graph cut into groups. Layer: graph.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sinter::graph {

/// Pointwise nodes (elementwise, Cast, Arange, RandomBits, Take, TakeAlong, Pad, Constant) over one shape, the space, and reductions over
/// it along the same axes. Where those are neighbours, the space's rows, there may also be pointwise nodes of which each row has one
/// element (their shapes are that of the reductions' results, whatever their axes of size 1), and members may read row values, through
/// views, at every element of the row. Or a Cumulative node, what it reads and what is made of it at the same places.
struct Group {
  std::vector<Id> members;  // ascending
  std::vector<Id> outputs;  // the members that are stored
  Shape space;
  std::vector<std::int64_t> axes;  // of the space, that are folded
};

struct Partition {
  std::vector<Group> groups;         // in an order in which they can run, together with the graph's other nodes
  std::vector<std::string> refused;  // why neighbours did not fuse: "sum %9 -> divide %12: ..."
};

/// Whether the node is computed inside a kernel at each point of its shape. A constant of several elements is not: it is read from memory.
bool is_pointwise(const Node& n);
/// Whether a kernel of a group computes the node: a pointwise one, or a reduction.
inline bool is_in_kernel(const Node& n) { return is_pointwise(n) || ops::info(n.op).kind == ops::OpKind::Reduce; }
/// Instructions that a pointwise node takes an element, about.
int cost(const Graph& g, Id id);
/// The node whose elements a chain of views shows; the node itself where it is no view.
Id under_views(const Graph& g, Id id);
/// The sizes that are not 1.
Shape without_units(const Shape& shape);
/// Whether a pointwise operation reads this operand at other places than the one it computes (the array of take or pad, a random key): such
/// an operand lies in memory, and its computation cannot be part of the same kernel.
bool is_read_elsewhere(ops::Op op, std::size_t operand);

}  // namespace sinter::graph
