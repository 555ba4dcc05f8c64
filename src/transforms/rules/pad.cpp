// Pad: the operand gets the middle, the value the sum of the rim. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

namespace {

// Whether an element of the padded shape is the value.
Sym rim(const Sym& like, const Shape& inner, const Axes& low, const Axes& high) {
  const Sym inside = pad(literal(like, Dtype::bool_, 1, inner), 0, low, high);
  return logical_not(inside);
}
Axes part(const Node& n, std::size_t which) {
  const std::size_t rank = n.type.shape.size();
  const auto from = n.attrs.begin() + static_cast<std::ptrdiff_t>(which * rank);
  return {from, from + static_cast<std::ptrdiff_t>(rank)};
}

}  // namespace

void Pad::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Shape inner = c.in(0).shape();
  const Axes low = part(c.node, 0);
  if (to.wanted(0)) to.add(0, slice(g, low, Axes(inner.begin(), inner.end()), Axes(inner.size(), 1)));
  if (to.wanted(1)) to.add(1, sum_to(where(rim(g, inner, low, part(c.node, 1)), g, 0), c.in(1).shape()));
}
Sym Pad::jvp(const Call& c, std::span<const Sym> t) {
  return c.again(
      {t[0] ? t[0] : literal(c.out(), c.dtype(), 0, c.in(0).shape()), t[1] ? t[1] : literal(c.out(), c.dtype(), 0, c.in(1).shape())});
}
Sym Pad::batch(const BatchCall& c) {
  Axes low = part(c.node, 0), high = part(c.node, 1);
  low.insert(low.begin(), 0);
  high.insert(high.begin(), 0);
  const Sym x = c.spread(0);
  if (!c.is_batched(1) && c.in(1).shape().empty()) {
    ops::Attrs attrs = low;
    attrs.insert(attrs.end(), high.begin(), high.end());
    return c.make({x, c.in(1)}, std::move(attrs), c.shape());
  }
  const Sym value = broadcast(c.aligned(1, c.node.type.shape.size()), c.shape());
  return where(rim(x, x.shape(), low, high), value, pad(x, 0, low, high));
}

}  // namespace sinter::transforms::rules
