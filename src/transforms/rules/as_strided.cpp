// AsStrided: elements may be shown several times; their cotangents add up in the row-major operand. Layer: transforms.
#include <algorithm>
#include <optional>

#include "transforms/rules.h"

namespace sinter::transforms {
namespace {

// How the result walks one axis of the operand: as `places` windows of `kernel` neighbours each, `step` apart from `first` on. The two are
// axes of the result; one that has a single element is none.
struct Windows {
  std::int64_t first = 0, places = 1, step = 1, kernel = 1;
  std::optional<std::size_t> place_axis, kernel_axis;
};
constexpr std::int64_t kMostTerms = 32;  // of a sum that is written out

// In how many windows an element lies.
std::int64_t terms(const Windows& w) { return (w.kernel + w.step - 1) / w.step; }

// The walk of each axis of the operand, if the result's axes are such walks.
std::optional<std::vector<Windows>> windows_of(const Shape& operand, const Node& n) {
  const std::size_t rank = n.type.shape.size();
  std::vector<std::int64_t> strides(operand.size(), 1);
  for (std::size_t a = operand.size(); a-- > 1;) strides[a - 1] = strides[a] * operand[a];
  std::vector<Windows> walks(operand.size());
  std::int64_t offset = n.attrs[2 * rank];
  for (std::size_t a = 0; a < walks.size(); ++a) {
    walks[a].first = offset / strides[a];
    offset %= strides[a];
  }
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t size = n.type.shape[d], stride = n.attrs[rank + d];
    if (size == 1) continue;
    std::size_t a = 0;
    while (a < walks.size() && (operand[a] == 1 || strides[a] > stride)) ++a;
    if (a == walks.size() || stride % strides[a] != 0) return {};
    const std::int64_t step = stride / strides[a];
    Windows& w = walks[a];
    if (!w.place_axis) {
      w.places = size, w.step = step, w.place_axis = d;
      continue;
    }
    if (w.kernel_axis) return {};
    w.kernel = size, w.kernel_axis = d;
    std::int64_t inner = step;
    if (std::pair(step, size) > std::pair(w.step, w.places))
      std::swap(w.places, w.kernel), std::swap(w.place_axis, w.kernel_axis), std::swap(w.step, inner);
    if (inner != 1) return {};
  }
  std::int64_t all = 1;
  for (std::size_t a = 0; a < walks.size(); ++a) {
    const Windows& w = walks[a];
    all *= terms(w);
    if (all > kMostTerms || w.first + (w.places - 1) * w.step + w.kernel > operand[a]) return {};
  }
  return walks;
}

// The cotangent of the operand. With steps of s, an element lies in window p as its element t * s + r, in window p - 1 as its element
// (t + 1) * s + r, ...: for each t, what the windows hold there, [t * s, t * s + s), lies side by side, and the sum over t is one of arrays
// that are shifted by t places.
Sym add_windows(const Sym& g, const std::vector<Windows>& walks, const Shape& operand) {
  const std::size_t n = walks.size();
  // The elements of a window come first, so that those of all windows at one t lie in long rows.
  Axes order, places, beside;
  Shape apart, together;
  for (const Windows& w : walks) {
    if (w.kernel_axis) order.push_back(static_cast<std::int64_t>(*w.kernel_axis));
    if (w.place_axis) places.push_back(static_cast<std::int64_t>(*w.place_axis));
    apart.push_back(w.kernel);
    together.push_back((w.places + terms(w) - 1) * w.step);
  }
  order.insert(order.end(), places.begin(), places.end());
  for (std::size_t d = 0; d < g.rank(); ++d)
    if (g.size(d) == 1) order.push_back(static_cast<std::int64_t>(d));
  std::int64_t shifts = 1;
  for (std::size_t d = 0; d < n; ++d) {
    apart.push_back(walks[d].places);
    beside.push_back(static_cast<std::int64_t>(n + d)), beside.push_back(static_cast<std::int64_t>(d));
    shifts *= terms(walks[d]);
  }
  const Sym x = reshape(transpose(g, order), apart);
  Sym sum;
  for (std::int64_t shift = 0; shift < shifts; ++shift) {
    Axes start(2 * n, 0), size(2 * n), low(2 * n, 0), high(2 * n, 0);
    std::int64_t left = shift;
    for (std::size_t d = n; d-- > 0;) {
      const Windows& w = walks[d];
      const std::int64_t t = left % terms(w), held = std::min(w.step, w.kernel - t * w.step);
      left /= terms(w);
      start[d] = t * w.step, size[d] = held, size[n + d] = w.places;
      low[2 * d] = t, high[2 * d] = terms(w) - 1 - t, high[2 * d + 1] = w.step - held;
    }
    const Sym part = transpose(slice(x, std::move(start), std::move(size), Axes(2 * n, 1)), beside);
    sum = sum_of(sum, pad(part, 0, std::move(low), std::move(high)));
  }
  Axes start(n, 0), size, low, high;
  for (std::size_t d = 0; d < n; ++d) {
    const std::int64_t room = operand[d] - walks[d].first;
    size.push_back(std::min<std::int64_t>(together[d], room));
    low.push_back(walks[d].first), high.push_back(room - size.back());
  }
  return pad(slice(reshape(sum, together), std::move(start), std::move(size), Axes(n, 1)), 0, std::move(low), std::move(high));
}

}  // namespace

namespace rules {

void AsStrided::vjp(const Call& c, const Sym& g, Cotangents& to) {
  const Shape shape = c.shape(), operand = c.in(0).shape();
  const std::size_t n = shape.size();
  const Dim count = shape.product();
  if (count == 0) return;
  if (const auto walks = windows_of(operand, c.node)) {
    const Dtype wide = wide_dtype(c.dtype());
    return to.add(0, cast(add_windows(cast(g, wide), *walks, operand), c.dtype()));
  }
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

}  // namespace rules
}  // namespace sinter::transforms
