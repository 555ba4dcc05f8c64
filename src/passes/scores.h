// Scores: arrays that products make of two smaller ones, that are folded along their rows, and that further products use up: attention that
// is written out, and its gradient. Layer: passes.
//
// Scores have one shape, (grid..., n, m). What is computed from them one a row has the shape (grid..., n) or (grid..., n, 1): row values.
// Members of a site are elementwise operations on either, folds of scores along the last axis, and views that bring row values there and
// back. Entries are the products that make scores; exits those that read them, as they are or transposed.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sinter::passes {

/// What the shape of a node is, beside scores of `shape`.
enum class Rows { Scores, Columns, Flat, Other };  // (..., n, m), (..., n, 1), (..., n), another one
Rows rows_of(const Shape& scores, const Shape& shape);
/// Whether the view exchanges the last two axes and leaves the others.
bool is_swap(const graph::Node& n);

struct ScoreSite {
  struct Exit {
    graph::Id id;
    std::size_t operand;  // 0 or 1: which of its operands are the scores
    bool transposed;      // they are read through a transpose
    /// Adds up over rows: the result has none.
    bool is_sum() const { return (operand == 0) == transposed; }
  };
  Shape shape;
  std::vector<graph::Id> members;  // ascending, with the entries; constants of one element are none
  std::vector<Exit> exits;         // ascending
};

/// Sites whose sizes do not change and whose scores are larger than what entries and exits read and make.
std::vector<ScoreSite> find_scores(const graph::Graph& g);
/// The members that the nodes need, with them. Ascending.
std::vector<graph::Id> members_for(const graph::Graph& g, const Shape& scores, std::vector<graph::Id> nodes);
/// The scores that an exit reads.
graph::Id scores_of(const graph::Graph& g, const ScoreSite::Exit& e);

}  // namespace sinter::passes
