// Shapes and views: what shows elements in another arrangement. Layer: api.
#include <algorithm>
#include <array>

#include "api/common.h"

namespace sinter {

using api::Op;

Array reshape(const Array& x, const Shape& shape) {
  const Shape& s = api::shape_of(x, "reshape");
  return api::reshaped(x, api::fill_size("reshape", shape, s.product(), s));
}

Array flatten(const Array& x, Axis start_axis, Axis end_axis) {
  const Shape& s = api::shape_of(x, "flatten");
  if (s.empty()) return api::reshaped(x, {1});
  const int first = api::axis_of("flatten", start_axis, s), last = api::axis_of("flatten", end_axis, s);
  if (first > last)
    throw ShapeError(
        str("flatten: the first axis comes after the last; got ", start_axis, " and ", end_axis, " for shape ", s, "; exchange them"));
  Shape result;
  Dim joined = 1;
  for (int i = 0; i < static_cast<int>(s.size()); ++i) {
    const Dim& d = s[static_cast<std::size_t>(i)];
    if (i < first || i > last) {
      result.push_back(d);
      continue;
    }
    joined *= d;
    if (i == last) result.push_back(joined);
  }
  return api::reshaped(x, result);
}

Array unflatten(const Array& x, Axis axis, const Shape& shape) {
  const Shape& s = api::shape_of(x, "unflatten");
  const int at = api::axis_of("unflatten", axis, s);
  const Dim& size = s[static_cast<std::size_t>(at)];
  const Shape parts = api::fill_size("unflatten", shape, size, {size});
  Shape result;
  for (int i = 0; i < static_cast<int>(s.size()); ++i) {
    if (i != at)
      result.push_back(s[static_cast<std::size_t>(i)]);
    else
      for (const Dim& d : parts) result.push_back(d);
  }
  return api::reshaped(x, result);
}

Array squeeze(const Array& x, const Axes& axes) {
  const Shape& s = api::shape_of(x, "squeeze");
  std::vector<int> dropped;
  for (int a : api::axes_of("squeeze", axes, s)) {
    const Dim& d = s[static_cast<std::size_t>(a)];
    if (d == 1)
      dropped.push_back(a);
    else if (!axes.all())
      throw ShapeError(str("squeeze: the axis is not of size 1; got axis ", a, " of shape ", s, "; name axes of size 1"));
  }
  return api::reshaped(x, api::without_axes(s, dropped, false));
}

Array expand_dims(const Array& x, const Axes& axes) {
  const Shape& s = api::shape_of(x, "expand_dims");
  if (axes.all()) return x;
  // Places are counted in the result.
  Shape result;
  for (std::size_t i = 0; i < s.size() + axes.list().size(); ++i) result.push_back(1);
  std::vector<bool> added(result.size(), false);
  for (int a : axes.list()) {
    const auto at = static_cast<std::size_t>(api::axis_of("expand_dims", a, result));
    if (added[at]) throw ShapeError(str("expand_dims: a place is given twice; got axis ", a, " for shape ", s, "; give each place once"));
    added[at] = true;
  }
  for (std::size_t i = 0, from = 0; i < result.size(); ++i) {
    if (!added[i]) result[i] = s[from++];
  }
  return api::reshaped(x, result);
}

Array transpose(const Array& x, const Axes& axes) {
  const Shape& s = api::shape_of(x, "transpose");
  std::vector<int> order;
  if (axes.all()) {
    for (int i = static_cast<int>(s.size()) - 1; i >= 0; --i) order.push_back(i);
    return api::transposed(x, order);
  }
  for (int a : axes.list()) order.push_back(api::axis_of("transpose", a, s));
  if (order.size() != s.size())
    throw ShapeError(str("transpose: the number of axes does not fit; got ", order.size(), " axes for shape ", s, "; give each axis once"));
  api::axes_of("transpose", axes, s);
  return api::transposed(x, order);
}

Array swapaxes(const Array& x, Axis a, Axis b) {
  const Shape& s = api::shape_of(x, "swapaxes");
  std::vector<int> order = api::axes_of("swapaxes", {}, s);
  std::swap(order[static_cast<std::size_t>(api::axis_of("swapaxes", a, s))],
            order[static_cast<std::size_t>(api::axis_of("swapaxes", b, s))]);
  return api::transposed(x, order);
}

Array moveaxis(const Array& x, Axis source, Axis destination) {
  const Shape& s = api::shape_of(x, "moveaxis");
  std::vector<int> order = api::axes_of("moveaxis", {}, s);
  const int from = api::axis_of("moveaxis", source, s), to = api::axis_of("moveaxis", destination, s);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return api::transposed(x, order);
}

Array broadcast_to(const Operand& operand, const Shape& shape) {
  const Array x = api::to_array(operand, "broadcast_to");
  api::check_sizes("broadcast_to", shape, x.dtype());
  const Shape& s = x.shape();
  bool fits = s.size() <= shape.size();
  for (std::size_t i = 0; fits && i < s.size(); ++i) fits = s[i] == 1 || s[i] == shape[shape.size() - s.size() + i];
  if (!fits)
    throw ShapeError(str("broadcast_to: the array does not broadcast to the shape; got ", s, " to ", shape, "; make its axes equal or 1"));
  return engine::broadcast(x, shape);
}

std::vector<Array> broadcast_arrays(const std::vector<Array>& arrays) {
  std::vector<Shape> shapes;
  for (const Array& x : arrays) shapes.push_back(api::shape_of(x, "broadcast_arrays"));
  const Shape shape = api::broadcast_shapes("broadcast_arrays", shapes);
  std::vector<Array> result;
  for (const Array& x : arrays) result.push_back(engine::broadcast(x, shape));
  return result;
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) { return api::broadcast_shapes("broadcast_shapes", shapes); }

namespace {

using Numbers = std::span<const std::int64_t>;

// As Python's slice.indices: bounds lie in [0, n], or in [-1, n - 1] for a negative step.
struct Range {
  std::int64_t start = 0, count = 0;
  explicit Range(Numbers in) {  // start, stop, step, n
    const std::int64_t d = in[2], n = in[3], low = d < 0 ? -1 : 0, high = d < 0 ? n - 1 : n;
    auto bound = [&](std::int64_t b) { return std::clamp(b < 0 ? b + n : b, low, high); };
    const std::int64_t a = bound(in[0]), b = bound(in[1]);
    if (d > 0 && b > a) count = (b - a - 1) / d + 1;
    if (d < 0 && b < a)
      count = static_cast<std::int64_t>((static_cast<std::uint64_t>(a - b) - 1) / (0 - static_cast<std::uint64_t>(d))) + 1;
    start = count == 0 ? 0 : a;
  }
};

}  // namespace

Array slice(const Array& x, const Shape& start, const Shape& stop, const Shape& step) {
  const Shape& s = api::shape_of(x, "slice");
  if (start.size() != stop.size() || start.size() > s.size() || step.size() > start.size()) {
    throw ShapeError(str("slice: the lists do not fit; got start ", start, ", stop ", stop, ", step ", step, " for shape ", s,
                         "; give a start and a stop for each axis"));
  }
  Shape from(std::vector<Dim>(s.size(), 0)), by(std::vector<Dim>(s.size(), 1)), size = s;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const Dim d = i < step.size() ? step[i] : Dim(1);
    if (d == 0) throw ShapeError(str("slice: a step is 0; got ", step, "; use another step"));
    const std::array<Dim, 4> bounds{start[i], stop[i], d, s[i]};
    from[i] = base::apply("start", [](Numbers n) { return Range(n).start; }, bounds, 0);
    size[i] = base::apply("count", [](Numbers n) { return Range(n).count; }, bounds, 0);
    by[i] = !base::changes(size[i]) && size[i] <= 1 ? Dim(1) : d;  // the step of one element means nothing
  }
  return api::sliced(x, from, size, by);
}

