// Convolutions and pooling: what a kernel sees at each place. Layer: api.
#include <algorithm>
#include <limits>

#include "api/common.h"
#include "ops/convolution.h"

namespace sinter {

using api::Op;

namespace {

using Ints = std::span<const int>;

std::string listed(Ints v) {
  if (v.size() == 1) return str(v[0]);
  std::string s = "(";
  for (std::size_t i = 0; i < v.size(); ++i) s += str(i ? "," : "", v[i]);
  return s + ")";
}
bool all_at_least(Ints v, int least) {
  return std::all_of(v.begin(), v.end(), [&](int i) { return i >= least; });
}

Array convolve(const char* what, const Array& input, const Array& weight, Ints stride, Ints padding, Ints dilation, int groups) {
  const Shape &x = api::shape_of(input, what), &w = api::shape_of(weight, what);
  const std::size_t axes = stride.size();
  constexpr const char* kNames[] = {"length", "height, width", "depth, height, width"};
  const char* names = kNames[axes - 1];
  if (x.size() != axes + 2)
    throw ShapeError(str(what, ": the input has not ", axes + 2, " axes; got ", x, "; use (batch, ", names, ", channels)"));
  if (w.size() != axes + 2)
    throw ShapeError(str(what, ": the weight has not ", axes + 2, " axes; got ", w, "; use (out, ", names, ", channels / groups)"));
  if (!all_at_least(stride, 1) || !all_at_least(dilation, 1) || !all_at_least(padding, 0) || groups < 1) {
    throw ShapeError(str(what, ": stride, padding, dilation or groups out of range; got ", listed(stride), ", ", listed(padding), ", ",
                         listed(dilation), " and ", groups, "; use positive numbers, and padding from 0"));
  }
  const Dim in = x.back(), out = w[0];
  if (in != w.back() * groups || out % groups != 0) {
    throw ShapeError(str(what, ": channels and groups do not fit; got input ", x, ", weight ", w, " and ", groups,
                         " groups; the weight's last axis is the input's by groups, and its first a multiple of groups"));
  }
  ops::Convolution c{x[0], in, out, groups, {}};
  for (std::size_t i = 0; i < axes; ++i) {
    c.axes.push_back({x[i + 1], w[i + 1], stride[i], padding[i], padding[i], dilation[i]});
    if (c.axes.back().kernel < 1 || c.axes.back().output() < 1) {
      throw ShapeError(str(what, ": the kernel does not fit into the padded input; got input ", x, ", weight ", w, ", padding ",
                           listed(padding), " and dilation ", listed(dilation), "; use a smaller kernel of size 1 at least, or pad more"));
    }
  }
  const Dtype t = api::at_least_float(promote_types(input.dtype(), weight.dtype()));
  const Shape result = c.shape(ops::Convolution::kOutput);
  api::check_sizes(what, result, t);
  return engine::make(Op::Conv, {engine::cast(input, t), engine::cast(weight, t)}, c.attrs(), t, result);
}

// The windows of x (batch, height, width, channels), and the axes along which the elements of a window lie.
struct Windows {
  Array view;
  Axes axes;
};
Windows windows(const char* what, const Array& operand, PerAxis<2> kernel, const PerAxis<2>& stride, const PerAxis<2>& padding,
                const Operand& rim) {
  const Shape& s = operand.shape();
  bool fits = all_at_least(kernel, 1) && all_at_least(stride, 1) && all_at_least(padding, 0);
  for (std::size_t i = 0; i < 2; ++i) fits = fits && padding[i] < kernel[i];
  if (!fits) {
    throw ShapeError(str(what, ": kernel, stride or padding out of range; got ", listed(kernel), ", ", listed(stride), " and ",
                         listed(padding), "; use positive numbers, and padding below the kernel's size"));
  }
  Dim places[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim room = s[i + 1] + 2 * padding[i] - kernel[i];
    if (room < 0) {
      throw ShapeError(str(what, ": the kernel does not fit into the padded input; got ", listed(kernel), " for ", s, " with padding ",
                           listed(padding), "; use a smaller kernel, or pad more"));
    }
    places[i] = room / stride[i] + 1;
  }
  Array x = operand;
  if (padding[0] > 0 || padding[1] > 0) x = pad(x, {{0, 0}, {padding[0], padding[0]}, {padding[1], padding[1]}, {0, 0}}, rim);
  if (stride == kernel) {  // side by side: the gradient writes each element once
    for (int i = 0; i < 2; ++i) x = api::sliced(x, i + 1, 0, places[i] * kernel[static_cast<std::size_t>(i)]);
    return {api::reshaped(x, {s[0], places[0], kernel[0], places[1], kernel[1], s[3]}), {2, 4}};
  }
  const Dim row = x.shape(2) * s[3], example = x.shape(1) * row, channels = s[3];
  return {as_strided(x, {kernel[0], kernel[1], s[0], places[0], places[1], channels},
                     {row, channels, example, stride[0] * row, stride[1] * channels, 1}),
          {0, 1}};
}
void require_image(const char* what, const Array& x) {
  const Shape& s = api::shape_of(x, what);
  if (s.size() != 4) throw ShapeError(str(what, ": x has not 4 axes; got ", s, "; use (batch, height, width, channels)"));
}
Operand lowest(Dtype t) {
  if (is_floating(t)) return -std::numeric_limits<double>::infinity();
  return t == Dtype::bool_ ? Operand(false) : Operand(iinfo(t).min);
}

}  // namespace

Array conv1d(const Array& input, const Array& weight, int stride, int padding, int dilation, int groups) {
  return convolve("conv1d", input, weight, {&stride, 1}, {&padding, 1}, {&dilation, 1}, groups);
}
Array conv2d(const Array& input, const Array& weight, PerAxis<2> stride, PerAxis<2> padding, PerAxis<2> dilation, int groups) {
  return convolve("conv2d", input, weight, stride, padding, dilation, groups);
}
Array conv3d(const Array& input, const Array& weight, PerAxis<3> stride, PerAxis<3> padding, PerAxis<3> dilation, int groups) {
  return convolve("conv3d", input, weight, stride, padding, dilation, groups);
}

Array max_pool2d(const Array& x, PerAxis<2> kernel, PerAxisOrNone<2> stride, PerAxis<2> padding) {
  api::require_order("max_pool2d", x);
  require_image("max_pool2d", x);
  const Windows w = windows("max_pool2d", x, kernel, stride.value_or(kernel), padding, lowest(x.dtype()));
  return max(w.view, w.axes);
}
Array avg_pool2d(const Array& x, PerAxis<2> kernel, PerAxisOrNone<2> stride, PerAxis<2> padding) {
  require_image("avg_pool2d", x);
  const Windows w = windows("avg_pool2d", x, kernel, stride.value_or(kernel), padding, 0);
  return mean(w.view, w.axes);
}

}  // namespace sinter
