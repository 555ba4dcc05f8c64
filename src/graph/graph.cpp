#include "graph/graph.h"

#include <bit>

#include "base/symbols.h"

namespace sinter::graph {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 32);
}

// The counts are mixed in, so that an operand is never mistaken for an attribute.
std::uint64_t hash(const Node& n) {
  std::uint64_t h =
      mix(static_cast<std::uint64_t>(n.op) << 32 | n.in.size() << 16 | n.type.shape.size() << 8 | static_cast<std::uint64_t>(n.type.dtype),
          n.attrs.size());
  for (const Body& b : n.bodies) h = mix(h, b->size());
  for (Id id : n.in) h = mix(h, id);
  for (const Dim& a : n.attrs) h = mix(h, static_cast<std::uint64_t>(base::peek(a)));
  for (const Dim& d : n.type.shape) h = mix(h, static_cast<std::uint64_t>(base::peek(d)));
  return h;
}

}  // namespace

bool same(const Type& a, const Type& b) { return a.dtype == b.dtype && base::same(a.shape, b.shape); }
bool operator==(const Node& a, const Node& b) {
  return a.op == b.op && a.in == b.in && base::same(a.attrs, b.attrs) && same(a.type, b.type) && a.bodies == b.bodies;
}

Body::Body(Graph g) : graph_(std::make_shared<const Graph>(std::move(g))) {}
bool operator==(const Body& a, const Body& b) { return a.graph_ == b.graph_ || *a.graph_ == *b.graph_; }

void Graph::reserve(std::size_t nodes) {
  nodes_.reserve(nodes);
  hashes_.reserve(nodes);
  if (2 * nodes <= table_.size()) return;
  table_.assign(std::bit_ceil(2 * nodes + 16), kKeep);
  const std::size_t mask = table_.size() - 1;
  for (Id id = 0; id < size(); ++id) {
    std::size_t at = hashes_[id] & mask;
    while (table_[at] != kKeep) at = (at + 1) & mask;
    table_[at] = id;
  }
}

Id Graph::add(Node node) {
  if (2 * (nodes_.size() + 1) > table_.size()) reserve(2 * nodes_.size() + 8);
  const std::uint64_t h = hash(node);
  const std::size_t mask = table_.size() - 1;
  std::size_t at = h & mask;
  for (; table_[at] != kKeep; at = (at + 1) & mask) {
    const Id id = table_[at];
    if (hashes_[id] == h && nodes_[id] == node) return id;
  }
  for (Id id : node.in) check(id < size(), "Graph::add: an operand is not in the graph");
  const Id id = size();
  table_[at] = id;
  hashes_.push_back(h);
  nodes_.push_back(std::move(node));
  return id;
}

Graph rewrite(const Graph& source, FunctionRef<Id(Graph& target, const Node& node)> f) {
  return rewrite_with_source(source, [&](Graph& target, const Node& node, Id, const std::vector<Id>&) { return f(target, node); });
}

Graph rewrite_with_source(const Graph& source, FunctionRef<Id(Graph& target, const Node& node, Id id, const std::vector<Id>& copies)> f) {
  std::vector<bool> live(source.size(), false);
  for (Id id : source.outputs()) live[id] = true;
  for (Id id = source.size(); id-- > 0;) {
    if (source[id].op == ops::Op::Input) live[id] = true;
    if (!live[id]) continue;
    for (Id in : source[id].in) live[in] = true;
  }
  Graph target;
  target.name = source.name;
  target.reserve(source.size());
  std::vector<Id> copy(source.size(), kKeep);
  for (Id id = 0; id < source.size(); ++id) {
    if (!live[id]) continue;
    Node node = source[id];
    for (Id& in : node.in) in = copy[in];
    const Id replaced = f(target, node, id, copy);
    copy[id] = replaced == kKeep ? target.add(std::move(node)) : replaced;
  }
  std::vector<Id> outputs = source.outputs();
  for (Id& id : outputs) id = copy[id];
  target.set_outputs(std::move(outputs));
  return target;
}

std::vector<int> count_uses(const Graph& g) {
  std::vector<int> uses(g.size(), 0);
  for (Id id = 0; id < g.size(); ++id) {
    for (Id in : g[id].in) ++uses[in];
  }
  for (Id id : g.outputs()) ++uses[id];
  return uses;
}

}  // namespace sinter::graph
