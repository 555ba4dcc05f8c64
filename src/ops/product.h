// Matrix products as data, and which of them are reductions of ours and not a library's. Layer: ops.
#pragma once
#include <algorithm>
#include <cstdint>

#include "sinter/dtype.h"

namespace sinter::ops {

/// out[b] = x[b] * y[b] for b in [0, batch): x is m by k, y is k by n, out is row-major without gaps.
struct Product {
  Dtype dtype = Dtype::float32;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  struct Matrix {
    bool transposed = false;   // columns, not rows, are contiguous
    std::int64_t leading = 1;  // elements from one row (column, when transposed) to the next
    std::int64_t batch = 0;    // elements from one matrix to the next; 0: all are the same one
  } x, y;
  bool alone = false;  // it runs on one thread, whoever calls it
};
/// Without gaps.
inline Product::Matrix dense(std::int64_t rows, std::int64_t columns, bool transposed = false) {
  return {transposed, std::max<std::int64_t>(transposed ? rows : columns, 1), rows * columns};
}

/// As libraries want the matrices of a batch: one behind the other, or side by side in lines that hold them all. Slices with steps make
/// others, which interleave.
inline bool lie_apart(const Product::Matrix& m, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  const std::int64_t lines = m.transposed ? columns : rows, length = m.transposed ? rows : columns;
  return m.batch == 0 || m.batch >= m.leading * lines || (m.batch >= length && m.leading >= m.batch * batch);
}

/// Of (m, k) by (k, n). With up to 4 rows or columns a product is bound by reading the other matrix: a library gains nothing by packing it,
/// and makes code for each new size. Where many short sums are asked for, their ends cost more than that. This is a part of the product's
/// definition, for the sum has another order: of sizes alone. Sizes are integers, or Dims, of which no more is asked than this.
template <class Size>
bool has_few_rows(const Size& m, const Size& n, const Size& k) {
  return k > 0 && (m <= 4 || n <= 4) && (k >= 32 || (m <= 1024 && n <= 1024));
}

}  // namespace sinter::ops
