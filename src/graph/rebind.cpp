#include "graph/rebind.h"

#include <algorithm>

namespace sinter::graph {

// Graphs in graphs are as deep as the user's code nests.
bool changes(const Graph& g) {
  for (Id id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (base::changes(n.type.shape) || base::changes(n.attrs)) return true;
    for (const Body& b : n.bodies)
      if (changes(*b)) return true;
  }
  return false;
}

void pin(const Graph& g) {
  for (Id id = 0; id < g.size(); ++id) {
    for (const Dim& d : g[id].type.shape) static_cast<void>(static_cast<std::int64_t>(d));
    for (const Dim& d : g[id].attrs) static_cast<void>(static_cast<std::int64_t>(d));
    for (const Body& b : g[id].bodies) pin(*b);
  }
}

bool fits(const Graph& g, const base::Symbols& symbols, const base::Symbols::Numbers& numbers) {
  for (Id id = 0; id < g.size(); ++id) {
    std::int64_t bytes = size_of(g[id].type.dtype);
    bool all = true, empty = false;
    for (const Dim& d : g[id].type.shape) {
      const std::int64_t n = base::peek(symbols.at(numbers, d));
      empty = empty || n == 0;
      all = all && !__builtin_mul_overflow(bytes, n, &bytes);
    }
    if (!all && !empty) return false;
    for (const Body& b : g[id].bodies)  // graphs in graphs are as deep as the user's code nests
      if (!fits(*b, symbols, numbers)) return false;
  }
  return true;
}

Graph rebind(const Graph& g, const base::Symbols& symbols, const base::Symbols::Numbers& numbers) {
  Graph out;
  out.name = g.name;
  out.reserve(g.size());
  for (Id id = 0; id < g.size(); ++id) {
    Node n = g[id];
    for (Dim& a : n.attrs) a = symbols.at(numbers, a);
    for (Dim& d : n.type.shape) d = symbols.at(numbers, d);
    for (Body& b : n.bodies) b = rebind(*b, symbols, numbers);
    check(out.add(std::move(n)) == id, "rebind: two nodes became one");
  }
  out.set_outputs(g.outputs());
  return out;
}

bool may_change_nothing(ops::Op op) {
  return op == ops::Op::Reshape || op == ops::Op::Broadcast || op == ops::Op::Pad || op == ops::Op::Slice;
}
bool changes_nothing(const Graph& g, const Node& n) {
  if (!may_change_nothing(n.op)) return false;
  const ops::Attrs attrs = meaning(n);
  const auto rank = static_cast<std::ptrdiff_t>(n.type.shape.size());
  const auto is_one = [](const Dim& step) { return step == 1; };
  return (n.op != ops::Op::Slice || std::all_of(attrs.end() - rank, attrs.end(), is_one)) && n.type.shape == g[n.in[0]].type.shape;
}
ops::Attrs meaning(const Node& n) {
  ops::Attrs attrs = n.attrs;
  if (n.op != ops::Op::Slice) return attrs;
  const std::size_t rank = n.type.shape.size();
  for (std::size_t d = 0; d < rank; ++d)
    if (Dim& step = attrs[2 * rank + d]; !base::same(step, 1) && n.type.shape[d] <= 1) step = 1;
  return attrs;
}

Graph fixed(const Graph& g) {
  Graph out;
  out.name = g.name;
  std::vector<Id> copies;
  for (Id id = 0; id < g.size(); ++id) {
    Node n = g[id];
    for (Dim& a : n.attrs) a = base::peek(a);
    for (Dim& d : n.type.shape) d = base::peek(d);
    n.attrs = meaning(n);
    for (Id& in : n.in) in = copies[in];
    for (Body& b : n.bodies) b = fixed(*b);  // as deep as the user's code nests
    copies.push_back(changes_nothing(out, n) ? n.in[0] : out.add(std::move(n)));
  }
  std::vector<Id> outputs;
  for (Id id : g.outputs()) outputs.push_back(copies[id]);
  out.set_outputs(std::move(outputs));
  return out;
}

Partition rebind(const Partition& p, const base::Symbols& symbols, const base::Symbols::Numbers& numbers) {
  Partition out = p;
  for (Group& group : out.groups) group.space = symbols.at(numbers, group.space);
  return out;
}

}  // namespace sinter::graph
