// ArgSort: positions have no derivative; sort reads its operand at them, and that has one. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void ArgSort::vjp(const Call&, const Sym&, Cotangents&) {}
Sym ArgSort::jvp(const Call&, std::span<const Sym>) { return kZero; }
Sym ArgSort::batch(const BatchCall& c) { return c.make({c.in(0)}, {c.node.attrs[0] + 1}, c.shape()); }

}  // namespace sinter::transforms::rules
