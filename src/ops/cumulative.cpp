#include "ops/cumulative.h"

#include <bit>
#include <limits>

#include "base/check.h"
#include "ops/elements.h"

namespace sinter::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Infinities become the ends of an integer dtype.
Cumulation make(Op step, Dtype accumulator, double identity) {
  const std::uint64_t wide = std::bit_cast<std::uint64_t>(identity);
  Cumulation c{step, accumulator, 0};
  if (accumulator == Dtype::bool_)
    c.identity = identity > 0;
  else
    convert_elements(Dtype::float64, accumulator, {&wide, 1}, {&c.identity, 1});
  return c;
}

}  // namespace

Cumulation cumulation_of(Op op, Dtype t) {
  const Dtype wide = is_half(t) ? Dtype::float32 : t;
  switch (op) {
    case Op::CumSum:
    case Op::LinearRecurrence: return make(Op::Add, wide, 0);
    case Op::CumProd: return make(Op::Multiply, wide, 1);
    case Op::CumMax: return make(Op::Maximum, t, -kInfinity);
    case Op::CumMin: return make(Op::Minimum, t, kInfinity);
    case Op::LogCumSumExp: return make(Op::LogAddExp, wide, -kInfinity);
    default: throw InternalError(str("internal: ", info(op).name, ": not a cumulative operation"));
  }
}

}  // namespace sinter::ops
