// Infer: result types of operations, and the layout of their attributes. Layer: ops.
//
// These functions hold the operations' definitions; they throw InternalError, for a user's mistake is reported by the api layer before
// a node is made.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "base/check.h"
#include "ops/op.h"
#include "sinter/shape.h"

namespace sinter::ops {

/// The shape of a result. None where operands and attributes do not determine it (input, constant, arange, random_bits,
/// copy of a 0-d operand, get): the node's own type says it.
std::optional<Shape> infer_shape(Op op, std::span<const Shape> operands, const Attrs& attrs);

/// The dtype of a result; of an elementwise operation, whose operands have the compute dtype already, too. None for input, constant, get.
std::optional<Dtype> infer_dtype(Op op, std::span<const Dtype> operands, const Attrs& attrs);

/// One attribute of a structured operation: a name of structured.def and its integers.
struct Attribute {
  std::string_view name;
  Ints values;
};
/// Calls f for each attribute, in order; `axes` is the number of the result's axes. Returns false if the number of integers is wrong.
bool for_each_attribute(Op op, Ints attrs, std::size_t axes, FunctionRef<void(const Attribute&)> f);

/// The first name of `names` (what is left of a line's column of attributes), which it takes away; count is 1, '*' or '+'.
struct AttributeName {
  std::string_view name;
  char count;
};
AttributeName take_attribute_name(std::string_view& names);

/// The axes that a Reduce folds (a view of its attributes), and whether it folds `axis`.
inline Ints reduced_axes(const Attrs& attrs) { return {attrs.data() + 1, attrs.size() - 1}; }
inline bool is_reduced(const Attrs& attrs, std::size_t axis) {
  for (const Dim& a : reduced_axes(attrs)) {
    if (a == static_cast<std::int64_t>(axis)) return true;
  }
  return false;
}

}  // namespace sinter::ops
