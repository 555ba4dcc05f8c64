#include "passes/convolution.h"

#include <algorithm>
#include <numeric>

#include "graph/build.h"
#include "ops/convolution.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::ConvAxis;
using ops::Convolution;
using ops::Op;
using Ints = std::vector<std::int64_t>;
using Multiply = FunctionRef<Id(Id, Id)>;

Id swapped(Graph& g, Id x) {
  ops::Attrs axes;
  for (std::size_t i = 0; i < g[x].type.shape.size(); ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return graph::transpose(g, x, axes);
}

// Zeros at the ends of each axis; a negative number takes elements away.
Id fitted(Graph& g, Id x, const Ints& low, const Ints& high) {
  const Shape shape = g[x].type.shape;
  const Dtype t = g[x].type.dtype;
  Shape kept = shape, wide;
  Ints start, step(shape.size(), 1), pad;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    start.push_back(std::max<std::int64_t>(-low[i], 0));
    kept[i] = shape[i] - start[i] - std::max<std::int64_t>(-high[i], 0);
  }
  if (!(kept == shape)) {
    ops::Attrs attrs(start.begin(), start.end());
    for (const Dim& d : kept) attrs.push_back(d);
    attrs.insert(attrs.end(), step.begin(), step.end());
    x = g.add({Op::Slice, {x}, std::move(attrs), {t, kept}});
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    wide.push_back(kept[i] + std::max<std::int64_t>(low[i], 0) + std::max<std::int64_t>(high[i], 0));
    pad.push_back(std::max<std::int64_t>(low[i], 0));
  }
  if (wide == kept) return x;
  for (std::int64_t h : high) pad.push_back(std::max<std::int64_t>(h, 0));
  return g.add({Op::Pad, {x, graph::constant(g, t, 0)}, ops::Attrs(pad.begin(), pad.end()), {t, wide}});
}

// The input as a matrix for each group: a row for each place of each example, with all that the kernel sees there.
Id windows(Graph& g, Id x, const Convolution& c) {
  Ints low{0}, high{0};
  for (const ConvAxis& a : c.axes) low.push_back(a.low), high.push_back(a.high);
  low.push_back(0), high.push_back(0);
  x = fitted(g, x, low, high);
  const Shape padded = g[x].type.shape;
  const std::size_t n = c.axes.size();
  const std::int64_t part = c.in / c.groups;
  Shape shape{c.groups, c.batch};
  Ints strides{part, 0}, inner;
  std::int64_t places = c.batch, seen = part, stride = c.in;
  Ints of_axis(n);
  for (std::size_t i = n; i-- > 0;) {
    of_axis[i] = stride;
    stride *= padded[i + 1];
  }
  strides[1] = stride;
  for (std::size_t i = 0; i < n; ++i) {
    shape.push_back(c.axes[i].output());
    strides.push_back(of_axis[i] * c.axes[i].stride);
    places *= c.axes[i].output();
  }
  for (std::size_t i = 0; i < n; ++i) {
    shape.push_back(c.axes[i].kernel);
    strides.push_back(of_axis[i] * c.axes[i].dilation);
    seen *= c.axes[i].kernel;
  }
  shape.push_back(part);
  strides.push_back(1);
  ops::Attrs attrs;
  for (const Dim& d : shape) attrs.push_back(d);
  attrs.insert(attrs.end(), strides.begin(), strides.end());
  attrs.push_back(0);
  const Id view = g.add({Op::AsStrided, {x}, std::move(attrs), {g[x].type.dtype, shape}});
  return graph::reshape(g, view, Shape{c.groups, places, seen});
}

std::int64_t places_of(const Convolution& c) {
  std::int64_t n = c.batch;
  for (const ConvAxis& a : c.axes) n *= a.output();
  return n;
}

