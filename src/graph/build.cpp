#include "graph/build.h"

#include <algorithm>

#include "base/symbols.h"

namespace sinter::graph {

using ops::Op;

Id elementwise(Graph& g, Op op, std::vector<Id> in) {
  Dtype compute = g[in[op == Op::Where ? 1 : 0]].type.dtype;
  Shape shape = g[in[0]].type.shape;
  for (Id id : in)
    if (g[id].type.shape.size() > shape.size()) shape = g[id].type.shape;
  return g.add({op, std::move(in), {}, {ops::result_dtype(op, compute), std::move(shape)}});
}
Id cast(Graph& g, Id x, Dtype t) {
  if (g[x].type.dtype == t) return x;
  return g.add({Op::Cast, {x}, {static_cast<std::int64_t>(t)}, {t, g[x].type.shape}});
}
Id reshape(Graph& g, Id x, const Shape& shape) {
  if (base::same(g[x].type.shape, shape)) return x;
  return g.add({Op::Reshape, {x}, ops::Attrs(shape.begin(), shape.end()), {g[x].type.dtype, shape}});
}
Id broadcast(Graph& g, Id x, const Shape& shape) {
  if (base::same(g[x].type.shape, shape)) return x;
  return g.add({Op::Broadcast, {x}, ops::Attrs(shape.begin(), shape.end()), {g[x].type.dtype, shape}});
}
Id transpose(Graph& g, Id x, ops::Attrs axes) {
  Shape shape;
  for (const Dim& a : axes) shape.push_back(g[x].type.shape[static_cast<std::size_t>(a)]);
  return g.add({Op::Transpose, {x}, std::move(axes), {g[x].type.dtype, shape}});
}
Id constant(Graph& g, Dtype t, Dim bits, Shape shape) { return g.add({Op::Constant, {}, {bits}, {t, std::move(shape)}}); }
Id reduce(Graph& g, Op op, Id x, ops::Attrs axes, Dtype result) {
  Shape shape;
  const Shape& in = g[x].type.shape;
  for (std::size_t d = 0; d < in.size(); ++d)
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) == axes.end()) shape.push_back(in[d]);
  ops::Attrs attrs{static_cast<std::int64_t>(result)};
  attrs.insert(attrs.end(), axes.begin(), axes.end());
  return g.add({op, {x}, std::move(attrs), {result, std::move(shape)}});
}

}  // namespace sinter::graph
