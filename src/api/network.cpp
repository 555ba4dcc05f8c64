// Functions of neural networks, each a composition that fuses. Layer: api.
#include <cmath>

#include "api/common.h"

namespace sinter {
namespace {

// The operand of a function along its last axis, in the dtype in which it computes, and the dtype of the result.
struct Rows {
  Array x;
  Dtype result;
  Rows(const char* what, const Array& operand, std::initializer_list<const std::optional<Array>*> factors) {
    const Shape& s = api::shape_of(operand, what);
    result = api::at_least_float(operand.dtype());
    if (s.empty()) throw ShapeError(str(what, ": x is 0-d; got ", s, "; give it an axis"));
    for (const std::optional<Array>* f : factors) {
      if (!*f) continue;
      if (!(api::shape_of(**f, what) == Shape{s.back()})) {
        throw ShapeError(
            str(what, ": weight or bias does not fit the last axis; got ", (*f)->shape(), " for x ", s, "; use shape ", Shape{s.back()}));
      }
      result = promote_types(result, (*f)->dtype());
    }
    if (is_complex(result)) throw DtypeError(str(what, ": does not take complex64; got complex64; take its real() or imag() first"));
    x = engine::cast(operand, api::computing(result));
  }
  Array finish(Array y, const std::optional<Array>& weight, const std::optional<Array>& bias) const {
    if (weight) y = y * engine::cast(*weight, x.dtype());
    if (bias) y = y + engine::cast(*bias, x.dtype());
    return engine::cast(y, result);
  }
};

}  // namespace

Array layer_norm(const Array& operand, const std::optional<Array>& weight, const std::optional<Array>& bias, double eps) {
  const Rows r("layer_norm", operand, {&weight, &bias});
  const Array centred = r.x - mean(r.x, -1, true);
  return r.finish(centred * rsqrt(mean(square(centred), -1, true) + eps), weight, bias);
}

Array rms_norm(const Array& operand, const std::optional<Array>& weight, double eps) {
  const Rows r("rms_norm", operand, {&weight});
  return r.finish(r.x * rsqrt(mean(square(r.x), -1, true) + eps), weight, {});
}

Array rope(const Array& operand, int dims, bool traditional, double base, double scale, const Operand& offset) {
  const Shape& s = api::shape_of(operand, "rope");
  if (s.size() < 2) throw ShapeError(str("rope: x needs a length and features; got ", s, "; give it two axes or more"));
  if (dims <= 0 || dims % 2 != 0 || s.back() < dims)
    throw ShapeError(
        str("rope: the features to turn are no pairs of x's; got dims ", dims, " for x ", s, "; use an even number up to ", s.back()));
  if (!is_floating(operand.dtype())) throw DtypeError(str("rope: x is not floating; got ", operand.dtype(), "; convert with astype first"));
  if (!(base > 0)) throw Error(str("rope: the base is not positive; got ", base, "; use 10000"));
  const Array start = api::to_array(offset, "rope");
  if (start.ndim() > 1 || (start.ndim() == 1 && start.shape(0) != 1 && start.shape(0) != s[0])) {
    throw ShapeError(str("rope: the offset does not fit the first axis; got ", start.shape(), " for x ", s, "; give one, or ", s[0]));
  }
  const Dtype t = api::computing(operand.dtype());
  const int half = dims / 2, axes = static_cast<int>(s.size());
  const Dim length = s[s.size() - 2];

  // Angles (length, half), with axes before them where there is an offset for each element of the first.
  Array positions = expand_dims(arange(length, t), 1);
  Array first = engine::cast(start, t);
  if (first.ndim() == 1) {
    Shape places(std::vector<Dim>(s.size(), 1));
    places[0] = first.shape(0);
    first = reshape(first, places);
  }
  const Array angles = ((positions + first) * scale) * exp(arange(half, t) * (-std::log(base) / half));
  const Array c = cos(angles), sn = sin(angles), x = engine::cast(operand, t);

  auto part = [&](const Dim& from, const Dim& to) { return api::sliced(x, axes - 1, from, to - from); };
  Array turned;
  if (traditional) {
    Shape pairs = s;
    pairs[pairs.size() - 1] = half;
    pairs.push_back(2);
    const Array both = reshape(part(0, dims), pairs);
    const Array a = squeeze(api::sliced(both, axes, 0, 1), -1), b = squeeze(api::sliced(both, axes, 1, 1), -1);
    Shape joined = s;
    joined[joined.size() - 1] = dims;
    turned = reshape(stack({a * c - b * sn, a * sn + b * c}, -1), joined);
  } else {
    const Array a = part(0, half), b = part(half, dims);
    turned = concatenate({a * c - b * sn, a * sn + b * c}, -1);
  }
  if (s.back() > dims) turned = concatenate({turned, part(dims, s.back())}, -1);
  return engine::cast(turned, operand.dtype());
}

namespace {

Array attend(const Array& queries, const Array& keys, const Array& values, double scale, bool causal, const std::optional<Array>& mask) {
  constexpr const char* what = "scaled_dot_product_attention";
  for (const Array* a : {&queries, &keys, &values}) {
    const Shape& s = api::shape_of(*a, what);
    if (s.size() != 4)
      throw ShapeError(str(what, ": takes (batch, heads, length, features); got ", s, "; give queries, keys and values four axes"));
    if (!is_floating(a->dtype())) throw DtypeError(str(what, ": takes floating arrays; got ", a->dtype(), "; convert with astype first"));
  }
  const Shape &q = queries.shape(), &k = keys.shape(), &v = values.shape();
  const Dim batch = q[0], heads = q[1], n = q[2], d = q[3], groups = k[1], m = k[2];
  if (k[0] != batch || v[0] != batch || k[3] != d || v[1] != groups || v[2] != m || groups == 0 || heads % groups != 0) {
    throw ShapeError(str(what, ": queries, keys and values do not fit; got ", q, ", ", k, " and ", v,
                         "; make batches equal, keys' features those of queries, keys and values equal up to the last axis, and heads a "
                         "multiple of theirs"));
  }
  const Dtype t = promote_types(promote_types(queries.dtype(), keys.dtype()), values.dtype());

  // All queries of a group in one product: no key is repeated.
  const Array grouped = reshape(engine::cast(queries, t) * scale, {batch, groups, heads / groups * n, d});
  const Array products = matmul(grouped, swapaxes(engine::cast(keys, t), -1, -2));
  Array scores = reshape(engine::cast(products, api::computing(t)), {batch, heads, n, m});
  const double never = finfo(scores.dtype()).min;
  if (mask) {
    const Shape shapes[] = {api::shape_of(*mask, what), scores.shape()};
    if (!(api::broadcast_shapes(what, shapes) == scores.shape())) {
      throw ShapeError(str(what, ": the mask does not broadcast to the scores; got ", mask->shape(), " for ", scores.shape(),
                           "; make its axes equal or 1"));
    }
    if (mask->dtype() != bool_ && !is_floating(mask->dtype()))
      throw DtypeError(str(what, ": the mask is neither bool nor floating; got ", mask->dtype(), "; convert with astype first"));
    scores = mask->dtype() == bool_ ? where(*mask, scores, never) : scores + engine::cast(*mask, scores.dtype());
  }
  if (causal) scores = where(arange(m) <= expand_dims(arange(m - n, m), 1), scores, never);
  const Array weights = engine::cast(softmax(scores, -1), t);
  return reshape(matmul(reshape(weights, {batch, groups, heads / groups * n, m}), engine::cast(values, t)), {batch, heads, n, v[3]});
}

}  // namespace

Array scaled_dot_product_attention(const Array& queries, const Array& keys, const Array& values, double scale, std::string_view mode,
                                   const std::optional<Array>& mask) {
  if (mode != "" && mode != "causal" && mode != "array") {
    throw Error(str("scaled_dot_product_attention: unknown mask_mode; got \"", mode, "\"; use \"\", \"causal\" or \"array\" with a mask"));
  }
  return attend(queries, keys, values, scale, mode == "causal", mask);
}
Array scaled_dot_product_attention(const Array& queries, const Array& keys, const Array& values, double scale, const Array& mask) {
  return attend(queries, keys, values, scale, false, mask);
}

}  // namespace sinter
