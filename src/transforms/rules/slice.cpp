// Slice: cotangents go back into zeros. No element is read twice, so this is a flip, a stretch and a pad, no scatter. Layer: transforms.
#include <cstdlib>

#include "transforms/rules.h"

namespace sinter::transforms::rules {

// An axis at a time that has a step: flipped if it goes backwards, then step - 1 zeros behind each element, and the last of them cut off.
void Slice::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Shape operand = c.in(0).shape();
  const std::size_t n = operand.size();
  const ops::Attrs& attrs = c.node.attrs;
  if (c.shape().product() == 0) return;
  Axes start(n, 0), size(n), flip(n, 1), low(n), high(n), wide_low, wide_high, cut(n);
  Shape apart, joined;
  for (std::size_t i = 0; i < n; ++i) {
    const Dim count = attrs[n + i];
    const std::int64_t step = count == 1 ? Dim(1) : attrs[2 * n + i], gap = std::abs(step);
    size[i] = count;
    if (step < 0) start[i] = count - 1, flip[i] = -1;
    low[i] = step < 0 ? attrs[i] + (count - 1) * step : attrs[i];
    cut[i] = (count - 1) * gap + 1;
    high[i] = operand[i] - low[i] - cut[i];
    apart.push_back(count);
    wide_low.push_back(0), wide_high.push_back(0);
    if (gap != 1) {
      apart.push_back(1);
      wide_low.push_back(0), wide_high.push_back(gap - 1);
    }
    joined.push_back(count * gap);
  }
  Sym x = slice(g, start, size, flip);
  if (apart.size() > n) {
    x = reshape(pad(reshape(x, apart), 0, wide_low, wide_high), joined);
    x = slice(x, Axes(n, 0), cut, Axes(n, 1));
  }
  to.add(0, pad(x, 0, low, high));
}
Sym Slice::jvp(const Call& c, std::span<const Sym> t) { return c.again({t[0]}); }
Sym Slice::batch(const BatchCall& c) {
  const std::size_t n = c.node.type.shape.size();
  ops::Attrs attrs = c.node.attrs;
  for (std::size_t part = 0; part < 3; ++part) {
    const Dim first[] = {0, c.size, 1};
    attrs.insert(attrs.begin() + static_cast<std::ptrdiff_t>(part * (n + 1)), first[part]);
  }
  return c.make({c.in(0)}, std::move(attrs), c.shape());
}

}  // namespace sinter::transforms::rules
