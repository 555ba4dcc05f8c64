// Random numbers, as MLX defines them. Layer: api.
#include "sinter/random.h"

#include <cmath>
#include <numbers>

#include "api/common.h"
#include "engine/generator.h"

namespace sinter::random {
namespace {

void check_key(const char* what, const Array& key) {
  const Shape& s = api::shape_of(key, what);
  if (key.dtype() != uint32 || !(s == Shape{2})) {
    throw Error(str(what, ": the key is not a uint32 array of shape (2); got ", key.dtype(), " of shape ", s,
                    "; make one with key(seed) or split"));
  }
}

Array draw(const char* what, const Shape& shape, int width, const std::optional<Array>& key) {
  if (key) check_key(what, *key);
  const Dtype t = width == 1 ? uint8 : width == 2 ? uint16 : uint32;
  api::check_sizes(what, shape, uint64);
  return engine::make(ops::Op::RandomBits, {key ? *key : engine::next_key()}, {width}, t, shape);
}

// In [0, 1): 32 random bits over 2^32 - 1, at most the number below 1.
Array unit(const char* what, const Shape& shape, Dtype t, const std::optional<Array>& key) {
  const double below_one = 1 - finfo(t == float64 ? float32 : t).eps / 2;
  const Array u = draw(what, shape, 4, key) / Array(4294967295.0f);
  return astype(minimum(u, below_one), t);
}

void require_floating(const char* what, Dtype t) {
  if (!is_floating(t)) throw DtypeError(str(what, ": the dtype is not floating; got ", t, "; use float32, float64, float16 or bfloat16"));
}

struct Bounds {
  Array low, high;
};
Bounds bounds(const char* what, const Operand& low, const Operand& high, const Shape& shape, Dtype t) {
  const Array lo = astype(low, t), hi = astype(high, t);
  const Shape shapes[] = {lo.shape(), hi.shape(), shape};
  if (!(api::broadcast_shapes(what, shapes) == shape)) {
    throw ShapeError(str(what, ": the bounds do not broadcast to the shape; got ", lo.shape(), " and ", hi.shape(), " for ", shape,
                         "; make their axes equal or 1"));
  }
  return {lo, hi};
}

// From low to high. Rounding may reach high.
Array scaled(const char* what, const Operand& low, const Operand& high, const Shape& shape, Dtype t, const std::optional<Array>& key) {
  const auto [lo, hi] = bounds(what, low, high, shape, t);
  return (hi - lo) * unit(what, shape, t, key) + lo;
}

}  // namespace

Array key(std::uint64_t seed) { return engine::seed_key(seed); }

Array split(const Array& key, Dim n) {
  check_key("split", key);
  api::check_sizes("split", {n, 2}, uint32);
  return engine::split_key(key, n);
}

void seed(std::uint64_t seed) { engine::generator_state() = engine::seed_key(seed); }

Array bits(const Shape& shape, int width, const std::optional<Array>& key) {
  if (width != 1 && width != 2 && width != 4) throw Error(str("bits: unknown width; got ", width, "; use 1, 2 or 4 bytes"));
  return draw("bits", shape, width, key);
}

Array uniform(const Operand& low, const Operand& high, const Shape& shape, Dtype t, const std::optional<Array>& key) {
  require_floating("uniform", t);
  const auto [lo, hi] = bounds("uniform", low, high, shape, t);
  const Array u = unit("uniform", shape, t, key), width = hi - lo;
  const Array drawn = where(isfinite(width), width * u + lo, lo * (1 - u) + hi * u);
  // Where rounding reaches high: a number one or two below it.
  const Array step = maximum(abs(hi) * api::scalar(0.75 * finfo(t).eps, t), api::scalar(finfo(t).eps * finfo(t).smallest_normal, t));
  return where(logical_and(drawn >= hi, lo < hi), maximum(hi - step, lo), drawn);
}
Array uniform(const Shape& shape, Dtype t, const std::optional<Array>& key) {
  require_floating("uniform", t);
  return unit("uniform", shape, t, key);
}

Array normal(const Shape& shape, Dtype t, const Operand& loc, const Operand& scale, const std::optional<Array>& key) {
  require_floating("normal", t);
  const Array spread = api::scalar(std::numbers::sqrt2, t) * astype(scale, t), center = astype(loc, t);
  const Shape shapes[] = {spread.shape(), center.shape(), shape};
  if (!(api::broadcast_shapes("normal", shapes) == shape)) {
    throw ShapeError(str("normal: loc and scale do not broadcast to the shape; got ", center.shape(), " and ", spread.shape(), " for ",
                         shape, "; make their axes equal or 1"));
  }
  const Array samples = erfinv(scaled("normal", std::nextafter(-1.0f, 0.0f), 1.0f, shape, float32, key));
  return spread * astype(samples, t) + center;
}

Array randint(const Operand& low, const Operand& high, const Shape& shape, Dtype t, const std::optional<Array>& key) {
  if (!is_integer(t) && t != bool_) throw DtypeError(str("randint: the dtype is not an integer; got ", t, "; use uniform for numbers"));
  // Rounded up, a product can reach the bound.
  const Array drawn = floor(scaled("randint", low, high, shape, float32, key));
  return astype(maximum(minimum(astype(drawn, int64), astype(high, int64) - 1), astype(low, int64)), t);
}

Array bernoulli(const Operand& p, const Shape& shape, const std::optional<Array>& key) {
  const Array chance = api::to_array(p, "bernoulli");
  require_floating("bernoulli", chance.dtype());
  const Shape shapes[] = {chance.shape(), shape};
  if (!(api::broadcast_shapes("bernoulli", shapes) == shape)) {
    throw ShapeError(
        str("bernoulli: p does not broadcast to the shape; got ", chance.shape(), " for ", shape, "; make its axes equal or 1"));
  }
  // A little more than 2^32, so that p = 1 is always true.
  const Array above(std::nextafter(4294967296.0f, INFINITY));
  return draw("bernoulli", shape, 4, key) < chance * above;
}
Array bernoulli(const Operand& p) { return bernoulli(p, std::optional<Array>()); }

Array truncated_normal(const Operand& lower, const Operand& upper, const Shape& shape, Dtype t, const std::optional<Array>& key) {
  require_floating("truncated_normal", t);
  const Array root = api::scalar(std::numbers::sqrt2, t), low = astype(lower, t), high = astype(upper, t);
  const Array u = scaled("truncated_normal", erf(low / root), erf(high / root), shape, t, key);
  return clip(root * erfinv(u), low, high);
}

Array gumbel(const Shape& shape, Dtype t, const std::optional<Array>& key) {
  require_floating("gumbel", t);
  return -log(-log(unit("gumbel", shape, t, key)));
}

namespace {

void require_choices(const Shape& s, int axis) {
  if (s[static_cast<std::size_t>(axis)] == 0 && !api::is_empty(api::without_axes(s, {axis}, false)))
    throw ShapeError(str("categorical: there is nothing to choose from; got axis ", axis, " of shape ", s, "; give an axis with elements"));
}

}  // namespace

Array detail::draw_category(const Array& logits, Axis axis, const std::optional<Array>& key) {
  const Shape& s = api::shape_of(logits, "categorical");
  const int at = api::axis_of("categorical", axis, s);
  require_floating("categorical", logits.dtype());
  require_choices(s, at);
  return argmax(logits + gumbel(s, logits.dtype(), key), axis);
}
Array categorical(const Array& logits, Axis axis) { return detail::draw_category(logits, axis, {}); }
Array categorical(const Array& logits, Axis axis, Dim num_samples, const std::optional<Array>& key) {
  const int last = api::axis_of("categorical", axis, api::shape_of(logits, "categorical"));
  require_floating("categorical", logits.dtype());
  require_choices(logits.shape(), last);
  const Array moved = expand_dims(moveaxis(logits, last, -1), -2);  // (others..., 1, choices)
  Shape shape = moved.shape();
  shape[shape.size() - 2] = num_samples;
  api::check_sizes("categorical", shape, uint64);
  return argmax(moved + gumbel(shape, logits.dtype(), key), -1);
}

Array detail::random_order(Dim n, const std::optional<Array>& key) { return argsort(draw("permutation", {n}, 4, key), 0); }
Array permutation(const Array& x, Axis axis, const std::optional<Array>& key) {
  const int along = api::axis_of("permutation", axis, api::shape_of(x, "permutation"));
  return take(x, detail::random_order(x.shape(along), key), along);
}

}  // namespace sinter::random
