// Puts what checkpoints compute in their place, and takes custom rules away: derivatives have been taken. Branches and loops stay.
#include "graph/bodies.h"
#include "passes/pass.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

bool is_inlined(const Node& n) { return n.op == Op::Checkpoint || ops::info(n.op).kind == ops::OpKind::Custom; }
bool has_inlined(const Graph& g) {
  for (Id id = 0; id < g.size(); ++id)
    if (is_inlined(g[id])) return true;
  return false;
}

Graph inline_outermost(const Graph& source) {
  std::vector<std::vector<Id>> results(source.size());  // of the nodes that go
  return graph::rewrite_with_source(source, [&](Graph& g, const Node& n, Id id, const std::vector<Id>&) -> Id {
    if (is_inlined(n)) {
      results[id] = n.op == Op::Checkpoint ? graph::inline_body(g, *n.bodies[0], n.in) : n.in;
      return results[id][0];
    }
    if (n.op != Op::Get || results[source[id].in[0]].empty()) return graph::kKeep;
    return results[source[id].in[0]][graph::count_attribute(n, 0)];
  });
}

}  // namespace

Graph inline_bodies(const Graph& source) {
  Graph g = source;
  while (has_inlined(g)) g = inline_outermost(g);  // what was inlined may hold others
  return g;
}

}  // namespace sinter::passes
