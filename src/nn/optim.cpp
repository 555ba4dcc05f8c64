// Optimizers. Each is what its paper says, on one parameter; what they share is here too. Layer: nn.
#include "sinter/optim.h"

#include <cmath>

#include "base/check.h"
#include "sinter/functions.h"

namespace sinter::optim {
namespace {

using nn::detail::Leaf;

Dtype computing(Dtype t) { return is_half(t) ? Dtype::float32 : t; }
Array zeros_for(const Array& p) { return zeros(p.shape(), p.dtype()); }

// decay * old + (1 - decay) * now.
Array average(double decay, const Array& old, const Array& now) { return decay * old + (1 - decay) * now; }
// 1 - beta^step, without loss of digits.
Array bias(double beta, const Array& step) { return -expm1(step * std::log(beta)); }

}  // namespace

// ---- what all share
// -----------------------------------------------------------------------------------------------------------------------

Optimizer::Optimizer(const Schedule& rate) : schedule(rate), learning_rate(astype(rate(Array(0)), float32)) {}

std::vector<Array> Optimizer::shared(const Shared&) const { return {}; }

void Optimizer::make_moments(const std::vector<Leaf>& model) {
  moments.resize(model.size());
  for (std::size_t i = 0; i < model.size(); ++i)
    if (moments[i].empty() && model[i].trainable()) moments[i] = first_moments(astype(*model[i].array, computing(model[i].array->dtype())));
}

void Optimizer::advance(const std::vector<Leaf>& model, const std::vector<Leaf>& gradients) {
  if (model.size() != gradients.size())
    throw Error(str("update: the gradients have another structure than the model; got ", gradients.size(), " and ", model.size(),
                    " arrays; pass the gradients of this model"));
  for (std::size_t i = 0; i < model.size(); ++i) {
    const Array& g = *gradients[i].array;
    if (model[i].trainable() && g.valid() && !(g.shape() == model[i].array->shape()))
      throw ShapeError(str("update: a gradient does not fit its parameter; got ", g.shape(), " for ", model[i].name, " ",
                           model[i].array->shape(), "; pass the gradients of this model"));
  }
  moments.resize(model.size());
  if (schedule.kind != Schedule::Kind::constant) learning_rate = schedule(step);
  step = step + 1;
  Shared s{learning_rate, astype(step, float32), {}};
  s.more = shared(s);
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (!model[i].trainable() || !gradients[i].array->valid()) continue;
    Array& p = *model[i].array;
    const Dtype t = p.dtype();
    const Array wide = astype(p, computing(t));
    if (moments[i].empty()) moments[i] = first_moments(wide);
    p = astype(next(wide, astype(*gradients[i].array, wide.dtype()), moments[i], s), t);
  }
}

// ---- SGD
// ----------------------------------------------------------------------------------------------------------------------------------

SGD::SGD(const Schedule& rate, const SGDOptions& o) : Optimizer(rate), options(o) {
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0))
    throw Error(
        str("SGD: nesterov needs momentum and no dampening; got momentum ", o.momentum, " and dampening ", o.dampening, "; set them so"));
}
std::vector<Array> SGD::first_moments(const Array& p) const {
  return options.momentum == 0 ? std::vector<Array>{} : std::vector<Array>{zeros_for(p)};
}
Array SGD::next(const Array& p, const Array& gradient, std::vector<Array>& m, const Shared& s) const {
  const Array g = options.weight_decay == 0 ? gradient : gradient + options.weight_decay * p;
  if (options.momentum == 0) return p - s.rate * g;
  Array& v = m[0];
  v = options.momentum * v + (options.dampening == 0 ? g : (1 - options.dampening) * g);
  return p - s.rate * (options.nesterov ? g + options.momentum * v : v);
}

// ---- the family of Adam
// -------------------------------------------------------------------------------------------------------------------

namespace {

// The rate over the first bias, and 1 / sqrt(the second): m / bias1 / (sqrt(v / bias2) + eps) needs no more divisions of arrays.
std::vector<Array> adam_scalars(const AdamOptions& o, const Array& rate, const Array& step) {
  if (!o.bias_correction) return {rate, Array(1.0)};
  return {rate / bias(o.beta1, step), rsqrt(bias(o.beta2, step))};
}
Array adam_next(const Array& p, const Array& g, std::vector<Array>& moments, const AdamOptions& o, const std::vector<Array>& scalars) {
  Array &m = moments[0], &v = moments[1];
  m = average(o.beta1, m, g);
  v = average(o.beta2, v, square(g));
  return p - scalars[0] * m / (sqrt(v) * scalars[1] + o.eps);
}

}  // namespace

Adam::Adam(const Schedule& rate, const AdamOptions& o) : Optimizer(rate), options(o) {}
std::vector<Array> Adam::shared(const Shared& s) const { return adam_scalars(options, s.rate, s.step); }
std::vector<Array> Adam::first_moments(const Array& p) const { return {zeros_for(p), zeros_for(p)}; }
Array Adam::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  return adam_next(p, g, m, options, s.more);
}

AdamW::AdamW(const Schedule& rate, double weight_decay, const AdamOptions& o) : Optimizer(rate), weight_decay(weight_decay), options(o) {}
std::vector<Array> AdamW::shared(const Shared& s) const {
  std::vector<Array> scalars = adam_scalars(options, s.rate, s.step);
  scalars.push_back(1 - s.rate * weight_decay);
  return scalars;
}
std::vector<Array> AdamW::first_moments(const Array& p) const { return {zeros_for(p), zeros_for(p)}; }
Array AdamW::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  return adam_next(p * s.more[2], g, m, options, s.more);
}

