// Short forms for adding nodes, for passes that write graphs. Layer: graph.
#pragma once
#include "graph/graph.h"

namespace sinter::graph {

/// An elementwise node; operands must agree as graph.h says. The shape is that of the operand with the most axes.
Id elementwise(Graph& g, ops::Op op, std::vector<Id> in);
/// x itself where certainly nothing changes.
Id cast(Graph& g, Id x, Dtype t);
Id reshape(Graph& g, Id x, const Shape& shape);
Id broadcast(Graph& g, Id x, const Shape& shape);
Id transpose(Graph& g, Id x, ops::Attrs axes);
/// One element, given by the bits of its stored form, everywhere.
Id constant(Graph& g, Dtype t, Dim bits, Shape shape = {});
/// A Reduce node over ascending axes.
Id reduce(Graph& g, ops::Op op, Id x, ops::Attrs axes, Dtype result);

}  // namespace sinter::graph
