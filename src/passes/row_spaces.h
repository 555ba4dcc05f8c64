// RowSpaces: which values of a graph there is one of for each row of a reduction. Layer: passes.
//
// A row space is a shape of which a reduction folds neighbouring axes; its rows are those axes' elements: side by side where the axes are
// the last, else columns of memory. Row values are the reduction's results, what is computed from them one a row, and what is only read by
// the two. A kernel that goes over the rows can hold a row's values while it reads the row again: so a reduction, what reads it at every
// element of its row, and further reductions of that can be one kernel.
#pragma once
#include <vector>

#include "graph/group.h"

namespace sinter::passes {

class RowSpaces {
 public:
  explicit RowSpaces(const graph::Graph& g);

  struct Space {
    Shape shape;
    std::vector<std::int64_t> axes;  // those that are folded, without those of size 1
    Shape rows;                      // sizes of the others, without those of size 1
  };
  static constexpr int kNone = -1;
  /// The space of whose rows the node is a value, as an index for space(). kNone for all other nodes.
  int of(graph::Id id) const { return of_.empty() ? kNone : of_[id]; }
  const Space& space(int index) const { return spaces_[static_cast<std::size_t>(index)]; }
  /// The space of this shape.
  int find(const Shape& shape) const;
  /// Whether an operand, a row value of the space or a view of one, has in each row that row's value, and at each element if it has the
  /// shape of the space.
  bool follows_rows(graph::Id operand, int index) const;

 private:
  void add_space(const graph::Node& reduction);
  bool is_one_a_row(graph::Id id, int index) const;
  void find_computed();
  void find_read_only();

  const graph::Graph& g_;
  std::vector<Space> spaces_;
  std::vector<int> of_;  // by id; empty when there are no spaces
};

/// The axes that a reduction folds, without those of size 1.
std::vector<std::int64_t> folded_axes(const graph::Graph& g, const graph::Node& reduction);

}  // namespace sinter::passes
