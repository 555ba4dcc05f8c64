// Optimizers, schedules of the learning rate, and clipping. See docs/TRAINING.md.
//
// An optimizer is a tree: its learning rate, step counter and moments are arrays, so that a compiled training step takes it as state and is
// never traced again for a new rate. Names and arguments are those of MLX's mlx.optimizers, formulas those of the papers named below.
#pragma once
#include "sinter/nn/module.h"

namespace sinter::optim {

/// The learning rate as a function of the number of updates done. A number converts: a constant rate.
struct SINTER_API Schedule {
  enum class Kind : std::uint8_t { constant, linear, step, exponential, cosine, joined };
  template <class N>
    requires std::is_arithmetic_v<N>
  Schedule(N rate) : numbers{static_cast<double>(rate)} {}
  Schedule() = default;
  /// float32; `step` is an integer array.
  Array operator()(const Array& step) const;

  Kind kind = Kind::constant;
  std::vector<double> numbers;
  std::vector<Schedule> parts;  // of a joined one
  SINTER_FIELDS(kind, numbers, parts)
};
/// From init to end in `steps` updates, then end.
SINTER_API Schedule linear_schedule(double init, double end, std::int64_t steps);
/// init * rate^floor(step / every).
SINTER_API Schedule step_decay(double init, double rate, std::int64_t every);
/// init * rate^step.
SINTER_API Schedule exponential_decay(double init, double rate);
/// From init to end along half a cosine in `steps` updates, then end.
SINTER_API Schedule cosine_decay(double init, std::int64_t steps, double end = 0);
/// Part i from boundaries[i - 1] on, counting its steps from there. Error unless there is a boundary between any two parts, ascending.
SINTER_API Schedule join_schedules(std::vector<Schedule> parts, const std::vector<std::int64_t>& boundaries);
/// Linear from 0 in `steps` updates to where `then` begins, which follows.
SINTER_API Schedule warm_up(std::int64_t steps, const Schedule& then);

/// What optimizers share. Parameters that are not trainable, and those whose gradient is unset, stay as they are, and so do their moments.
class SINTER_API Optimizer {
 public:
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) noexcept = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) noexcept = default;

  /// Makes the moments of a model. Without it the first update makes them, at the price of a second trace of a compiled step.
  template <Tree M>
  void init(const M& model) {
    make_moments(nn::detail::leaves_of(model));
  }
  /// One step along the gradients, which have the model's structure. ShapeError when a gradient does not fit its parameter.
  template <Tree M>
  void update(M& model, const M& gradients) {
    advance(nn::detail::leaves_of(model), nn::detail::leaves_of(gradients));
  }

  Schedule schedule;
  Array learning_rate;                      // float32: of the last update. With a constant schedule it may be set, without a new trace
  Array step{0};                            // int32: updates done
  std::vector<std::vector<Array>> moments;  // of each array of the model; halves have theirs in float32
  SINTER_FIELDS(schedule, learning_rate, step, moments)

 protected:
  explicit Optimizer(const Schedule& rate);
  ~Optimizer() = default;

  // What all parameters of one update share: 0-d, float32.
  struct Shared {
    Array rate, step;         // step: of this update, from 1
    std::vector<Array> more;  // of the optimizer
  };
  virtual std::vector<Array> shared(const Shared& s) const;
  // Of the shape of p, whose dtype is the computing one.
  virtual std::vector<Array> first_moments(const Array& p) const = 0;
  // The parameter after the update; the moments are replaced.
  virtual Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const = 0;

 private:
  void make_moments(const std::vector<nn::detail::Leaf>& model);
  void advance(const std::vector<nn::detail::Leaf>& model, const std::vector<nn::detail::Leaf>& gradients);
};

struct SGDOptions {
  double momentum = 0, weight_decay = 0, dampening = 0;
  bool nesterov = false;
  SINTER_FIELDS(momentum, weight_decay, dampening, nesterov)
};
/// g += weight_decay p; v = momentum v + (1 - dampening) g; p -= rate v, or rate (g + momentum v) with nesterov (Sutskever et al., 2013).
/// v starts at 0.
class SINTER_API SGD final : public Optimizer {
 public:
  explicit SGD(const Schedule& rate = 0.01, const SGDOptions& options = {});
  SGDOptions options;
  SINTER_FIELDS_AND_BASE(Optimizer, options)

 private:
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool bias_correction = true;
  SINTER_FIELDS(beta1, beta2, eps, bias_correction)
};
/// Kingma and Ba, Adam, 2015, algorithm 1. (MLX leaves the bias correction out unless asked for it.)
class SINTER_API Adam final : public Optimizer {
 public:
  explicit Adam(const Schedule& rate = 0.001, const AdamOptions& options = {});
  AdamOptions options;
  SINTER_FIELDS_AND_BASE(Optimizer, options)

