// CallDesc, SolveDesc, SortDesc, ConvDesc: library calls as data, so that backends need no graph. Layer: kernel.
#pragma once
#include <cstdint>

#include "ops/convolution.h"
#include "ops/product.h"
#include "sinter/dtype.h"

namespace sinter::kernel {

using CallDesc = ops::Product;

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
