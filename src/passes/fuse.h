// fuse: cuts a graph into groups that become kernels. Layer: passes.
#pragma once
#include "graph/group.h"

namespace sinter::passes {

struct FuseOptions {
  bool fuse = true;            // false: every node is a group of its own
  int max_instructions = 500;  // of a group; longer ones are cut
};

graph::Partition fuse(const graph::Graph& g, const FuseOptions& options);

}  // namespace sinter::passes
