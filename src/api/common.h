// What the functions share: checks and normalisation of axes and shapes with their messages, scalars, broadcasting. Layer: api.
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/symbols.h"
#include "engine/value.h"
#include "ops/op.h"
#include "sinter/functions.h"

namespace sinter::api {

using ops::Op;

// ---- scalars ------------------------------------------------------------------------------------------------------------------------
/// The bits of v stored as t: integers wrap, floats round to nearest; the conversions of astype. They follow a size that changes.
Dim encode(const Number& v, Dtype t);
/// A whole number, which may be a size.
inline Dim integer_of(const Number& v) {
  return base::changes(v.dim()) && !v.of_dim() ? v.dim() : Dim(static_cast<std::int64_t>(v.integer()));
}
/// A number as an operand of operators.
inline Operand operand(const Number& v) { return Operand(v); }
/// A 0-d constant.
Array scalar(const Number& v, Dtype t);
inline Array scalar(const Number& v) { return scalar(v, v.dtype()); }
/// The array, or a 0-d constant of the number's own dtype.
Array to_array(const Operand& o, const char* what);
/// Converts n elements, as astype does.
void convert(const void* source, Dtype from, void* target, Dtype to, std::int64_t n);

/// The dtype of each operand once scalars have taken the arrays' (scalars alone: their own).
std::vector<Dtype> operand_types(const char* what, std::span<const Operand* const> operands);
/// An elementwise operation on operands: scalars resolved, promoted, broadcast. `what`: its name in messages, if it has another there.
Array elementwise(Op op, std::initializer_list<const Operand*> operands, const char* what = nullptr);

/// In which a sum or product of t is given: small integers and bool in 32 bits.
Dtype accumulating(Dtype t);
inline Dtype at_least_float(Dtype t) { return is_floating(t) || is_complex(t) ? t : Dtype::float32; }
/// Where several steps follow each other, halves take them in float32.
inline Dtype computing(Dtype t) { return is_half(t) ? Dtype::float32 : at_least_float(t); }
/// DtypeError for complex64; for an operation that orders numbers, with that reason. Error for an unset array.
void require_real(const char* what, const Array& x);
void require_order(const char* what, const Array& x);

// ---- axes and shapes ----------------------------------------------------------------------------------------------------------------
/// The axis counted from 0. ShapeError `<what>: axis out of range; got 2 for shape (2,3); use -2 to 1`.
int axis_of(const char* what, int axis, const Shape& shape);
/// Ascending, each once; all of them when `axes` says so.
std::vector<int> axes_of(const char* what, const Axes& axes, const Shape& shape);
/// A place for a new axis among ndim ones: 0 to ndim, or -ndim - 1 to -1.
int place_of(const char* what, int axis, const Shape& shape);
/// ShapeError for negative sizes and for more than 2^63 bytes. (A symbolic size that grows so far is noticed when it does.)
void check_sizes(const char* what, const Shape& shape, Dtype t);
/// Replaces one -1 so that the product is n. `before` is the shape as messages show it.
Shape fill_size(const char* what, const Shape& shape, Dim n, const Shape& before);
/// ShapeError `<what>: shapes cannot be broadcast; got (2) and (3); make the axes equal or 1`.
Shape broadcast_shapes(const char* what, std::span<const Shape> shapes);
bool is_empty(const Shape& s);

/// The shape of a set array: Error that names `what` for an unset one.
inline const Shape& shape_of(const Array& x, const char* what) { return engine::operand_of(x, what).shape; }

ops::Attrs ints(const Shape& s);
/// Nodes that are left out when certainly nothing changes.
Array reshaped(const Array& x, const Shape& shape);
Array transposed(const Array& x, const std::vector<int>& axes);
Array sliced(const Array& x, const Shape& start, const Shape& size, const Shape& step);
/// `size` elements from `start` along one axis.
Array sliced(const Array& x, int axis, Dim start, Dim size);
/// x without the given axes (of size 1, or folded), or with them as 1.
Shape without_axes(const Shape& shape, const std::vector<int>& axes, bool keepdims);

}  // namespace sinter::api
