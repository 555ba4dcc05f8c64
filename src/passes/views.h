// Views as data: composing them, and adding them to a graph without those that change nothing. Layer: passes.
#pragma once
#include <optional>

#include "graph/graph.h"

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

}  // namespace sinter::passes
