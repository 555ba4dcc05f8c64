// nn::value_and_grad: the gradient of a loss by a model that the loss may change.
#pragma once
#include "sinter/nn/module.h"
#include "sinter/transforms.h"

namespace sinter::nn {

namespace detail {

// A model under a transform: its trainable arrays are variables until finish().
class SINTER_API TracedModel {
 public:
  // Puts variables into the trainable leaves.
  explicit TracedModel(const std::vector<Leaf>& leaves);
  ~TracedModel();
  TracedModel(const TracedModel&) = delete;
  TracedModel& operator=(const TracedModel&) = delete;
  // After the loss ran: its outputs (the first is the loss) without variables; in `leaves`, what the model now holds; in `gradient`, the
  // leaves of a copy of the model made before: gradients, or unset where there is none.
  std::vector<Array> finish(std::span<const Array> outputs, const std::vector<Leaf>& leaves, const std::vector<Leaf>& gradient);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class F, class S>
class ModelGradient {
 public:
  explicit ModelGradient(F f) : f_(std::move(f)) {}
  template <class M, class... A>
  auto operator()(M& model, const A&... args) const {
    static_assert(!std::is_const_v<M>,
                  "sinter: nn::value_and_grad keeps what the loss changes in the model: pass one that can be written, "
                  "or use sinter::value_and_grad");
    M traced(model), gradient(model);
    TracedModel variables(leaves_of(traced));
    auto result = sinter::detail::apply_to(f_, traced, args...);
    std::vector<Array> outputs = variables.finish(tree_flatten(result), leaves_of(traced), leaves_of(gradient));
    auto value = tree_unflatten(result, std::span<const Array>(outputs));
    model = std::move(traced);
    return std::pair(std::move(value), std::move(gradient));
  }

 private:
  [[no_unique_address]] mutable F f_;
};
// A known signature is kept, so that arguments convert.
template <class F, class R, class M, class... P>
class ModelGradient<F, sinter::detail::Sig<R, M, P...>> : ModelGradient<F, sinter::detail::Generic> {
  static_assert(!(sinter::detail::is_state<P> || ...), "sinter: only the first argument of this loss may be state");
  using Base = ModelGradient<F, sinter::detail::Generic>;

 public:
  using Base::Base;
  auto operator()(std::remove_cvref_t<M>& model, const std::remove_cvref_t<P>&... args) const { return Base::operator()(model, args...); }
};

}  // namespace detail

/// A function like f, whose first argument is a model: it gives std::pair(result of f, gradient), where the result is, or begins with, a
/// floating scalar, and the gradient is a model of the same type with gradients in the place of trainable parameters and unset arrays
/// elsewhere. The model is state: what f changes in it (running statistics) is kept, unless an exception leaves f. Throws what
/// sinter::value_and_grad throws, and Error when the model has nothing to train.
template <Compile F>
auto value_and_grad(F&& f) {
  using D = std::decay_t<F>;
  return detail::ModelGradient<D, sinter::detail::signature_of<D>>(std::forward<F>(f));
}

}  // namespace sinter::nn
