// Transpose: back by the inverse permutation. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Transpose::vjp(const Call& c, const Sym& g, Cotangents& to) {
  Axes inverse(c.node.attrs.size());
  for (std::size_t i = 0; i < inverse.size(); ++i) inverse[static_cast<std::size_t>(c.node.attrs[i])] = static_cast<std::int64_t>(i);
  to.add(0, transpose(g, std::move(inverse)));
}
Sym Transpose::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym Transpose::batch(const BatchCall& c) {
  Axes axes = next_axes(c.node.attrs);
  axes.insert(axes.begin(), 0);
  return transpose(c.in(0), std::move(axes));
}

}  // namespace sinter::transforms::rules
