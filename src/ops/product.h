// Which matrix products are reductions of ours and not a library's. Layer: ops.
#pragma once
#include <algorithm>
#include <cstdint>

namespace sinter::ops {

/// Of (m, k) by (k, n). With up to 4 rows or columns a product is bound by reading the other matrix: a library gains nothing by packing it,
/// and makes code for each new size. Where many short sums are asked for, their ends cost more than that. This is a part of the product's
/// definition, for the sum has another order: of sizes alone.
inline bool has_few_rows(std::int64_t m, std::int64_t n, std::int64_t k) {
  return k > 0 && std::min(m, n) <= 4 && (k >= 32 || std::max(m, n) <= 1024);
}

}  // namespace sinter::ops