// (places.., channels) to (groups, places, channels / groups), and back.
Id into_groups(Graph& g, Id y, const Convolution& c) {
  return graph::transpose(g, graph::reshape(g, y, Shape{places_of(c), c.groups, c.out / c.groups}), {1, 0, 2});
}
Id out_of_groups(Graph& g, Id y, const Convolution& c) {
  return graph::reshape(g, graph::transpose(g, y, {1, 0, 2}), c.shape(Convolution::kOutput));
}
Shape weight_matrix(const Convolution& c, const Shape& weight) {
  const std::int64_t rows = c.out / c.groups;
  std::int64_t seen = c.in / c.groups;
  for (std::size_t i = 1; i + 1 < weight.size(); ++i) seen *= weight[i];
  return Shape{c.groups, rows, seen};
}

Id output_of(Graph& g, Id x, Id w, const Convolution& c, Multiply multiply) {
  const Id matrix = graph::reshape(g, w, weight_matrix(c, g[w].type.shape));
  return out_of_groups(g, multiply(windows(g, x, c), swapped(g, matrix)), c);
}

Id weight_of(Graph& g, Id x, Id y, const Convolution& c, Multiply multiply) {
  return graph::reshape(g, multiply(swapped(g, into_groups(g, y, c)), windows(g, x, c)), c.shape(Convolution::kWeight));
}

// The output, with stride - 1 zeros behind each of its elements, is convolved with the weight: its kernel turned round, inputs and outputs
// exchanged.
Id input_of(Graph& g, Id y, Id w, const Convolution& c, Multiply multiply) {
  Shape apart{c.batch}, spaced{c.batch}, weight{c.groups, c.out / c.groups}, flipped = c.shape(Convolution::kWeight);
  Ints behind{0}, low{0}, high{0}, start(flipped.size(), 0), step(flipped.size(), 1);
  ops::Attrs axes{0, c.axes.size() + 2};
  Convolution back = c;
  std::swap(back.in, back.out);
  for (std::size_t i = 0; i < c.axes.size(); ++i) {
    const ConvAxis& a = c.axes[i];
    const std::int64_t size = a.output() * a.stride, reach = (a.kernel - 1) * a.dilation;
    apart.push_back(a.output()), apart.push_back(1);
    behind.push_back(0), behind.push_back(a.stride - 1);
    spaced.push_back(size);
    low.push_back(reach - a.low);
    high.push_back(a.input - size + a.low);
    back.axes[i] = {a.input + reach, a.kernel, 1, 0, 0, a.dilation};
    start[i + 1] = a.kernel - 1;
    step[i + 1] = -1;
    weight.push_back(a.kernel);
    axes.push_back(static_cast<std::int64_t>(i) + 2);
  }
  apart.push_back(c.out), behind.push_back(0), spaced.push_back(c.out), low.push_back(0), high.push_back(0);
  weight.push_back(c.in / c.groups);
  axes.push_back(1);
  const Ints none(behind.size(), 0);
  const Id zeros_between = graph::reshape(g, fitted(g, graph::reshape(g, y, apart), none, behind), spaced);
  const Id wide = fitted(g, zeros_between, low, high);

  ops::Attrs attrs(start.begin(), start.end());
  for (const Dim& d : flipped) attrs.push_back(d);
  attrs.insert(attrs.end(), step.begin(), step.end());
  const Id turned = g.add({Op::Slice, {w}, std::move(attrs), {g[w].type.dtype, flipped}});
  const Id exchanged = graph::transpose(g, graph::reshape(g, turned, weight), axes);
  return output_of(g, wide, graph::reshape(g, exchanged, back.shape(Convolution::kWeight)), back, multiply);
}

}  // namespace

Id convolve_by_products(Graph& g, const Node& n, Multiply multiply) {
  const Shape shapes[] = {g[n.in[0]].type.shape, g[n.in[1]].type.shape};
  const Convolution c = ops::convolution_of(n.op, n.attrs, shapes);
  if (c.work() == 0) return graph::constant(g, n.type.dtype, 0, n.type.shape);
  switch (ops::result_role(n.op)) {
    case Convolution::kInput: return input_of(g, n.in[0], n.in[1], c, multiply);
    case Convolution::kWeight: return weight_of(g, n.in[0], n.in[1], c, multiply);
    default: return output_of(g, n.in[0], n.in[1], c, multiply);
  }
}

}  // namespace sinter::passes
