// Cumulation: how a Cumulative operation goes on from one element to the next. Layer: ops.
#pragma once
#include <cstdint>

#include "ops/op.h"

namespace sinter::ops {

/// total = step(total, element), from the identity on. LinearRecurrence multiplies the total by its factor first.
struct Cumulation {
  Op step;
  Dtype accumulator;       // halves accumulate in float32, but for the greatest and least
  std::uint64_t identity;  // bits of the accumulator's dtype
};
Cumulation cumulation_of(Op op, Dtype t);

}  // namespace sinter::ops
