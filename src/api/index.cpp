// Reading at computed places. Layer: api.
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
Array take_one(const Array& x, const Number& index, int axis) {
  if (!is_integer(index.dtype())) throw DtypeError(str("take: the index is not an integer; got ", index.dtype(), "; use an integer"));
  const std::int64_t n = x.shape(axis), i = static_cast<std::int64_t>(index.integer()), at = i < 0 ? i + n : i;
  if (at < 0 || at >= n)
    throw IndexError(str("take: index out of range; got ", i, " for axis ", axis, " of shape ", x.shape(), "; use ", -n, " to ", n - 1));
  return api::reshaped(api::sliced(x, axis, at, 1), api::without_axes(x.shape(), {axis}, false));
}

}  // namespace

Array take(const Array& operand, const Operand& indices, std::optional<int> axis) {
  const Shape& s = api::shape_of(operand, "take");
  const int at = axis ? api::axis_of("take", *axis, s) : 0;
  const Array x = axis ? operand : api::reshaped(operand, {s.product()});
  if (indices.array() == nullptr) return take_one(x, indices.number(), at);
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
  if (x.shape(at) == 0)
    throw IndexError(str("take: the axis has no elements; got axis ", at, " of shape ", x.shape(), "; give an array with elements"));
  return engine::make(Op::Take, {x, i}, {at}, x.dtype(), shape);
}

Array take_along_axis(const Array& x, const Array& indices, int axis) {
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

Array one_hot(const Array& indices, Dim num_classes, Dtype t) {
  check_indices("one_hot", indices);
  api::check_sizes("one_hot", {num_classes}, Dtype::int64);
  // In int64, for class numbers must not wrap at the indices' width.
  return astype(equal(expand_dims(engine::cast(indices, Dtype::int64), -1), arange(num_classes, Dtype::int64)), t);
}

}  // namespace sinter
