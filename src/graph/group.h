// Group: nodes that become one kernel (a long reduction: two). Partition: a graph cut into groups. Layer: graph.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sinter::graph {

/// Pointwise nodes (elementwise, Cast, Arange, RandomBits, Take, TakeAlong, Constant) over one shape, and reductions over that shape
/// along the same axes.
struct Group {
  std::vector<Id> members;  // ascending
  std::vector<Id> outputs;  // the members that are stored
};

struct Partition {
  std::vector<Group> groups;         // in an order in which they can run, together with the graph's other nodes
  std::vector<std::string> refused;  // why neighbours did not fuse: "sum %9 -> divide %12: ..."
};

/// Whether the node is computed inside a kernel at each point of its shape. A constant of several elements is not: it is read from memory.
bool is_pointwise(const Node& n);
/// Whether a pointwise operation reads this operand at other places than the one it computes (the array of take, a random key): such an
/// operand lies in memory, and its computation cannot be part of the same kernel.
bool is_read_elsewhere(ops::Op op, std::size_t operand);

}  // namespace sinter::graph
