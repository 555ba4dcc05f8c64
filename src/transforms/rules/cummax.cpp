// CumMax: the first of the greatest elements so far has the derivative. Layer: transforms.
#include "transforms/rules/cumulative.h"

namespace sinter::transforms::rules {

void CumMax::vjp(const Call& c, const Sym& g, Cotangents& to) { vjp_record(c, g, to); }
Sym CumMax::jvp(const Call& c, std::span<const Sym> t) { return jvp_record(c, t[0]); }
Sym CumMax::batch(const BatchCall& c) { return batch_cumulative(c); }

}  // namespace sinter::transforms::rules
