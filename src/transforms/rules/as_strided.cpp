// AsStrided: elements may be shown several times; their cotangents add up in the row-major operand. Layer: transforms.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/symbols.h"
#include "transforms/rules.h"

namespace sinter::transforms {
namespace {

using Numbers = std::span<const std::int64_t>;

// How the result walks one axis of the operand: as places of windows, some step apart, each of a kernel of neighbours. The two are axes of
// the result; one that has a single element is none. An element lies in at most `terms` windows.
struct Walk {
  std::optional<std::size_t> place_axis, kernel_axis;
  bool even = false;  // both go on by one element, so either may be the places
  std::int64_t terms = 1;
};
constexpr std::int64_t kMostTerms = 32;   // of a sum that is written out
constexpr std::int64_t kMostFixed = 128;  // the same, where fewer would have to be as many as a size that changes

// Numbers that say whether a view shows windows: the operand's sizes, the result's and its strides, the offset, whether the result's sizes
// change, both ranks.
std::vector<Dim> numbers_of(const Shape& operand, const Node& n) {
  std::vector<Dim> all(operand.begin(), operand.end());
  all.insert(all.end(), n.attrs.begin(), n.attrs.end());
  for (const Dim& size : n.type.shape) all.push_back(int{base::changes(size)});
  all.push_back(operand.size()), all.push_back(n.type.shape.size());
  return all;
}
struct View {
  Numbers operand, shape, strides, changes;
  std::int64_t offset;
  explicit View(Numbers n) {
    const auto axes = static_cast<std::size_t>(n.back()), rank = static_cast<std::size_t>(n[n.size() - 2]);
    operand = n.first(rank), shape = n.subspan(rank, axes), strides = n.subspan(rank + axes, axes);
    offset = n[rank + 2 * axes], changes = n.subspan(rank + 2 * axes + 1, axes);
  }
};

// The walk of each axis of the operand, if the result's axes are such walks, and if no element has more terms. Of axes that both go on by
// one element the longer one is the places; or, if `fixed`, that of a size that changes. Defined for all numbers.
std::optional<std::vector<Walk>> walks_of(const View& v, bool fixed, std::int64_t most) {
  const std::size_t rank = v.operand.size();
  std::vector<std::int64_t> strides(rank, 1), places(rank, 1), steps(rank, 1), kernels(rank, 1);
  std::int64_t count = 1, offset = v.offset;
  if (offset < 0) return {};
  for (std::size_t a = rank; a-- > 0;) {
    strides[a] = count;
    if (v.operand[a] < 1 || __builtin_mul_overflow(count, v.operand[a], &count)) return {};
  }
  std::vector<Walk> walks(rank);
  for (std::size_t d = 0; d < v.shape.size(); ++d) {
    const std::int64_t size = v.shape[d], stride = v.strides[d];
    if (size == 1) continue;
    if (size < 1) return {};
    std::size_t a = 0;
    while (a < rank && (v.operand[a] == 1 || strides[a] > stride)) ++a;
    if (a == rank || stride % strides[a] != 0) return {};
    Walk& w = walks[a];
    const std::int64_t step = stride / strides[a];
    if (!w.place_axis) {
      places[a] = size, steps[a] = step, w.place_axis = d;
      continue;
    }
    if (w.kernel_axis) return {};
    kernels[a] = size, w.kernel_axis = d;
    std::int64_t inner = step;
    w.even = step == steps[a];
    const auto length = [&](std::size_t axis) { return std::pair(fixed ? v.changes[axis] : 0, v.shape[axis]); };
    if (w.even ? length(d) > length(*w.place_axis) : step > steps[a])
      std::swap(places[a], kernels[a]), std::swap(w.place_axis, w.kernel_axis), std::swap(steps[a], inner);
    if (inner != 1) return {};
  }
  std::int64_t all = 1;
  for (std::size_t a = 0; a < rank; ++a) {
    const std::int64_t first = offset / strides[a], last = v.operand[a] - kernels[a];
    offset %= strides[a];
    if (last < first || (last - first) / steps[a] < places[a] - 1) return {};
    walks[a].terms = (kernels[a] - 1) / steps[a] + 1;
    if (walks[a].terms > most || (all *= walks[a].terms) > most) return {};
  }
  return walks;
}

// Of the operand's axis that the last number says, the walk as a number; behind the last axis, 1. 0 where the view shows no windows.
std::int64_t pack(Numbers n) {
  const View v(n.first(n.size() - 1));
  auto walks = walks_of(v, false, kMostTerms);
  if (!walks) return 0;
  if (auto other = walks_of(v, true, kMostFixed)) walks = std::move(other);
  const auto a = static_cast<std::size_t>(n.back()), axes = v.shape.size();
  if (a == walks->size()) return 1;
  const Walk& w = (*walks)[a];
  const std::size_t place = w.place_axis ? *w.place_axis : axes, kernel = w.kernel_axis ? *w.kernel_axis : axes;
  return (static_cast<std::int64_t>((place * (axes + 1) + kernel) * 2 + w.even)) * (kMostFixed + 1) + w.terms;
}
Walk unpack(std::int64_t number, std::size_t axes) {
  Walk w;
  w.terms = number % (kMostFixed + 1);
  auto rest = static_cast<std::size_t>(number / (kMostFixed + 1));
  w.even = rest % 2 != 0, rest /= 2;
  if (rest % (axes + 1) != axes) w.kernel_axis = rest % (axes + 1);
  if (rest / (axes + 1) != axes) w.place_axis = rest / (axes + 1);
  return w;
}

// The walks; where sizes change, a trace relies on them, and on nothing else.
std::optional<std::vector<Walk>> windows_of(const Shape& operand, const Node& n) {
  std::vector<Dim> numbers = numbers_of(operand, n);
  const std::size_t axes = n.type.shape.size();
  auto ask = [&](std::size_t a) -> std::int64_t {
    numbers.push_back(a);
    const Dim answer = base::apply("windows", pack, numbers, 0, operand.size() + axes);
    numbers.pop_back();
    return answer;
  };
  if (ask(operand.size()) == 0) return {};
  std::vector<Walk> walks;
  for (std::size_t a = 0; a < operand.size(); ++a) walks.push_back(unpack(ask(a), axes));
  return walks;
}

// A walk and its sizes.
struct Windows : Walk {
  Dim first, places = 1, step = 1, kernel = 1;
};
// x / unit: a number where it is one for all sizes.
Dim quotient(const Dim& x, const Dim& unit) {
  const Dim n = base::peek(x) / base::peek(unit);
  return base::same(unit * n, x) ? n : x / unit;
}
std::vector<Windows> sizes_of(const std::vector<Walk>& walks, const Shape& operand, const Node& n) {
  const std::size_t rank = n.type.shape.size();
  std::vector<Windows> all(walks.size());
  std::vector<Dim> strides(walks.size(), 1);
  for (std::size_t a = walks.size(); a-- > 1;) strides[a - 1] = strides[a] * operand[a];
  Dim offset = n.attrs[2 * rank];
  for (std::size_t a = 0; a < walks.size(); ++a) {
    Windows& w = all[a];
    static_cast<Walk&>(w) = walks[a];
    w.first = quotient(offset, strides[a]);
    offset -= w.first * strides[a];
    if (w.place_axis) w.places = n.type.shape[*w.place_axis], w.step = quotient(n.attrs[rank + *w.place_axis], strides[a]);
    if (w.kernel_axis) w.kernel = n.type.shape[*w.kernel_axis];
  }
  return all;
}

// -0, in both parts: what leaves even -0 as it is when it is added.
Sym nothing(const Sym& x) {
  constexpr std::int64_t kBoth = std::int64_t{1} << 31 | std::numeric_limits<std::int64_t>::min();
  return is_complex(x.dtype()) ? Sym{x.graph, graph::constant(*x.graph, x.dtype(), kBoth)} : literal(x, x.dtype(), -0.0);
}

// The cotangent of the operand. With steps of s, an element lies in window p as its element t * s + r, in window p - 1 as its element
// (t + 1) * s + r, ...: for each t, what the windows hold there, [t * s, t * s + s), lies side by side, and the sum over t is one of arrays
// that are shifted by t places. With even steps it is in the order of the result's axis that comes first, and amid what adds nothing: so
// its bits do not tell which of the two was taken for the places.
Sym add_windows(const Sym& g, const std::vector<Windows>& walks, const Shape& operand) {
  const std::size_t n = walks.size();
  // The elements of a window come first, so that those of all windows at one t lie in long rows.
  Axes order, places, beside;
  Shape apart, together;
  std::vector<char> walked(g.rank());
  for (const Windows& w : walks) {
    if (w.kernel_axis) order.push_back(*w.kernel_axis), walked[*w.kernel_axis] = 1;
    if (w.place_axis) places.push_back(*w.place_axis), walked[*w.place_axis] = 1;
    apart.push_back(w.kernel);
    together.push_back((w.places + w.terms - 1) * w.step);
  }
  order.insert(order.end(), places.begin(), places.end());
  for (std::size_t d = 0; d < walked.size(); ++d)
    if (!walked[d]) order.push_back(d);
  std::int64_t shifts = 1;
  for (std::size_t d = 0; d < n; ++d) {
    apart.push_back(walks[d].places);
    beside.push_back(n + d), beside.push_back(d);
    shifts *= walks[d].terms;
  }
  const bool any_even = std::any_of(walks.begin(), walks.end(), [](const Windows& w) { return w.even; });
  const Sym x = reshape(transpose(g, order), apart);
  Sym sum;
  for (std::int64_t shift = 0; shift < shifts; ++shift) {
    Axes start(2 * n, 0), size(2 * n), low(2 * n, 0), high(2 * n, 0), low_even = low, high_even = high;
    std::int64_t left = shift;
    for (std::size_t d = n; d-- > 0;) {
      const Windows& w = walks[d];
      const std::int64_t at = left % w.terms, t = w.even && *w.place_axis < *w.kernel_axis ? w.terms - 1 - at : at;
      const Dim held = t + 1 < w.terms ? w.step : w.kernel - t * w.step;
      left /= w.terms;
      start[d] = t * w.step, size[d] = held, size[n + d] = w.places;
      (w.even ? low_even : low)[2 * d] = t, (w.even ? high_even : high)[2 * d] = w.terms - 1 - t;
      high[2 * d + 1] = w.step - held;
    }
    const Sym part = transpose(slice(x, std::move(start), std::move(size), Axes(2 * n, 1)), beside);
    const Sym apart = any_even ? pad(part, nothing(part), std::move(low_even), std::move(high_even)) : part;
    sum = sum_of(sum, pad(apart, 0, std::move(low), std::move(high)));
  }
  Axes start(n, 0), size, low, high;
  for (std::size_t d = 0; d < n; ++d) {
    const Windows& w = walks[d];
    const Dim room = operand[d] - w.first;
    const bool full = w.kernel % w.step == 0;  // then the windows fill what lies together
    size.push_back(full ? together[d] : base::apply("least", [](Numbers two) { return std::min(two[0], two[1]); }, {together[d], room}, 0));
    low.push_back(w.first), high.push_back(room - size.back());
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
    return to.add(0, cast(add_windows(cast(g, wide), sizes_of(*walks, operand, c.node), operand), c.dtype()));
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
