// Graph: an append-only, hash-consed list of nodes, for analysis. This header is the IR's specification. Layer: graph.
//
// Every operand of a node has a smaller id, so list order is a schedule. Equal nodes (op, operands, attributes, dtype, shape; all by
// bits) are one node, so common subexpressions cannot exist. Equal nodes are equal values: random operations take a key. A pass never
// edits a graph; it builds another with `rewrite`.
//
// Elementwise nodes: all operands already have the compute dtype of the operation and the node's shape, or are 0-d (read at every
// element); broadcasting and promotion are explicit Broadcast and Cast nodes. Structured nodes: see structured.def.
// `Constant` holds at most 16 elements; larger data are inputs bound by the entry.
// Nodes that hold graphs (branches, loops, rules) have several results: see bodies.h.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "ops/op.h"
#include "sinter/shape.h"

namespace sinter::base {
class Symbols;
}

namespace sinter::graph {

using Id = std::uint32_t;  // dense: a side table over a graph is a std::vector indexed by Id
inline constexpr Id kKeep = ~Id{0};

struct Type {
  Dtype dtype;
  Shape shape;
  friend bool operator==(const Type&, const Type&) = default;
};
/// Certainly equal (base::same): that of nodes too, for two sizes that are equal in one call may differ in the next.
bool same(const Type& a, const Type& b);

class Graph;

/// A graph that a node holds. Never changed, shared by copies, compared by content.
class Body {
 public:
  Body(Graph g);  // NOLINT: a graph becomes a body where one is asked for
  const Graph& operator*() const { return *graph_; }
  const Graph* operator->() const { return graph_.get(); }
  friend bool operator==(const Body& a, const Body& b);

 private:
  std::shared_ptr<const Graph> graph_;
};

struct Node {
  ops::Op op;
  std::vector<Id> in;
  ops::Attrs attrs;
  Type type;
  std::vector<Body> bodies = {};
  friend bool operator==(const Node& a, const Node& b);
};
/// A constant that is one element, everywhere.
inline bool is_scalar_constant(const Node& n) { return n.op == ops::Op::Constant && n.attrs.size() == 1; }

class Graph {
 public:
  /// The id of an equal node, or of a new one. The caller gives the type (ops/infer.h computes it for structured operations).
  Id add(Node node);
  const Node& operator[](Id id) const { return nodes_[id]; }
  Id size() const { return static_cast<Id>(nodes_.size()); }
  const std::vector<Id>& outputs() const { return outputs_; }
  void reserve(std::size_t nodes);
  void set_outputs(std::vector<Id> ids) { outputs_ = std::move(ids); }
  std::string name = "graph";
  friend bool operator==(const Graph& a, const Graph& b) { return a.nodes_ == b.nodes_ && a.outputs_ == b.outputs_; }

 private:
  std::vector<Node> nodes_;
  std::vector<Id> outputs_;
  std::vector<std::uint64_t> hashes_;  // by id
  std::vector<Id> table_;              // open addressing by hash; kKeep: empty
};

/// Copies what the outputs reach into a new graph (inputs all, in order). `f` sees each node with its operands already copied and
/// returns the node that replaces it, or kKeep.
Graph rewrite(const Graph& source, FunctionRef<Id(Graph& target, const Node& node)> f);

/// The same, for an `f` that looks at the source: it is given the node's id there, and the new ids of the nodes before it.
Graph rewrite_with_source(const Graph& source, FunctionRef<Id(Graph& target, const Node& node, Id id, const std::vector<Id>& copies)> f);

/// Times each node is used: as an operand (once per operand slot), and as an output.
std::vector<int> count_uses(const Graph& g);

/// Stable text; parse(print(g)) == g. With symbols: sizes that change are expressions, and the text does not parse.
std::string print(const Graph& g, const base::Symbols* symbols = nullptr);
Graph parse(std::string_view text);  // throws Error with line and column
void verify(const Graph& g);         // throws InternalError that names the node and the rule it breaks

}  // namespace sinter::graph
