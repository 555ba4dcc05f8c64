#include "passes/decompose.h"

#include "base/symbols.h"
#include "graph/build.h"
#include "ops/product.h"
#include "passes/convolution.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

// The least index whose element equals the extreme; NaN is the extreme where there is one, and the first NaN counts.
Id arg_extreme(Graph& g, Id x, const Node& n) {
  ops::Attrs axes(n.attrs.begin() + 1, n.attrs.end());
  Shape whole = g[x].type.shape;
  if (axes.size() > 1 || whole.empty()) {  // over everything: in row-major order
    x = graph::reshape(g, x, Shape{whole.product()});
    axes = {0};
  }
  const Shape shape = g[x].type.shape;
  Dtype t = g[x].type.dtype, index = static_cast<Dtype>(base::peek(n.attrs[0]));
  Id extreme = graph::reduce(g, n.op == Op::ArgMax ? Op::Max : Op::Min, x, axes, t);
  Shape kept = shape;
  kept[static_cast<std::size_t>(axes[0])] = 1;
  extreme = graph::broadcast(g, graph::reshape(g, extreme, kept), shape);
  Id hit = graph::elementwise(g, Op::Equal, {x, extreme});
  if (is_floating(t)) hit = graph::elementwise(g, Op::LogicalOr, {hit, graph::elementwise(g, Op::IsNan, {x})});
  Id zero = graph::constant(g, index, 0), one = graph::constant(g, index, 1), none = graph::constant(g, index, 0xFFFFFFFF);
  Id position = g.add({Op::Arange, {zero, one}, {axes[0]}, {index, shape}});
  return graph::reduce(g, Op::Min, graph::elementwise(g, Op::Where, {hit, position, none}), axes, index);
}

// (..., m, 1, k) * (..., 1, n, k), summed over k.
Id product(Graph& g, Id a, Id b, const Node& n) {
  Dtype t = n.type.dtype;
  std::size_t rank = n.type.shape.size();
  Shape sa = g[a].type.shape, sb = g[b].type.shape, all = n.type.shape;
  Dim k = sa[rank - 1];
  ops::Attrs swap;
  for (std::size_t i = 0; i < rank; ++i) swap.push_back(static_cast<std::int64_t>(i));
  std::swap(swap[rank - 2], swap[rank - 1]);
  b = graph::transpose(g, b, swap);
  sb = g[b].type.shape;
  all.push_back(k);
  sa.insert(rank - 1, 1);
  sb.insert(rank - 2, 1);
  a = graph::broadcast(g, graph::reshape(g, a, sa), all);
  b = graph::broadcast(g, graph::reshape(g, b, sb), all);
  Id terms = graph::elementwise(g, t == Dtype::bool_ ? Op::LogicalAnd : Op::Multiply, {a, b});
  return graph::reduce(g, t == Dtype::bool_ ? Op::Any : Op::Sum, terms, {static_cast<std::int64_t>(rank)}, t);
}

Id matmul(Graph& g, Id a, Id b, const Node& n, FunctionRef<bool(Dtype)> has_product) {
  Dtype t = n.type.dtype;
  const Shape &left = g[a].type.shape, &result = n.type.shape;
  auto has_few_rows = [&] { return ops::has_few_rows(result[result.size() - 2], result.back(), left.back()); };
  if (has_product(t) || (is_floating(t) && has_few_rows())) return g.add({Op::Matmul, {a, b}, {}, n.type});
  if (is_half(t)) {
    Id wide =
        g.add({Op::Matmul, {graph::cast(g, a, Dtype::float32), graph::cast(g, b, Dtype::float32)}, {}, {Dtype::float32, n.type.shape}});
    return graph::cast(g, wide, t);
  }
  return product(g, a, b, n);
}

Id addmm(Graph& g, const Node& n, FunctionRef<bool(Dtype)> has_product) {
  Dtype t = n.type.dtype, work = is_half(t) ? Dtype::float32 : t;
  Node inner{Op::Matmul, {}, {}, {work, n.type.shape}};
  Id p = matmul(g, graph::cast(g, n.in[1], work), graph::cast(g, n.in[2], work), inner, has_product);
  return graph::cast(g, graph::elementwise(g, Op::Add, {p, graph::cast(g, n.in[0], work)}), t);
}

// LAPACK has float32, float64 and complex64.
Id solve(Graph& g, const Node& n) {
  if (!is_half(n.type.dtype)) return graph::kKeep;
  const Id a = graph::cast(g, n.in[0], Dtype::float32), b = graph::cast(g, n.in[1], Dtype::float32);
  return graph::cast(g, g.add({Op::Solve, {a, b}, {}, {Dtype::float32, n.type.shape}}), n.type.dtype);
}

// oneDNN has what it has for products, but for float64, which is another library's.
Id convolution(Graph& g, const Node& n, FunctionRef<bool(Dtype)> has_product) {
  const Dtype t = n.type.dtype;
  if (has_product(t) && t != Dtype::float64) return graph::kKeep;
  if (is_half(t)) {
    const Id a = graph::cast(g, n.in[0], Dtype::float32), b = graph::cast(g, n.in[1], Dtype::float32);
    return graph::cast(g, g.add({n.op, {a, b}, n.attrs, {Dtype::float32, n.type.shape}}), t);
  }
  return convolve_by_products(g, n, [&](Id a, Id b) {
    Shape shape = g[a].type.shape;
    shape[shape.size() - 1] = g[b].type.shape.back();
    return matmul(g, a, b, {Op::Matmul, {}, {}, {t, std::move(shape)}}, has_product);
  });
}

}  // namespace

graph::Graph decompose(const graph::Graph& source, FunctionRef<bool(Dtype)> has_product) {
  return graph::rewrite(source, [&](Graph& g, const Node& n) -> Id {
    switch (n.op) {
      case Op::ArgMax:
      case Op::ArgMin: return arg_extreme(g, n.in[0], n);
      case Op::Matmul: return matmul(g, n.in[0], n.in[1], n, has_product);
      case Op::AddMM: return addmm(g, n, has_product);
      case Op::Solve: return solve(g, n);
      case Op::Conv:
      case Op::ConvInput:
      case Op::ConvWeight: return convolution(g, n, has_product);
      case Op::StopGradient: return n.in[0];
      default: return graph::kKeep;
    }
  });
}

}  // namespace sinter::passes
