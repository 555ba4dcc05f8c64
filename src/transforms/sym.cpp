#include "transforms/sym.h"

#include <algorithm>
#include <bit>

#include "base/symbols.h"

namespace sinter::transforms {

Sym literal(const Sym& x, Dtype t, double v, Shape shape) {
  const std::uint64_t word = std::bit_cast<std::uint64_t>(v);
  std::uint64_t bits = 0;
  ops::convert_elements(Dtype::float64, t, {&word, 1}, {&bits, 1});
  return {x.graph, graph::constant(*x.graph, t, bits, std::move(shape))};
}
Sym imaginary_unit(const Sym& x) {
  return {x.graph, graph::constant(*x.graph, Dtype::complex64, std::uint64_t{std::bit_cast<std::uint32_t>(1.0f)} << 32)};
}

Sym cast(const Sym& x, Dtype t) { return {x.graph, graph::cast(*x.graph, x.id, t)}; }
Sym reshape(const Sym& x, const Shape& shape) { return {x.graph, graph::reshape(*x.graph, x.id, shape)}; }
Sym broadcast(const Sym& x, const Shape& shape) { return {x.graph, graph::broadcast(*x.graph, x.id, shape)}; }
Sym transpose(const Sym& x, Axes axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  return {x.graph, graph::transpose(*x.graph, x.id, std::move(axes))};
}
Sym move_axis(const Sym& x, std::size_t from, std::size_t to) {
  Axes axes = first_axes(x.rank());
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(from));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
  return transpose(x, std::move(axes));
}

Sym slice(const Sym& x, Axes start, Axes size, Axes step) {
  const Shape shape(size);
  if (base::same(shape, x.shape()) && std::all_of(step.begin(), step.end(), [](const Dim& s) { return s == 1; })) return x;
  ops::Attrs attrs = std::move(start);
  attrs.insert(attrs.end(), size.begin(), size.end());
  attrs.insert(attrs.end(), step.begin(), step.end());
  return {x.graph, x.graph->add({Op::Slice, {x.id}, std::move(attrs), {x.dtype(), shape}})};
}
Sym slice(const Sym& x, std::size_t axis, Dim start, Dim size) {
  const Shape shape = x.shape();
  Axes starts(shape.size(), 0), sizes(shape.begin(), shape.end()), steps(shape.size(), 1);
  starts[axis] = start;
  sizes[axis] = size;
  return slice(x, std::move(starts), std::move(sizes), std::move(steps));
}
Sym pad(const Sym& x, double value, Axes low, Axes high) { return pad(x, literal(x, x.dtype(), value), std::move(low), std::move(high)); }
Sym pad(const Sym& x, const Sym& value, Axes low, Axes high) {
  Shape shape = x.shape();
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += low[i] + high[i];
  if (base::same(shape, x.shape())) return x;
  ops::Attrs attrs = std::move(low);
  attrs.insert(attrs.end(), high.begin(), high.end());
  return {x.graph, x.graph->add({Op::Pad, {x.id, value.id}, std::move(attrs), {x.dtype(), std::move(shape)}})};
}
Sym concatenate(const std::vector<Sym>& parts, std::size_t axis) {
  Shape shape = parts[0].shape();
  shape[axis] = 0;
  std::vector<Id> in;
  for (const Sym& p : parts) {
    shape[axis] += p.size(axis);
    in.push_back(p.id);
  }
  return {parts[0].graph,
          parts[0].graph->add({Op::Concatenate, std::move(in), {static_cast<std::int64_t>(axis)}, {parts[0].dtype(), std::move(shape)}})};
}
Sym sum(const Sym& x, Axes axes) {
  return axes.empty() ? x : Sym{x.graph, graph::reduce(*x.graph, Op::Sum, x.id, std::move(axes), x.dtype())};
}
Sym iota(const Sym& x, Dtype t, const Shape& shape, std::size_t axis) {
  const Sym zero = literal(x, t, 0), one = literal(x, t, 1);
  return {x.graph, x.graph->add({Op::Arange, {zero.id, one.id}, {static_cast<std::int64_t>(axis)}, {t, shape}})};
}
Sym take_along(const Sym& x, const Sym& indices, std::size_t axis) {
  return {x.graph, x.graph->add({Op::TakeAlong, {x.id, indices.id}, {static_cast<std::int64_t>(axis)}, {x.dtype(), indices.shape()}})};
}
Sym scatter_add(const Sym& x, const Sym& indices, const Sym& updates, std::size_t axis) {
  return {x.graph,
          x.graph->add({Op::ScatterAdd, {x.id, indices.id, updates.id}, {static_cast<std::int64_t>(axis)}, {x.dtype(), x.shape()}})};
}
Sym put_along(const Sym& x, const Sym& indices, const Sym& updates, std::size_t axis) {
  return {x.graph, x.graph->add({Op::PutAlong, {x.id, indices.id, updates.id}, {static_cast<std::int64_t>(axis)}, {x.dtype(), x.shape()}})};
}
Sym matmul(const Sym& a, const Sym& b) {
  Shape shape = a.shape();
  shape[shape.size() - 1] = b.shape().back();
  return {a.graph, a.graph->add({Op::Matmul, {a.id, b.id}, {}, {a.dtype(), std::move(shape)}})};
}
Sym solve(const Sym& a, const Sym& b) { return {a.graph, a.graph->add({Op::Solve, {a.id, b.id}, {}, {a.dtype(), b.shape()}})}; }
Sym convolution(const ops::Convolution& c, ops::Convolution::Role result, const Sym& a, const Sym& b) {
  return {a.graph, a.graph->add({ops::convolution_op(result), {a.id, b.id}, c.attrs(), {a.dtype(), c.shape(result)}})};
}

Axes first_axes(std::size_t n) {
  Axes axes(n);
  for (std::size_t i = 0; i < n; ++i) axes[i] = i;
  return axes;
}
Shape keep_axes(Shape shape, ops::Ints axes) {
  for (const Dim& a : axes) shape[static_cast<std::size_t>(a)] = 1;
  return shape;
}
namespace {
// Folds the axes that broadcasting `shape` to x's would add or stretch.
Sym fold_to(Op op, const Sym& x, const Shape& shape) {
  const Shape from = x.shape();
  const std::size_t extra = from.size() - shape.size();
  Axes axes;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (i < extra || (!base::same(shape[i - extra], from[i]) && shape[i - extra] == 1 && from[i] != 1))
      axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return reshape(x, shape);
  return reshape({x.graph, graph::reduce(*x.graph, op, x.id, std::move(axes), x.dtype())}, shape);
}
}  // namespace
Sym sum_to(const Sym& x, const Shape& shape) { return fold_to(Op::Sum, x, shape); }
Sym any_to(const Sym& x, const Shape& shape) { return fold_to(Op::Any, x, shape); }

}  // namespace sinter::transforms
