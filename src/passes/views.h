// Views as data: composing them, and adding them to a graph without those that change nothing. Layer: passes.
#pragma once
#include <optional>

#include "graph/graph.h"
#include "graph/layout.h"

namespace sinter::passes {

struct View {
  ops::Op op;
  ops::Attrs attrs;
  Shape from, to;
};

inline bool is_view(ops::Op op) { return ops::info(op).kind == ops::OpKind::View; }
inline View view_of(const graph::Graph& g, const graph::Node& n) { return {n.op, n.attrs, g[n.in[0]].type.shape, n.type.shape}; }

bool changes_nothing(const View& v);
/// One view that does what `first` and then `second` do.
std::optional<View> compose(const View& first, const View& second);
/// The view of x: composed with the view that x is, or taken into a constant or an arange.
graph::Id add_view(graph::Graph& g, graph::Id x, View v);

/// Of each node's elements over the array that it is a view of; row-major where it is computed, an input, or must be copied.
std::vector<graph::Layout> layouts_of(const graph::Graph& g);

/// The operand of a library product in the graph that a pass builds, for `operand` of the source: the same views of the same computed
/// array. A product's bits may depend on how its operands lie in memory, and a compiled call gives the bits of the regular one; so passes
/// leave views alone that a product reads, and where a computed array has become a view or an input, it is copied.
graph::Id product_operand(graph::Graph& target, const graph::Graph& source, graph::Id operand, const std::vector<graph::Id>& copies);
inline bool is_product(ops::Op op) { return ops::info(op).kind == ops::OpKind::Call; }
/// graph::rewrite, which keeps the operands of products.
graph::Graph rewrite_around_products(const graph::Graph& source, FunctionRef<graph::Id(graph::Graph& target, const graph::Node& node)> f);

}  // namespace sinter::passes
