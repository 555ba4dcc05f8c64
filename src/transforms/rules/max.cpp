// Max: equal extremes share evenly. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Max::vjp(const Call& c, const Sym& g, Cotangents& to) { vjp_extreme(c, g, to); }
Sym Max::jvp(const Call& c, std::span<const Sym> t) { return jvp_extreme(c, t[0]); }
Sym Max::batch(const BatchCall& c) { return batch_reduce(c); }

}  // namespace sinter::transforms::rules
