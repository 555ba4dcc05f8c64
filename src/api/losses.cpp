// Losses, each a composition that fuses. Layer: api.
#include "sinter/losses.h"

#include "api/common.h"

namespace sinter {
namespace {

// To its computing dtype.
Array wide(const Array& x) { return engine::cast(x, api::computing(x.dtype())); }

using api::require_real;

Array reduced(const Array& losses, Reduction reduction, Dtype t) {
  return engine::cast(reduction == Reduction::mean ? mean(losses) : reduction == Reduction::sum ? sum(losses) : losses, t);
}

// Operands of one shape, and what their loss is computed and returned in.
struct Pair {
  Array x, y;
  Dtype result;
  Pair(const char* what, const Array& a, const Array& b) {
    require_real(what, a);
    require_real(what, b);
    if (!(a.shape() == b.shape())) throw ShapeError(str(what, ": shapes differ; got ", a.shape(), " and ", b.shape(), "; make them equal"));
    result = api::at_least_float(promote_types(a.dtype(), b.dtype()));
    x = engine::cast(a, api::computing(result));
    y = engine::cast(b, api::computing(result));
  }
};

Array weighted(const char* what, const Array& losses, const std::optional<Array>& weights) {
  if (!weights) return losses;
  require_real(what, *weights);
  const Shape shapes[] = {losses.shape(), weights->shape()};
  if (!(api::broadcast_shapes(what, shapes) == losses.shape())) {
    throw ShapeError(str(what, ": the weights do not broadcast to the losses; got ", weights->shape(), " for ", losses.shape(),
                         "; make their axes equal or 1"));
  }
  return losses * engine::cast(*weights, losses.dtype());
}

Shape without(const Shape& s, int axis) { return api::without_axes(s, {axis}, false); }

void check_classes(const char* what, const Array& x, const Array& classes, int axis) {
  if (!is_integer(classes.dtype())) {
    throw DtypeError(str(what, ": targets are neither classes nor probabilities; got ", classes.dtype(), "; convert with astype first"));
  }
  if (!(classes.shape() == without(x.shape(), axis))) {
    throw ShapeError(str(what, ": the targets' shape does not fit; got ", x.shape(), " and ", classes.shape(),
                         "; give a class for each element off the axis, or probabilities of the first one's shape"));
  }
}

// x at the class along the axis, which goes. A sum over a comparison: it fuses with what is around it, and so does its gradient.
Array at_class(const Array& x, const Array& classes, int axis) {
  const Dim n = x.shape(axis);
  // Compared for each element: in 32 bits where they suffice.
  const bool narrow = size_of(classes.dtype()) < 4 || classes.dtype() == Dtype::int32;
  const Dtype t = narrow && n <= INT32_MAX ? Dtype::int32 : Dtype::int64;
  Array index = engine::cast(classes, t);
  if (is_signed(classes.dtype())) index = where(index < 0, index + n, index);
  Shape places(std::vector<Dim>(x.shape().size(), 1));
  places[static_cast<std::size_t>(axis)] = n;
  const Array hit = expand_dims(clip(index, 0, n - 1), axis) == reshape(arange(n, t), places);
  return sum(where(hit, x, 0), axis);
}

}  // namespace

Array cross_entropy(const Array& logits, const Array& targets, const CrossEntropyOptions& o) {
  constexpr const char* what = "cross_entropy";
  require_real(what, logits);
  require_real(what, targets);
  const int axis = api::axis_of(what, o.axis, logits.shape());
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1))
    throw Error(str(what, ": label_smoothing is out of range; got ", o.label_smoothing, "; use 0 to below 1"));
  const bool probabilities = is_floating(targets.dtype());
  if (probabilities && !(targets.shape() == logits.shape()))
    throw ShapeError(str(what, ": the probabilities' shape differs from the logits'; got ", targets.shape(), " and ", logits.shape(),
                         "; make them equal"));
  if (!probabilities) check_classes(what, logits, targets, axis);
  const Dtype result = api::at_least_float(logits.dtype());
  if (logits.shape(axis) == 0)
    throw ShapeError(str(what, ": there are no classes; got logits of shape ", logits.shape(), "; give at least one"));

  // Of logits less their maximum, so that large ones lose no digits. The maximum cancels: it needs no gradient.
  const Array x = wide(logits), shifted = x - stop_gradient(max(x, axis, true));
  const Array log_total = log(sum(exp(shifted), axis));
  Array losses;
  if (probabilities) {
    const Array p = engine::cast(targets, x.dtype());
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const Array smooth = o.label_smoothing == 0 ? p
                                                : p * (1 - o.label_smoothing) +
                                                      api::scalar(o.label_smoothing, x.dtype()) / api::operand({logits.shape(axis), real});
    losses = sum(smooth * (expand_dims(log_total, axis) - shifted), axis);
  } else {
    const Array score = at_class(shifted, targets, axis);
    losses =
        o.label_smoothing == 0 ? log_total - score : log_total - (1 - o.label_smoothing) * score - o.label_smoothing * mean(shifted, axis);
  }
  losses = weighted(what, losses, o.weights);
  if (!o.ignore_index) return reduced(losses, o.reduction, result);
  if (probabilities)
    throw Error(str(what, ": ignore_index is for classes; got targets of ", targets.dtype(), "; set weights to 0 instead"));
  const Array counts = engine::cast(targets, Dtype::int64) != *o.ignore_index;
  losses = where(counts, losses, 0);
  if (o.reduction != Reduction::mean) return reduced(losses, o.reduction, result);
  return engine::cast(sum(losses) / sum(engine::cast(counts, losses.dtype())), result);
}
Array cross_entropy(const Array& logits, const Array& targets, Reduction reduction) {
  return cross_entropy(logits, targets, CrossEntropyOptions{.reduction = reduction});
}

