// CumProd, without division, so that zeros are nothing special. With p the products of what comes before each element: element i appears in
// result k >= i with the slope p[i] x[i+1] ... x[k], and the sum of these over k, weighed by g, is a recurrence from the end:
// s[i] = g[i] + x[i+1] s[i+1]. The tangents are a recurrence too: t[i] = x[i] t[i-1] + dx[i] p[i]. Layer: transforms.
#include "transforms/rules/cumulative.h"

namespace sinter::transforms::rules {

void CumProd::vjp(const Call& c, const Sym& g, Cotangents& to) {
  if (c.shape().product() == 0) return;
  const Line line(c);
  const Sym x = conj(cast(c.in(0), wide_dtype(c.dtype()))), weights = cast(inclusive_cotangent(c, g), x.dtype());
  const Sym sums = recurrence(before(x, line.back(), 0), weights, line.back());
  to.add(0, cast(sums * cumulate(Op::CumProd, x, line, false), c.dtype()));
}
Sym CumProd::jvp(const Call& c, std::span<const Sym> t) {
  if (c.shape().product() == 0) return kZero;
  const Line line(c);
  const Sym x = cast(c.in(0), wide_dtype(c.dtype()));
  const Sym moved = cast(t[0], x.dtype()) * cumulate(Op::CumProd, x, line, false);
  return inclusive_tangent(c, cast(recurrence(x, moved, line), c.dtype()));
}
Sym CumProd::batch(const BatchCall& c) { return batch_cumulative(c); }

}  // namespace sinter::transforms::rules