Array flip(const Array& x, const Axes& axes) {
  const Shape& s = api::shape_of(x, "flip");
  Shape from(std::vector<Dim>(s.size(), 0)), by(std::vector<Dim>(s.size(), 1));
  for (int a : api::axes_of("flip", axes, s)) {
    const auto i = static_cast<std::size_t>(a);
    if (s[i] <= 1) continue;
    from[i] = s[i] - 1;
    by[i] = -1;
  }
  return api::sliced(x, from, s, by);
}

Array as_strided(const Array& x, const Shape& shape, const Shape& strides, Dim offset) {
  const Shape& s = api::shape_of(x, "as_strided");
  api::check_sizes("as_strided", shape, x.dtype());
  if (shape.size() != strides.size())
    throw ShapeError(
        str("as_strided: the number of strides does not fit; got ", strides.size(), " for shape ", shape, "; give one an axis"));
  if (!api::is_empty(shape)) {
    __int128 low = base::peek(offset), high = low;
    Dim first = offset, last = offset;  // the same, as sizes that may change
    for (std::size_t i = 0; i < strides.size(); ++i) {
      const __int128 extent = static_cast<__int128>(base::peek(shape[i]) - 1) * base::peek(strides[i]);
      (extent < 0 ? low : high) += extent;
      (strides[i] < 0 ? first : last) += (shape[i] - 1) * strides[i];
    }
    if (low < 0 || high >= base::peek(s.product()) || first < 0 || last >= s.product()) {
      throw ShapeError(str("as_strided: the view leaves the array; got shape ", shape, ", strides ", strides, ", offset ", offset, " of ",
                           s.product(), " elements; stay inside"));
    }
  }
  ops::Attrs attrs = api::ints(shape);
  attrs.insert(attrs.end(), strides.begin(), strides.end());
  attrs.push_back(api::is_empty(shape) ? Dim(0) : offset);
  return engine::make(Op::AsStrided, {x}, std::move(attrs), x.dtype(), shape);
}

