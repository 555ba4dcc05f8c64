// OperandWalk: goes from nodes to what they read, the latest node first, so that each comes after all of its readers that the walk has
// passed, and it is known whether those are all there are. Layer: passes.
#pragma once
#include <queue>
#include <unordered_map>

#include "graph/graph.h"

namespace sinter::passes {

class OperandWalk {
 public:
  /// Counts a use of the node; at the first one it is to come.
  void see(graph::Id id) {
    if (++uses_[id] == 1) found_.push(id);
  }
  bool done() const { return found_.empty(); }
  graph::Id next() {
    const graph::Id id = found_.top();
    found_.pop();
    return id;
  }
  int uses(graph::Id id) const { return uses_.at(id); }

 private:
  std::priority_queue<graph::Id> found_;
  std::unordered_map<graph::Id, int> uses_;
};

}  // namespace sinter::passes
