// CumSum: the cotangents add up the other way. Layer: transforms.
#include "transforms/rules/cumulative.h"

namespace sinter::transforms::rules {

void CumSum::vjp(const Call& c, const Sym& g, Cotangents& to) { to.add(0, cumulate(Op::CumSum, g, Line(c).back(), is_inclusive(c))); }
Sym CumSum::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym CumSum::batch(const BatchCall& c) { return batch_cumulative(c); }

}  // namespace sinter::transforms::rules
