// AddMM: a product and a sum. Layer: transforms.
#include "transforms/rules/products.h"

namespace sinter::transforms::rules {

void AddMM::vjp(const Call& c, const Sym& g, Cotangents& to) {
  to.add(0, g);
  vjp_product(c, g, 1, to);
}
Sym AddMM::jvp(const Call& c, std::span<const Sym> t) { return sum_of(t[0], jvp_product(c, t, 1)); }
Sym AddMM::batch(const BatchCall& c) {
  const Sym a = c.in(1), b = c.in(2);
  if (c.node.type.shape.size() == 2 && !c.is_batched(2) && c.is_batched(1)) {  // one larger product
    const Dim rows = c.size * a.size(1);
    const Shape flat{rows, b.size(1)};
    return reshape(c.make({reshape(c.spread(0), flat), reshape(a, {rows, a.size(2)}), b}, {}, flat), c.shape());
  }
  return c.make({c.spread(0), c.spread(1), c.spread(2)}, {}, c.shape());
}

}  // namespace sinter::transforms::rules
