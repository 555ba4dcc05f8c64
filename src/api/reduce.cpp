// Reductions, and what is made of them: variance, logsumexp, softmax. Layer: api.
//
// The empty sum is decided here, so that no Reduce node folds an axis without elements.
#include <algorithm>

#include "api/common.h"

namespace sinter {

using api::accumulating;
using api::at_least_float;
using api::computing;
using api::Op;

namespace {

Array reduce(Op op, const Array& x, Dtype t, const std::vector<int>& axes, bool keepdims) {
  Array result = x;
  if (!axes.empty()) {
    ops::Attrs attrs{static_cast<std::int64_t>(t)};
    attrs.insert(attrs.end(), axes.begin(), axes.end());
    result = engine::make(op, {x}, std::move(attrs), t, api::without_axes(x.shape(), axes, false));
  }
  return api::reshaped(result, api::without_axes(x.shape(), axes, keepdims));
}

// A reduction with an identity: what an empty one gives.
Array fold(Op op, const Array& x, Dtype t, const Axes& axes, bool keepdims, const Number& identity) {
  const char* what = ops::info(op).name.data();
  const Shape& s = api::shape_of(x, what);
  const std::vector<int> folded = api::axes_of(what, axes, s);
  if (api::is_empty(s)) return full(api::without_axes(s, folded, keepdims), identity.real(), t);
  return reduce(op, engine::cast(x, t), t, folded, keepdims);
}

// A reduction without one: max, min, argmax, argmin. `t`: of the result.
Array extreme(Op op, const char* what, const Array& x, Dtype t, const Axes& axes, bool keepdims) {
  const Shape& s = api::shape_of(x, what);
  const std::vector<int> folded = api::axes_of(what, axes, s);
  api::require_order(what, x);
  if (api::is_empty(s)) {
    const Shape shape = api::without_axes(s, folded, keepdims);
    if (api::is_empty(shape)) return zeros(shape, t);
    throw ShapeError(str(what, ": there are no elements along the axes; got shape ", s, "; give an array with elements"));
  }
  if (folded.empty() && (op == Op::ArgMax || op == Op::ArgMin)) return zeros(s, t);
  return reduce(op, x, t, folded, keepdims);
}

Dim folded_size(const Shape& s, const std::vector<int>& axes) {
  Dim n = 1;
  for (int a : axes) n *= s[static_cast<std::size_t>(a)];
  return n;
}

// By n - ddof, or 0.
Array divided(const Array& x, const Dim& n, int ddof = 0) {
  const Dim count = ddof == 0 ? n : n - ddof;
  if (is_complex(x.dtype())) return x * api::operand({count, [](std::int64_t c) { return 1 / static_cast<double>(c); }});
  return x / api::operand({count, [](std::int64_t c) { return static_cast<double>(std::max<std::int64_t>(c, 0)); }});
}

// Of some elements, evenly spread along the first folded axis that is long: how far apart, and how many there. All of them where no axis is
// long, and along the others. Functions of the shape alone, as the order of the sums is. a: the folded axes up to this one.
struct Spread {
  std::int64_t step = 1, count;
  explicit Spread(std::span<const std::int64_t> a) : count(a.back()) {
    constexpr std::int64_t kLong = 1024, kFar = 61, kNear = 13;  // no divisors of what data repeats after
    const auto is_long = [](std::int64_t n) { return n >= 2 * kNear; };
    if (!is_long(count) || std::any_of(a.begin(), a.end() - 1, is_long)) return;
    step = count >= kLong ? kFar : kNear;
    count = count >= kLong ? count / kFar / 8 * 8 : count / kNear;  // whole bands of rows
  }
};

// Along the last axes a kernel goes over each row twice, while a cache has it: the mean, then the squares of the distances to it. Along
// others memory would be read twice. There the sums are of the distances to a shift and of their squares (Chan, Golub and LeVeque,
// "Algorithms for computing the sample variance", 1983): the error is that of two passes as long as the shift is as near to the mean as the
// elements are, and grows by at most `step` if all the sample lies elsewhere. The variance does not depend on the shift, so neither do its
// derivatives.
Array variance(const char* what, const Array& operand, const Axes& axes, bool keepdims, int ddof) {
  using Numbers = std::span<const std::int64_t>;
  api::require_real(what, operand);
  const Array x = engine::cast(operand, computing(operand.dtype()));
  const std::vector<int> folded = api::axes_of(what, axes, x.shape());
  const Dim n = folded_size(x.shape(), folded);
  int last = static_cast<int>(x.shape().size()) - 1;  // of the kept axes
  while (last >= 0 && (std::binary_search(folded.begin(), folded.end(), last) || x.shape(last) == 1)) --last;
  if (api::is_empty(x.shape()) || folded.empty() || folded[0] >= last) {
    const Array center = divided(sum(x, folded, true), n);
    return divided(sum(square(x - center), folded, keepdims), n, ddof);
  }
  Shape start(std::vector<Dim>(x.shape().size(), 0)), step(std::vector<Dim>(x.shape().size(), 1)), size = x.shape(), before;
  for (int axis : folded) {
    const auto at = static_cast<std::size_t>(axis);
    before.push_back(x.shape(axis));
    if (axis > last) break;
    const std::span of(before.begin(), before.end());
    step[at] = base::apply("step", [](Numbers a) { return Spread(a).step; }, of, 1);
    size[at] = base::apply("spread", [](Numbers a) { return Spread(a).count; }, of, 0);
  }
  const Number share{folded_size(size, folded), [](std::int64_t c) { return 1 / static_cast<double>(c); }};
  const Array some = api::sliced(stop_gradient(x), start, size, step);
  const Array distance = sum(some, folded, true) * api::operand(share) - x;
  const Array total = sum(distance, folded, keepdims), squares = sum(square(distance), folded, keepdims);
  const Array spread = squares - total * divided(total, n);
  return divided(where(spread < 0, spread - stop_gradient(spread), spread), n, ddof);  // rounding is no reason for another derivative
}

// Where x is 0, sqrt is not asked, for its slope there is infinite: the derivative is 0.
Array smooth_sqrt(const Array& x) {
  const Array zero = equal(x, 0);
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

}  // namespace

Array sum(const Array& x, const Axes& axes, bool keepdims) {
  return fold(Op::Sum, x, accumulating(engine::operand_of(x, "sum").dtype), axes, keepdims, 0);
}
Array prod(const Array& x, const Axes& axes, bool keepdims) {
  return fold(Op::Prod, x, accumulating(engine::operand_of(x, "prod").dtype), axes, keepdims, 1);
}
Array all(const Array& x, const Axes& axes, bool keepdims) { return fold(Op::All, x, Dtype::bool_, axes, keepdims, 1); }
Array any(const Array& x, const Axes& axes, bool keepdims) { return fold(Op::Any, x, Dtype::bool_, axes, keepdims, 0); }
Array max(const Array& x, const Axes& axes, bool keepdims) {
  return extreme(Op::Max, "max", x, engine::operand_of(x, "max").dtype, axes, keepdims);
}
Array min(const Array& x, const Axes& axes, bool keepdims) {
  return extreme(Op::Min, "min", x, engine::operand_of(x, "min").dtype, axes, keepdims);
}
Array argmax(const Array& x, std::optional<Axis> axis, bool keepdims) {
  return extreme(Op::ArgMax, "argmax", x, Dtype::uint32, axis ? Axes(*axis) : Axes(), keepdims);
}
Array argmin(const Array& x, std::optional<Axis> axis, bool keepdims) {
  return extreme(Op::ArgMin, "argmin", x, Dtype::uint32, axis ? Axes(*axis) : Axes(), keepdims);
}

Array mean(const Array& operand, const Axes& axes, bool keepdims) {
  const Shape& s = api::shape_of(operand, "mean");
  const std::vector<int> folded = api::axes_of("mean", axes, s);
  const Dtype t = operand.dtype();
  const Array total = sum(engine::cast(operand, computing(t)), folded, keepdims);
  return engine::cast(divided(total, folded_size(s, folded)), at_least_float(t));
}

Array var(const Array& x, const Axes& axes, bool keepdims, int ddof) {
  return astype(variance("var", x, axes, keepdims, ddof), at_least_float(x.dtype()));
}
Array std(const Array& x, const Axes& axes, bool keepdims, int ddof) {
  return astype(smooth_sqrt(variance("std", x, axes, keepdims, ddof)), at_least_float(x.dtype()));
}

namespace {

// The operand in its computing dtype, and its maximum over the axes, which cancels: it needs no gradient.
struct Shifted {
  Array x, top;
  std::vector<int> axes;
  Shifted(const char* what, const Array& operand, const Axes& a) {
    api::require_real(what, operand);
    x = engine::cast(operand, computing(operand.dtype()));
    axes = api::axes_of(what, a, x.shape());
    top = stop_gradient(extreme(Op::Max, what, x, x.dtype(), axes, true));
  }
};

}  // namespace

Array norm(const Array& operand, const Axes& axes, bool keepdims) {
  const Array x = engine::cast(operand, computing(engine::operand_of(operand, "norm").dtype));
  return engine::cast(smooth_sqrt(sum(square(x), axes, keepdims)), at_least_float(operand.dtype()));
}

Array logsumexp(const Array& operand, const Axes& axes, bool keepdims) {
  const Shifted s("logsumexp", operand, axes);
  const Array infinite = isinf(s.top), top = where(infinite, 0, s.top);
  const Array result = where(infinite, s.top, log(sum(exp(s.x - top), s.axes, true)) + top);
  return engine::cast(api::reshaped(result, api::without_axes(s.x.shape(), s.axes, keepdims)), at_least_float(operand.dtype()));
}

Array softmax(const Array& operand, const Axes& axes) {
  api::require_real("softmax", operand);
  if (api::is_empty(operand.shape())) return zeros(operand.shape(), at_least_float(operand.dtype()));
  const Shifted s("softmax", operand, axes);
  const Array e = exp(s.x - s.top);
  return engine::cast(e / sum(e, s.axes, true), at_least_float(operand.dtype()));
}

Array log_softmax(const Array& operand, const Axes& axes) {
  api::require_real("log_softmax", operand);
  if (api::is_empty(operand.shape())) return zeros(operand.shape(), at_least_float(operand.dtype()));
  const Shifted s("log_softmax", operand, axes);
  const Array d = s.x - s.top;
  return engine::cast(d - log(sum(exp(d), s.axes, true)), at_least_float(operand.dtype()));
}

}  // namespace sinter
