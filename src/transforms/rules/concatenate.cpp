// Concatenate: each operand gets its part. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Concatenate::vjp(const Call& c, const Sym& g, Cotangents& to) {
  Dim start = 0;
  for (std::size_t i = 0; i < c.node.in.size(); ++i) {
    const Dim size = c.in(i).size(c.axis());
    if (to.wanted(i)) to.add(i, slice(g, c.axis(), start, size));
    start += size;
  }
}
Sym Concatenate::jvp(const Call& c, std::span<const Sym> t) {
  std::vector<Sym> parts;
  for (std::size_t i = 0; i < t.size(); ++i) parts.push_back(t[i] ? t[i] : literal(c.out(), c.dtype(), 0, c.in(i).shape()));
  return concatenate(parts, c.axis());
}
Sym Concatenate::batch(const BatchCall& c) {
  std::vector<Sym> parts;
  for (std::size_t i = 0; i < c.operands.size(); ++i) parts.push_back(c.spread(i));
  return concatenate(parts, c.axis() + 1);
}

}  // namespace sinter::transforms::rules
