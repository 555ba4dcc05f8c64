#include "graph/layout.h"

#include "base/check.h"

namespace sinter::graph {

Strides row_major(const Shape& shape) {
  Strides strides(shape.size());
  Dim n = 1;
  for (std::size_t i = shape.size(); i-- > 0; n *= shape[i]) strides[i] = n;
  return strides;
}

bool is_row_major(const Shape& shape, const Strides& strides) {
  Dim n = 1;
  for (std::size_t i = shape.size(); i-- > 0; n *= shape[i]) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != n) return false;
  }
  return true;
}

std::int64_t distinct_elements(const Shape& shape, const Strides& strides) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (strides[i] != 0 || shape[i] == 0) n *= shape[i];
  return n;
}

namespace {

// Strides of `result` over the same elements: axes of the operand are grouped with axes of the result that cover as many elements, and
// within a group the operand's axes must be as one.
std::optional<Layout> reshape_layout(const Shape& result, const Shape& operand, const Layout& in) {
  Layout out{in.offset, row_major(result)};
  if (result.product() == 0 || is_row_major(operand, in.strides)) return out;
  std::size_t a = 0, b = 0;
  while (a < operand.size() || b < result.size()) {
    std::size_t a_end = a, b_end = b;
    Dim na = 1, nb = 1;
    if (a_end < operand.size()) na *= operand[a_end++];
    if (b_end < result.size()) nb *= result[b_end++];
    while (na != nb) {
      if (na < nb)
        na *= operand[a_end++];
      else
        nb *= result[b_end++];
    }
    // Trailing axes of size 1 belong to this group.
    while (a_end < operand.size() && operand[a_end] == 1) ++a_end;
    while (b_end < result.size() && result[b_end] == 1) ++b_end;
    bool first = true;
    Dim inner = 0, covered = 0;  // stride of the innermost axis above size 1, and stride * size so far
    for (std::size_t i = a_end; i-- > a;) {
      if (operand[i] == 1) continue;
      if (first)
        inner = in.strides[i];
      else if (in.strides[i] != covered)
        return std::nullopt;
      covered = in.strides[i] * operand[i];
      first = false;
    }
    Dim stride = inner;
    for (std::size_t i = b_end; i-- > b; stride *= result[i]) out.strides[i] = stride;
    a = a_end, b = b_end;
  }
  return out;
}

}  // namespace

std::optional<Layout> view_layout(ops::Op op, const ops::Attrs& attrs, const Shape& result, const Shape& operand, const Layout& in) {
  std::size_t rank = result.size();
  Layout out{in.offset, Strides(rank, 0)};
  switch (op) {
    case ops::Op::Reshape: return reshape_layout(result, operand, in);
    case ops::Op::Transpose:
      for (std::size_t i = 0; i < rank; ++i) out.strides[i] = in.strides[static_cast<std::size_t>(attrs[i])];
      return out;
    case ops::Op::Broadcast: {
      std::size_t lead = rank - operand.size();
      for (std::size_t i = lead; i < rank; ++i) out.strides[i] = operand[i - lead] == 1 ? Dim(0) : in.strides[i - lead];
      return out;
    }
    case ops::Op::Slice:
      for (std::size_t i = 0; i < rank; ++i) {
        out.offset += attrs[i] * in.strides[i];
        out.strides[i] = attrs[2 * rank + i] * in.strides[i];
      }
      if (result.product() == 0) out.offset = in.offset;
      return out;
    case ops::Op::AsStrided:
      if (!is_row_major(operand, in.strides)) return std::nullopt;
      for (std::size_t i = 0; i < rank; ++i) out.strides[i] = attrs[rank + i];
      out.offset += attrs[2 * rank];
      return out;
    default: throw InternalError("internal: view_layout of an operation that is no view");
  }
}

std::optional<ops::Product::Matrix> matrix_layout(const Shape& shape, const Strides& strides) {
  const std::vector<std::int64_t> s(strides.begin(), strides.end());
  std::size_t r = shape.size() - 2, c = shape.size() - 1;
  std::int64_t rows = shape[r], columns = shape[c];
  ops::Product::Matrix m;
  // The stride of an axis of size 1 means nothing. Where both readings fit, the first is taken.
  if ((s[c] == 1 || columns == 1) && (s[r] >= columns || rows == 1))
    m = {false, rows == 1 ? columns : s[r], rows * columns};
  else if ((s[r] == 1 || rows == 1) && (s[c] >= rows || columns == 1))
    m = {true, columns == 1 ? rows : s[c], rows * columns};
  else
    return std::nullopt;
  // Batch axes must walk as one: all matrices apart, or all the same one.
  std::optional<std::int64_t> next;  // stride times size of the axis within
  for (std::size_t d = r; d-- > 0;) {
    if (shape[d] == 1) continue;
    if (s[d] < 0 || (next && s[d] != *next)) return std::nullopt;
    if (!next) m.batch = s[d];
    next = s[d] * shape[d];
  }
  m.leading = std::max<std::int64_t>(m.leading, 1);
  return m;
}

}  // namespace sinter::graph
