// AsStrided: elements may be shown several times; their cotangents add up in the row-major operand. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void AsStrided::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Shape shape = c.shape(), operand = c.in(0).shape();
  const std::size_t n = shape.size();
  const Dim count = shape.product();
  if (count == 0) return;
  Sym place = literal(g, Dtype::int64, c.node.attrs[2 * n]);
  for (std::size_t d = 0; d < n; ++d) {
    const Dim stride = c.node.attrs[n + d];
    if (stride != 0 && shape[d] != 1) place = iota(g, Dtype::int64, shape, d) * stride + place;
  }
  place = reshape(broadcast(place, shape), {count});
  const Sym flat = scatter_zeros({operand.product()}, place, reshape(g, {count}), 0);
  to.add(0, reshape(flat, operand));
}
Sym AsStrided::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym AsStrided::batch(const BatchCall& c) {
  const std::size_t n = c.node.type.shape.size();
  ops::Attrs attrs = c.node.attrs;
  attrs.insert(attrs.begin() + static_cast<std::ptrdiff_t>(n), c.elements(0));
  attrs.insert(attrs.begin(), c.size);
  return c.make({c.in(0)}, std::move(attrs), c.shape());
}

}  // namespace sinter::transforms::rules
