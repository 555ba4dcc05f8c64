#include "graph/group.h"

#include "ops/expand.h"

namespace sinter::graph {
bool is_pointwise(const Node& n) {
  switch (ops::info(n.op).kind) {
    case ops::OpKind::Elementwise: return true;
    case ops::OpKind::Source: return is_scalar_constant(n);
    case ops::OpKind::Map: return n.op != ops::Op::Concatenate;
    default: return false;
  }
}
int cost(const Graph& g, Id id) {
  const Node& n = g[id];
  if (ops::is_elementwise(n.op)) return ops::cost(n.op, g[n.in[n.op == ops::Op::Where ? 1 : 0]].type.dtype);
  return n.op == ops::Op::RandomBits ? 200 : n.op == ops::Op::Pad ? 6 : 2;
}
Id under_views(const Graph& g, Id id) {
  while (ops::info(g[id].op).kind == ops::OpKind::View) id = g[id].in[0];
  return id;
}
Shape without_units(const Shape& shape) {
  Shape sizes;
  for (const Dim& n : shape)
    if (n != 1) sizes.push_back(n);
  return sizes;
}
bool is_read_elsewhere(ops::Op op, std::size_t operand) {
  return op == ops::Op::Take || op == ops::Op::RandomBits || ((op == ops::Op::TakeAlong || op == ops::Op::Pad) && operand == 0);
}

}  // namespace sinter::graph
