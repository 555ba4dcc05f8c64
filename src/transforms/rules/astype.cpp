// Cast: between floating and complex dtypes a linear map; through integers and bool no derivative passes. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Cast::vjp(const Call& c, const Sym& g, Cotangents& to) { to.add(0, cast_back(g, c.in(0).dtype())); }
Sym Cast::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym Cast::batch(const BatchCall& c) { return cast(c.in(0), c.node.type.dtype); }

}  // namespace sinter::transforms::rules