namespace {

Dtype common_type(const std::vector<Array>& arrays) {
  Dtype t = arrays[0].dtype();
  for (const Array& x : arrays) t = promote_types(t, x.dtype());
  return t;
}

}  // namespace

Array concatenate(const std::vector<Array>& arrays, Axis axis) {
  if (arrays.empty()) throw Error("concatenate: there is no array; got {}; give one or more");
  Shape shape = api::shape_of(arrays[0], "concatenate");
  const auto at = static_cast<std::size_t>(api::axis_of("concatenate", axis, shape));
  shape[at] = 0;
  for (const Array& x : arrays) {
    Shape other = api::shape_of(x, "concatenate");
    const Dim size = at < other.size() ? other[at] : Dim(0);
    if (other.size() == shape.size()) other[at] = shape[at];
    if (!(other == shape)) {
      throw ShapeError(str("concatenate: shapes differ in another axis than ", at, "; got ", arrays[0].shape(), " and ", x.shape(),
                           "; make the other axes equal"));
    }
    shape[at] += size;
  }
  api::check_sizes("concatenate", shape, Dtype::float64);
  const Dtype t = common_type(arrays);
  std::vector<Array> parts;
  for (const Array& x : arrays) {
    if (x.shape()[at] != 0) parts.push_back(engine::cast(x, t));
  }
  if (parts.empty()) return engine::cast(arrays[0], t);
  if (parts.size() == 1) return parts[0];
  return engine::make(Op::Concatenate, std::move(parts), {static_cast<std::int64_t>(at)}, t, shape);
}

