// LogCumSumExp: result i weighs the result before it by w[i] and x[i] by v[i], which are at most 1: dy[i] = w[i] dy[i-1] + v[i] dx[i], a
// recurrence whose transpose runs from the end. Layer: transforms.
#include <limits>

#include "transforms/rules/cumulative.h"

namespace sinter::transforms::rules {
namespace {

struct Weights {
  Sym of_before, of_x;
};
// exp(part - whole); 1 where they are equal, both infinite ones too.
Sym weight(const Sym& part, const Sym& whole) { return exp(where(part == whole, 0, part - whole)); }
Weights weights(const Call& c) {
  const Line line(c);
  const Sym x = cast(c.in(0), wide_dtype(c.dtype())), y = cumulate(Op::LogCumSumExp, x, line, true);
  return {weight(before(y, line, -std::numeric_limits<double>::infinity()), y), weight(x, y)};
}

}  // namespace

void LogCumSumExp::vjp(const Call& c, const Sym& g, Cotangents& to) {
  if (c.shape().product() == 0) return;
  const Line back = Line(c).back();
  const auto [of_before, of_x] = weights(c);
  const Sym sums = recurrence(before(of_before, back, 0), cast(inclusive_cotangent(c, g), of_x.dtype()), back);
  to.add(0, cast(sums * of_x, c.dtype()));
}
Sym LogCumSumExp::jvp(const Call& c, std::span<const Sym> t) {
  if (c.shape().product() == 0) return kZero;
  const auto [of_before, of_x] = weights(c);
  return inclusive_tangent(c, cast(recurrence(of_before, of_x * cast(t[0], of_x.dtype()), Line(c)), c.dtype()));
}
Sym LogCumSumExp::batch(const BatchCall& c) { return batch_cumulative(c); }

}  // namespace sinter::transforms::rules