Adamax::Adamax(const Schedule& rate, const AdamOptions& o) : Optimizer(rate), options(o) {}
std::vector<Array> Adamax::shared(const Shared& s) const {
  return {options.bias_correction ? s.rate / bias(options.beta1, s.step) : s.rate};
}
std::vector<Array> Adamax::first_moments(const Array& p) const { return {zeros_for(p), zeros_for(p)}; }
Array Adamax::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  m[0] = average(options.beta1, m[0], g);
  m[1] = maximum(options.beta2 * m[1], abs(g));
  return p - s.more[0] * m[0] / (m[1] + options.eps);
}

// ---- others
// -------------------------------------------------------------------------------------------------------------------------------

AdaGrad::AdaGrad(const Schedule& rate, double eps) : Optimizer(rate), eps(eps) {}
std::vector<Array> AdaGrad::first_moments(const Array& p) const { return {zeros_for(p)}; }
Array AdaGrad::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  m[0] = m[0] + square(g);
  return p - s.rate * g / (sqrt(m[0]) + eps);
}

AdaDelta::AdaDelta(const Schedule& rate, double rho, double eps) : Optimizer(rate), rho(rho), eps(eps) {}
std::vector<Array> AdaDelta::first_moments(const Array& p) const { return {zeros_for(p), zeros_for(p)}; }
Array AdaDelta::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  m[0] = average(rho, m[0], square(g));
  const Array change = sqrt(m[1] + eps) / sqrt(m[0] + eps) * g;
  m[1] = average(rho, m[1], square(change));
  return p - s.rate * change;
}

RMSprop::RMSprop(const Schedule& rate, double alpha, double eps) : Optimizer(rate), alpha(alpha), eps(eps) {}
std::vector<Array> RMSprop::first_moments(const Array& p) const { return {zeros_for(p)}; }
Array RMSprop::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  m[0] = average(alpha, m[0], square(g));
  return p - s.rate * g / (sqrt(m[0]) + eps);
}

Lion::Lion(const Schedule& rate, double beta1, double beta2, double weight_decay)
    : Optimizer(rate), beta1(beta1), beta2(beta2), weight_decay(weight_decay) {}
std::vector<Array> Lion::first_moments(const Array& p) const { return {zeros_for(p)}; }
Array Lion::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  const Array direction = sign(average(beta1, m[0], g));
  m[0] = average(beta2, m[0], g);
  return p - s.rate * (weight_decay == 0 ? direction : direction + weight_decay * p);
}

// ---- Adafactor
// ----------------------------------------------------------------------------------------------------------------------------

Adafactor::Adafactor(const Schedule& rate, const AdafactorOptions& o) : Optimizer(rate), options(o) {}
std::vector<Array> Adafactor::shared(const Shared& s) const {
  Array rate = s.rate;
  if (options.relative_step) rate = minimum(options.warmup_init ? 1e-6 * s.step : Array(1e-2), rsqrt(s.step));
  return {rate, 1 - power(s.step, options.decay_rate)};
}
std::vector<Array> Adafactor::first_moments(const Array& p) const {
  std::vector<Array> m;
  if (p.ndim() >= 2) {
    m.push_back(zeros_for(sum(p, -1)));
    m.push_back(zeros_for(sum(p, -2)));
  } else {
    m.push_back(zeros_for(p));
  }
  if (options.beta1 != 0) m.push_back(zeros_for(p));
  return m;
}
Array Adafactor::next(const Array& p, const Array& g, std::vector<Array>& m, const Shared& s) const {
  auto rms = [](const Array& x) { return sqrt(mean(square(x))); };
  const Array& beta2 = s.more[1];
  auto average_of = [&beta2](const Array& old, const Array& now) { return beta2 * old + (1 - beta2) * now; };
  const Array squares = square(g) + options.eps1;
  Array update;
  if (p.ndim() >= 2) {
    m[0] = average_of(m[0], mean(squares, -1));
    m[1] = average_of(m[1], mean(squares, -2));
    update = g * expand_dims(rsqrt(m[0] / mean(m[0], -1, true)), -1) * expand_dims(rsqrt(m[1]), -2);
  } else {
    m[0] = average_of(m[0], squares);
    update = g * rsqrt(m[0]);
  }
  update = update / maximum(1, rms(update) / options.clip_threshold);
  const Array rate = options.scale_parameter ? s.more[0] * maximum(options.eps2, rms(p)) : s.more[0];
  update = rate * update;
  if (options.beta1 != 0) update = m.back() = average(options.beta1, m.back(), update);
  return (options.weight_decay == 0 ? p : p * (1 - options.weight_decay * rate)) - update;
}

// ---- clipping
// -----------------------------------------------------------------------------------------------------------------------------

Array detail::clip_norm(const std::vector<Leaf>& gradients, double max_norm) {
  if (!(max_norm > 0)) throw Error(str("clip_grad_norm: max_norm is not positive; got ", max_norm, "; use a positive number"));
  Array total;
  for (const Leaf& g : gradients) {
    if (!g.trainable()) continue;
    const Array part = sum(square(astype(*g.array, computing(g.array->dtype()))));
    total = total.valid() ? total + part : part;
  }
  if (!total.valid()) return Array(0.0);
  const Array norm = sqrt(total), factor = where(norm > max_norm, max_norm / norm, 1);
  for (const Leaf& g : gradients)
    if (g.trainable()) *g.array = astype(*g.array * factor, g.array->dtype());
  return norm;
}

}  // namespace sinter::optim
