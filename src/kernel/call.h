// CallDesc, SolveDesc, SortDesc, ConvDesc: library calls as data, so that backends need no graph. Layer: kernel.
#pragma once
#include <cstdint>

#include "ops/convolution.h"
#include "sinter/dtype.h"

namespace sinter::kernel {

/// out[b] = x[b] * y[b] for b in [0, batch): x is m by k, y is k by n, out is row-major without gaps.
struct CallDesc {
  Dtype dtype = Dtype::float32;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  struct Matrix {
    bool transposed = false;   // columns, not rows, are contiguous
    std::int64_t leading = 1;  // elements from one row (column, when transposed) to the next
    std::int64_t batch = 0;    // elements from one matrix to the next
  } x, y;
  bool alone = false;  // it runs on one thread, whoever calls it
};

/// x[b] of a[b] * x[b] = y[b] for b in [0, batch): a is n by n, x and y are n by k.
struct SolveDesc {
  Dtype dtype = Dtype::float32;
  std::int64_t batch = 1, n = 0, k = 0;
};

/// uint32 positions along the middle axis of (outer, n, inner), row-major, in the order of the elements.
struct SortDesc {
  Dtype dtype = Dtype::float32;
  std::int64_t outer = 1, n = 0, inner = 1;
};

/// The array of one role from those of the two others, all row-major.
struct ConvDesc {
  Dtype dtype = Dtype::float32;
  ops::Convolution::Role result = ops::Convolution::kOutput;
  ops::Convolution geometry;
};

}  // namespace sinter::kernel