Array stack(const std::vector<Array>& arrays, Axis axis) {
  if (arrays.empty()) throw Error("stack: there is no array; got {}; give one or more");
  const Shape& shape = api::shape_of(arrays[0], "stack");
  const int at = api::place_of("stack", axis, shape);
  std::vector<Array> parts;
  for (const Array& x : arrays) {
    if (!(api::shape_of(x, "stack") == shape))
      throw ShapeError(str("stack: shapes differ; got ", shape, " and ", x.shape(), "; make them equal"));
    parts.push_back(expand_dims(x, at));
  }
  return concatenate(parts, at);
}

std::vector<Array> detail::split_evenly(const Array& x, std::int64_t parts, Axis axis) {
  const Shape& s = api::shape_of(x, "split");
  const int at = api::axis_of("split", axis, s);
  const Dim size = s[static_cast<std::size_t>(at)];
  if (parts <= 0 || size % parts != 0) {
    throw ShapeError(str("split: the axis does not divide into equal parts; got ", parts, " parts of axis ", at, " of shape ", s,
                         "; use a divisor, or give indices"));
  }
  std::vector<Array> result;
  for (std::int64_t i = 0; i < parts; ++i) result.push_back(api::sliced(x, at, i * (size / parts), size / parts));
  return result;
}

std::vector<Array> split(const Array& x, const Shape& indices, Axis axis) {
  const Shape& s = api::shape_of(x, "split");
  const int at = api::axis_of("split", axis, s);
  const Dim size = s[static_cast<std::size_t>(at)];
  std::vector<Array> result;
  Dim from = 0;
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    // As x[from:to] of NumPy: bounds are clamped, and a bound before the last one gives an empty part.
    Dim to = size;
    if (i < indices.size())
      to = base::apply(
          "bound", [](Numbers n) { return std::clamp<std::int64_t>(n[0] < 0 ? n[0] + n[1] : n[0], 0, n[1]); }, {indices[i], size}, 0);
    const Dim count = base::apply("span", [](Numbers n) { return std::max<std::int64_t>(n[1] - n[0], 0); }, {from, to}, 0);
    result.push_back(api::sliced(x, at, base::apply("start", [](Numbers n) { return n[1] > n[0] ? n[0] : 0; }, {from, to}, 0), count));
    from = to;
  }
  return result;
}

Array pad(const Array& x, const std::vector<std::pair<Dim, Dim>>& widths, const Operand& value) {
  const Shape& s = api::shape_of(x, "pad");
  if (widths.size() != s.size())
    throw ShapeError(
        str("pad: the number of widths does not fit; got ", widths.size(), " for shape ", s, "; give {low, high} for each axis"));
  const Array v = value.array() != nullptr ? engine::cast(api::to_array(value, "pad"), x.dtype()) : api::scalar(value.number(), x.dtype());
  if (v.ndim() != 0) throw ShapeError(str("pad: the value is not 0-d; got shape ", v.shape(), "; give one number"));
  Shape shape = s;
  ops::Attrs attrs;
  for (const auto& w : widths) attrs.push_back(w.first);
  for (const auto& w : widths) attrs.push_back(w.second);
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (widths[i].first < 0 || widths[i].second < 0) {
      throw ShapeError(str("pad: a width is negative; got {", widths[i].first, ", ", widths[i].second, "} for axis ", i,
                           "; use 0 or more, and slice to cut"));
    }
    shape[i] += widths[i].first + widths[i].second;
  }
  api::check_sizes("pad", shape, x.dtype());
  if (base::same(shape, s)) return x;
  return engine::make(Op::Pad, {x, v}, std::move(attrs), x.dtype(), shape);
}
Array pad(const Array& x, const std::pair<Dim, Dim>& widths, const Operand& value) {
  return pad(x, std::vector<std::pair<Dim, Dim>>(api::shape_of(x, "pad").size(), widths), value);
}
Array pad(const Array& x, Dim width, const Operand& value) { return pad(x, std::pair<Dim, Dim>(width, width), value); }

}  // namespace sinter