 private:
  std::vector<Array> shared(const Shared& s) const override;
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};
/// Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2: p is first multiplied by 1 - rate weight_decay.
class SINTER_API AdamW final : public Optimizer {
 public:
  explicit AdamW(const Schedule& rate = 0.001, double weight_decay = 0.01, const AdamOptions& options = {});
  double weight_decay;
  AdamOptions options;
  SINTER_FIELDS_AND_BASE(Optimizer, weight_decay, options)

 private:
  std::vector<Array> shared(const Shared& s) const override;
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};
/// Kingma and Ba, 2015, algorithm 2, with eps added to the denominator.
class SINTER_API Adamax final : public Optimizer {
 public:
  explicit Adamax(const Schedule& rate = 0.002, const AdamOptions& options = {});
  AdamOptions options;
  SINTER_FIELDS_AND_BASE(Optimizer, options)

 private:
  std::vector<Array> shared(const Shared& s) const override;
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};
/// Duchi, Hazan and Singer, Adaptive Subgradient Methods, 2011: v += g^2; p -= rate g / (sqrt(v) + eps).
class SINTER_API AdaGrad final : public Optimizer {
 public:
  explicit AdaGrad(const Schedule& rate = 0.01, double eps = 1e-8);
  double eps;
  SINTER_FIELDS_AND_BASE(Optimizer, eps)

 private:
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};
/// Zeiler, ADADELTA, 2012, algorithm 1, times the rate.
class SINTER_API AdaDelta final : public Optimizer {
 public:
  explicit AdaDelta(const Schedule& rate = 1.0, double rho = 0.9, double eps = 1e-6);
  double rho, eps;
  SINTER_FIELDS_AND_BASE(Optimizer, rho, eps)

 private:
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};
/// Tieleman and Hinton, Lecture 6.5, 2012: v = alpha v + (1 - alpha) g^2; p -= rate g / (sqrt(v) + eps).
class SINTER_API RMSprop final : public Optimizer {
 public:
  explicit RMSprop(const Schedule& rate = 0.01, double alpha = 0.99, double eps = 1e-8);
  double alpha, eps;
  SINTER_FIELDS_AND_BASE(Optimizer, alpha, eps)

 private:
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};
/// Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, program 1.
class SINTER_API Lion final : public Optimizer {
 public:
  explicit Lion(const Schedule& rate = 0.0001, double beta1 = 0.9, double beta2 = 0.99, double weight_decay = 0);
  double beta1, beta2, weight_decay;
  SINTER_FIELDS_AND_BASE(Optimizer, beta1, beta2, weight_decay)

 private:
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};

struct AdafactorOptions {
  double eps1 = 1e-30, eps2 = 1e-3, clip_threshold = 1, decay_rate = -0.8, beta1 = 0;  // beta1 0: no first moment
  double weight_decay = 0;
  bool scale_parameter = true, relative_step = true, warmup_init = false;
  SINTER_FIELDS(eps1, eps2, clip_threshold, decay_rate, beta1, weight_decay, scale_parameter, relative_step, warmup_init)
};
/// Shazeer and Stern, Adafactor, 2018, algorithms 4 and 5: arrays of two axes or more keep their second moment as rows and columns of the
/// last two. With relative_step the rate is min(1e-2, or 1e-6 step with warmup_init, 1 / sqrt(step)) instead of the schedule's; with
/// scale_parameter it is multiplied by max(eps2, rms(p)).
class SINTER_API Adafactor final : public Optimizer {
 public:
  explicit Adafactor(const AdafactorOptions& options = {}) : Adafactor(0.0, options) {}
  explicit Adafactor(const Schedule& rate, const AdafactorOptions& options);
  AdafactorOptions options;
  SINTER_FIELDS_AND_BASE(Optimizer, options)

 private:
  std::vector<Array> shared(const Shared& s) const override;
  std::vector<Array> first_moments(const Array& p) const override;
  Array next(const Array& p, const Array& g, std::vector<Array>& moments, const Shared& s) const override;
};

namespace detail {
// The arrays' common norm; each is multiplied by min(1, max_norm / norm).
SINTER_API Array clip_norm(const std::vector<nn::detail::Leaf>& gradients, double max_norm);
}  // namespace detail
/// std::pair(the gradients, scaled so that the norm of all of them together is at most max_norm; the norm before). Works in compiled
/// steps. Error unless max_norm is positive.
template <Tree M>
std::pair<M, Array> clip_grad_norm(const M& gradients, double max_norm) {
  M clipped(gradients);
  Array norm = detail::clip_norm(nn::detail::leaves_of(clipped), max_norm);
  return {std::move(clipped), std::move(norm)};
}

}  // namespace sinter::optim
