// Layout: where the elements of an array lie in memory, and what views do to it. Layer: graph.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/op.h"
#include "ops/product.h"
#include "sinter/shape.h"

namespace sinter::graph {

using Strides = std::vector<Dim>;

/// Element (i, j, ...) is at data[offset + i * strides[0] + j * strides[1] + ...]; all in elements.
struct Layout {
  Dim offset = 0;
  Strides strides;  // one an axis
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Row-major without gaps.
Strides row_major(const Shape& shape);
/// Whether the elements lie in row-major order without gaps, whatever the strides of axes of size 1.
bool is_row_major(const Shape& shape, const Strides& strides);

/// Elements of memory that a walk over the shape touches, if no two axes of it touch the same.
std::int64_t distinct_elements(const Shape& shape, const Strides& strides);

/// The layout of a View operation's result over its operand's memory; none where the elements cannot be reached by strides (a reshape of
/// an operand with gaps; as_strided of an operand that is not row-major): then the operand must be copied first.
std::optional<Layout> view_layout(ops::Op op, const ops::Attrs& attrs, const Shape& result, const Shape& operand, const Layout& layout);

/// How a product can read matrices, the last two axes, where they lie (libraries: ops::lie_apart); none: they must be copied first.
std::optional<ops::Product::Matrix> matrix_layout(const Shape& shape, const Strides& strides);

}  // namespace sinter::graph
