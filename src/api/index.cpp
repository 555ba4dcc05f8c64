// Reading and writing at computed places. Layer: api.
#include "api/common.h"

namespace sinter {

using api::Op;

namespace {

void check_indices(const char* what, const Array& indices) {
  engine::operand_of(indices, what);
  if (!is_integer(indices.dtype()))
    throw DtypeError(str(what, ": indices are not integers; got ", indices.dtype(), "; convert with astype first"));
}

// A C++ number: checked now, and the axis goes.
template <class Where>  // -> where the index counts, as messages say it
Array take_one(const Array& x, const Number& index, int axis, const Where& where) {
  if (!is_integer(index.dtype())) throw DtypeError(str("take: the index is not an integer; got ", index.dtype(), "; use an integer"));
  const Dim n = x.shape(axis), i = api::integer_of(index), at = i < 0 ? i + n : i;
  if (at < 0 || at >= n) throw IndexError(str("take: index out of range; got ", i, " for ", where(), "; use ", -n, " to ", n - 1));
  return api::reshaped(api::sliced(x, axis, at, 1), api::without_axes(x.shape(), {axis}, false));
}

}  // namespace

Array take(const Array& operand, const Operand& indices, std::optional<Axis> axis) {
  const Shape& s = api::shape_of(operand, "take");
  const int at = axis ? api::axis_of("take", *axis, s) : 0;
  const Array x = axis ? operand : api::reshaped(operand, {s.product()});
  const auto where = [&] { return axis ? str("axis ", at, " of shape ", s) : str("shape ", s, " flattened"); };
  if (indices.array() == nullptr) return take_one(x, indices.number(), at, where);
  const Array& i = *indices.array();
  check_indices("take", i);
  Shape shape;
  for (int k = 0; k < x.ndim(); ++k) {
    if (k != at)
      shape.push_back(x.shape(k));
    else
      for (const Dim& d : i.shape()) shape.push_back(d);
  }
  api::check_sizes("take", shape, x.dtype());
  if (api::is_empty(shape)) return zeros(shape, x.dtype());
  if (x.shape(at) == 0) throw IndexError(str("take: the axis has no elements; got ", where(), "; give an array with elements"));
  return engine::make(Op::Take, {x, i}, {at}, x.dtype(), shape);
}

Array take_along_axis(const Array& x, const Array& indices, Axis axis) {
  const Shape& s = api::shape_of(x, "take_along_axis");
  check_indices("take_along_axis", indices);
  if (indices.shape().size() != s.size()) {
    throw ShapeError(
        str("take_along_axis: the arrays have different numbers of axes; got ", s, " and ", indices.shape(), "; reshape the indices"));
  }
  const auto at = static_cast<std::size_t>(api::axis_of("take_along_axis", axis, s));
  Shape others[] = {s, indices.shape()};
  others[0][at] = others[1][at] = 1;
  Shape from = api::broadcast_shapes("take_along_axis", others), shape = from;
  from[at] = s[at];
  shape[at] = indices.shape()[at];
  api::check_sizes("take_along_axis", shape, x.dtype());
  if (api::is_empty(shape)) return zeros(shape, x.dtype());
  if (s[at] == 0)
    throw IndexError(str("take_along_axis: the axis has no elements; got axis ", at, " of shape ", s, "; give an array with elements"));
  return engine::make(Op::TakeAlong, {engine::broadcast(x, from), engine::broadcast(indices, shape)}, {static_cast<std::int64_t>(at)},
                      x.dtype(), shape);
}

namespace {

// A node, unless there is nothing to write; halves add up in float32.
Array scatter(Op op, const Array& a, const Array& indices, const Array& updates, int axis) {
  if (api::is_empty(a.shape()) || api::is_empty(updates.shape())) return a;
  const Dtype t = a.dtype(), work = op == Op::ScatterAdd && is_half(t) ? Dtype::float32 : t;
  return engine::cast(
      engine::make(op, {engine::cast(a, work), indices, engine::cast(updates, work)}, {std::int64_t{axis}}, work, a.shape()), t);
}

Array scatter_along(Op op, const char* what, const Array& a, const Array& indices, const Operand& values, int axis) {
  const Shape& s = api::shape_of(a, what);
  check_indices(what, indices);
  if (indices.shape().size() != s.size()) {
    throw ShapeError(str(what, ": the arrays have different numbers of axes; got ", s, " and ", indices.shape(), "; reshape the indices"));
  }
  const int at = api::axis_of(what, axis, s);
  Shape shape = s;
  shape[static_cast<std::size_t>(at)] = indices.shape(at);
  api::check_sizes(what, shape, Dtype::int64);
  const Array updates = api::to_array(values, what);
  const auto spread = [&](const Array& x, const char* which) {
    const Shape both[] = {x.shape(), shape};
    if (!(api::broadcast_shapes(what, both) == shape))
      throw ShapeError(
          str(what, ": ", which, " do not broadcast to the places; got ", x.shape(), " for ", shape, "; make their axes equal or 1"));
    return engine::broadcast(x, shape);
  };
  return scatter(op, a, spread(indices, "the indices"), spread(updates, "the values"), at);
}

}  // namespace

Array scatter_add_axis(const Array& a, const Array& indices, const Operand& values, Axis axis) {
  return scatter_along(Op::ScatterAdd, "scatter_add_axis", a, indices, values, axis);
}
Array put_along_axis(const Array& a, const Array& indices, const Operand& values, Axis axis) {
  return scatter_along(Op::PutAlong, "put_along_axis", a, indices, values, axis);
}

Array scatter_add(const Array& a, const Array& indices, const Array& updates, Axis axis) {
  const Shape& s = api::shape_of(a, "scatter_add");
  check_indices("scatter_add", indices);
  const int at = api::axis_of("scatter_add", axis, s);
  const Shape& places = indices.shape();
  Shape expected = places;
  for (int d = 0; d < a.ndim(); ++d) expected.push_back(d == at ? Dim(1) : s[static_cast<std::size_t>(d)]);
  if (!(api::shape_of(updates, "scatter_add") == expected)) {
    throw ShapeError(str("scatter_add: updates have not the shape of the indices and of a with size 1 on the axis; got ", updates.shape(),
                         " for indices ", places, " and a ", s, " along ", at, "; reshape them to ", expected));
  }
  // All places as one axis, which comes to stand at `axis`.
  const Dim count = places.product();
  Shape flat = s, along(std::vector<std::int64_t>(s.size(), 1));
  flat[static_cast<std::size_t>(at)] = count;
  along[static_cast<std::size_t>(at)] = count;
  Shape first = api::without_axes(s, {at}, false);
  first.insert(0, count);
  const Array moved = moveaxis(api::reshaped(updates, first), 0, at);
  return scatter(Op::ScatterAdd, a, engine::broadcast(api::reshaped(indices, along), flat), moved, at);
}

Array one_hot(const Array& indices, Dim num_classes, Dtype t) {
  check_indices("one_hot", indices);
  api::check_sizes("one_hot", {num_classes}, Dtype::int64);
  // In int64, for class numbers must not wrap at the indices' width.
  return astype(equal(expand_dims(engine::cast(indices, Dtype::int64), -1), arange(num_classes, Dtype::int64)), t);
}

}  // namespace sinter
