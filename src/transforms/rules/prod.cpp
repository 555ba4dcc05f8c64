// Prod: each element gets the product of all others, computed without division, so that zeros are nothing special. Layer: transforms.
#include <utility>

#include "ops/infer.h"
#include "transforms/rules.h"

namespace sinter::transforms::rules {

namespace {

// The product of all other elements along the last axis, by a tree: up, the products of pairs; down, for each element the product of all
// that its parent does not hold, times its sibling.
Sym exclusive(const Sym& x) {
  const std::size_t axis = x.rank() - 1;
  const Dim n = x.size(axis);
  std::int64_t full = 1;
  while (full < n) full *= 2;
  Axes low(x.rank(), 0), high(x.rank(), 0);
  high[axis] = full - n;
  const auto half = [&](const Sym& pairs, std::int64_t which) {
    Shape s = pairs.shape();
    s[axis] = s[axis] / 2;
    Shape two = s;
    two.push_back(2);
    return reshape(slice(reshape(pairs, two), axis + 1, which, 1), s);
  };
  std::vector<std::pair<Sym, Sym>> levels;  // the two halves of pairs
  for (Sym level = pad(x, 1, low, high); level.size(axis) > 1;) {
    levels.emplace_back(half(level, 0), half(level, 1));
    level = levels.back().first * levels.back().second;
  }
  Shape one = x.shape();
  one[axis] = 1;
  Sym others = literal(x, x.dtype(), 1, one);
  for (; !levels.empty(); levels.pop_back()) {
    const auto& [left, right] = levels.back();
    Shape apart = left.shape(), joined = apart;
    apart.push_back(1);
    joined[axis] *= 2;
    const Sym both = concatenate({reshape(others * right, apart), reshape(others * left, apart)}, axis + 1);
    others = reshape(both, joined);
  }
  return slice(others, axis, 0, n);
}

// The exclusive products in the operand's shape and the dtype in which the product is computed.
Sym others(const Call& c) {
  const Sym x = cast(c.in(0), wide_dtype(c.dtype()));
  const Axes axes = c.axes();
  Axes order;  // kept axes first
  Shape kept;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (ops::is_reduced(c.node.attrs, d)) continue;
    order.push_back(static_cast<std::int64_t>(d));
    kept.push_back(x.size(d));
  }
  order.insert(order.end(), axes.begin(), axes.end());
  const Sym last = transpose(x, order);
  Shape flat = kept;
  Dim count = 1;
  for (const Dim& a : axes) count *= x.size(static_cast<std::size_t>(a));
  flat.push_back(count);
  const Sym products = reshape(exclusive(reshape(last, flat)), last.shape());
  Axes inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return transpose(products, std::move(inverse));
}

}  // namespace

void Prod::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Shape operand = c.in(0).shape();
  if (operand.product() == 0) return;
  const Sym slope = conj(others(c));
  to.add(0, cast_back(slope * spread_over(cast(g, slope.dtype()), operand, c.axes()), c.in(0).dtype()));
}
Sym Prod::jvp(const Call& c, std::span<const Sym> t) {
  if (c.in(0).shape().product() == 0) return kZero;
  const Sym slope = others(c);
  return cast(sum(slope * cast(t[0], slope.dtype()), c.axes()), c.dtype());
}
Sym Prod::batch(const BatchCall& c) { return batch_reduce(c); }

}  // namespace sinter::transforms::rules