Array binary_cross_entropy(const Array& inputs, const Array& targets, const std::optional<Array>& weights, bool with_logits,
                           Reduction reduction) {
  const Pair p("binary_cross_entropy", inputs, targets);
  // -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) is softplus(x) - t x.
  const Array losses = with_logits ? softplus(p.x) - p.y * p.x : p.y * minimum(-log(p.x), 100) + (1 - p.y) * minimum(-log1p(-p.x), 100);
  return reduced(weighted("binary_cross_entropy", losses, weights), reduction, p.result);
}

Array nll_loss(const Array& inputs, const Array& targets, Axis axis, Reduction reduction) {
  require_real("nll_loss", inputs);
  require_real("nll_loss", targets);
  const int at = api::axis_of("nll_loss", axis, inputs.shape());
  check_classes("nll_loss", inputs, targets, at);
  return reduced(-at_class(wide(inputs), targets, at), reduction, api::at_least_float(inputs.dtype()));
}

Array kl_div_loss(const Array& inputs, const Array& targets, Axis axis, Reduction reduction) {
  const Pair p("kl_div_loss", inputs, targets);
  return reduced(sum(exp(p.y) * (p.y - p.x), api::axis_of("kl_div_loss", axis, inputs.shape())), reduction, p.result);
}

Array mse_loss(const Array& predictions, const Array& targets, Reduction reduction) {
  const Pair p("mse_loss", predictions, targets);
  return reduced(square(p.x - p.y), reduction, p.result);
}

Array l1_loss(const Array& predictions, const Array& targets, Reduction reduction) {
  const Pair p("l1_loss", predictions, targets);
  return reduced(abs(p.x - p.y), reduction, p.result);
}

Array smooth_l1_loss(const Array& predictions, const Array& targets, double beta, Reduction reduction) {
  const Pair p("smooth_l1_loss", predictions, targets);
  if (!(beta > 0)) throw Error(str("smooth_l1_loss: beta is not positive; got ", beta, "; use l1_loss for 0"));
  const Array d = p.x - p.y, size = abs(d);
  return reduced(where(size < beta, square(d) * (0.5 / beta), size - 0.5 * beta), reduction, p.result);
}

Array huber_loss(const Array& predictions, const Array& targets, double delta, Reduction reduction) {
  const Pair p("huber_loss", predictions, targets);
  if (!(delta > 0)) throw Error(str("huber_loss: delta is not positive; got ", delta, "; use a positive number"));
  const Array d = p.x - p.y, size = abs(d);
  return reduced(where(size <= delta, 0.5 * square(d), delta * (size - 0.5 * delta)), reduction, p.result);
}

}  // namespace sinter
