// Cumulative sums, products, extremes. Layer: api.
#include "api/common.h"

namespace sinter {

using api::Op;

namespace {

Array cumulate(Op op, const Array& operand, Dtype t, std::optional<Axis> axis, bool reverse, bool inclusive) {
  const char* what = ops::info(op).name.data();
  const Array x = axis ? operand : api::reshaped(operand, {operand.size()});
  const int at = axis ? api::axis_of(what, *axis, x.shape()) : 0;
  if (api::is_empty(x.shape())) return zeros(x.shape(), t);
  return engine::make(op, {engine::cast(x, t)}, {at, Dim(int{reverse}), Dim(int{inclusive})}, t, x.shape());
}

}  // namespace

Array cumsum(const Array& x, std::optional<Axis> axis, bool reverse, bool inclusive) {
  return cumulate(Op::CumSum, x, api::accumulating(engine::operand_of(x, "cumsum").dtype), axis, reverse, inclusive);
}
Array cumprod(const Array& x, std::optional<Axis> axis, bool reverse, bool inclusive) {
  return cumulate(Op::CumProd, x, api::accumulating(engine::operand_of(x, "cumprod").dtype), axis, reverse, inclusive);
}
Array cummax(const Array& x, std::optional<Axis> axis, bool reverse, bool inclusive) {
  api::require_order("cummax", x);
  return cumulate(Op::CumMax, x, x.dtype(), axis, reverse, inclusive);
}
Array cummin(const Array& x, std::optional<Axis> axis, bool reverse, bool inclusive) {
  api::require_order("cummin", x);
  return cumulate(Op::CumMin, x, x.dtype(), axis, reverse, inclusive);
}
Array logcumsumexp(const Array& x, std::optional<Axis> axis, bool reverse, bool inclusive) {
  api::require_real("logcumsumexp", x);
  return cumulate(Op::LogCumSumExp, x, api::at_least_float(x.dtype()), axis, reverse, inclusive);
}

}  // namespace sinter
