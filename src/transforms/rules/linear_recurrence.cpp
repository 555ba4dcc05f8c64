// LinearRecurrence, y[i] = a[i] y[i-1] + b[i]: the cotangents h of b are one from the end, h[i] = g[i] + a[i+1] h[i+1], and a[i] gets
// h[i] y[i-1]. Layer: transforms.
#include "transforms/rules/cumulative.h"

namespace sinter::transforms::rules {

void LinearRecurrence::vjp(const Call& c, const Sym& g, Cotangents& to) {
  if (c.shape().product() == 0) return;
  const Line line(c);
  const Sym h = recurrence(before(conj(c.in(0)), line.back(), 0), g, line.back());
  to.add(1, h);
  if (to.wanted(0)) to.add(0, h * before(conj(c.out()), line, 0));
}
Sym LinearRecurrence::jvp(const Call& c, std::span<const Sym> t) {
  if (c.shape().product() == 0) return kZero;
  const Line line(c);
  return recurrence(c.in(0), sum_of(t[1], t[0] ? t[0] * before(c.out(), line, 0) : kZero), line);
}
Sym LinearRecurrence::batch(const BatchCall& c) { return batch_cumulative(c); }

}  // namespace sinter::transforms::rules
