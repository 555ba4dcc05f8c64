// Which nodes have the elements of others, for the sizes that they have now. Layer: transforms.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace sinter::transforms {

/// By node, the first with the same elements. A graph has one node for what is certainly equal. Where sizes change, it has others that are
/// equal for the sizes of this call, but for other sizes may not be: views that change nothing, and what is computed of them or by sizes
/// that are equal. Functions of fixed sizes have no such nodes; so that all that an array gets adds up in the same order as there, the
/// first of them gets it.
std::vector<graph::Id> shown_by(const graph::Graph& g, std::span<const graph::Id> outputs, std::span<const graph::Id> wrt,
                                const std::vector<char>& active);

/// Nodes of one operation and the same operands, of which no two are equal for the sizes that they have now. What is a number in two of
/// them tells them apart, without a comparison; where sizes have to be compared, that leaves a guard.
class Distinct {
 public:
  /// The node that is equal to this one, which becomes one of them if there is none.
  graph::Id equal_to(const graph::Node& n, graph::Id id);
  std::size_t comparisons() const { return comparisons_; }

 private:
  using Dims = std::vector<Dim>;  // dtype, rank, sizes and attributes
  struct Known {
    graph::Id id;
    Dims dims;
    std::vector<graph::Body> bodies;
  };
  // By which of the dims change, then by the others.
  std::map<std::vector<bool>, std::map<std::vector<std::int64_t>, std::vector<Known>>> known_;
  std::size_t comparisons_ = 0;
};

}  // namespace sinter::transforms
