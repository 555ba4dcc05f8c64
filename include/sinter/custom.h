// Rules of one's own for derivatives and batches, and what reverse mode saves: custom_vjp, custom_jvp, custom_vmap, checkpoint.
// See docs/TRANSFORMS.md.
//
// Arguments and results are trees. Rules are traced without data: they may not look at values. They may use arrays that do not depend on
// the arguments.
#pragma once
#include "sinter/detail/bodies.h"
#include "sinter/transforms.h"

namespace sinter {

namespace detail {

template <class F, class Forward, class Back>
class CustomVjp {
 public:
  CustomVjp(F f, Forward forward, Back back) : f_(std::move(f)), forward_(std::move(forward)), back_(std::move(back)) {}
  template <class... A>
  auto operator()(const A&... args) const {
    auto result = apply_to(f_, args...);
    if (!rules_matter()) return result;
    auto residuals = apply_to(forward_, args...).second;
    auto back = [&](std::span<const Array> leaves) {
      auto saved = take_tree(residuals, leaves);
      return tree_flatten(apply_to(back_, std::as_const(saved), take_tree(result, leaves)));
    };
    Leaves outputs = note_vjp(tree_flatten(result), tree_flatten(residuals), flatten_all(args...), LeafFunction(back));
    return tree_unflatten(result, std::span<const Array>(outputs));
  }

 private:
  [[no_unique_address]] mutable F f_;
  [[no_unique_address]] mutable Forward forward_;
  [[no_unique_address]] mutable Back back_;
};

template <class F, class Along>
class CustomJvp {
 public:
  CustomJvp(F f, Along along) : f_(std::move(f)), along_(std::move(along)) {}
  template <class... A>
  auto operator()(const A&... args) const {
    auto result = apply_to(f_, args...);
    if (!rules_matter()) return result;
    auto along = [&](std::span<const Array> leaves) {
      auto primals = take_trees(leaves, args...), tangents = take_trees(leaves, args...);
      return tree_flatten(apply_to(along_, std::as_const(primals), std::as_const(tangents)).second);
    };
    Leaves outputs = note_jvp(tree_flatten(result), flatten_all(args...), LeafFunction(along));
    return tree_unflatten(result, std::span<const Array>(outputs));
  }

 private:
  [[no_unique_address]] mutable F f_;
  [[no_unique_address]] mutable Along along_;
};

template <class F, class Batch>
class CustomVmap {
 public:
  CustomVmap(F f, Batch batched) : f_(std::move(f)), batched_(std::move(batched)) {}
  template <class... A>
  auto operator()(const A&... args) const {
    auto result = apply_to(f_, args...);
    if (!rules_matter()) return result;
    auto batched = [&](std::span<const Array> leaves) {
      auto trees = take_trees(leaves, args...);
      return tree_flatten(std::apply(batched_, std::as_const(trees)));
    };
    Leaves outputs = note_vmap(tree_flatten(result), flatten_all(args...), LeafFunction(batched));
    return tree_unflatten(result, std::span<const Array>(outputs));
  }

 private:
  [[no_unique_address]] mutable F f_;
  [[no_unique_address]] mutable Batch batched_;
};

template <class F>
class Checkpointed {
 public:
  explicit Checkpointed(F f) : f_(std::move(f)) {}
  template <class... A>
  auto operator()(const A&... args) const {
    using R = std::decay_t<decltype(apply_to(f_, args...))>;
    if (!rules_matter()) return R(apply_to(f_, args...));
    std::optional<R> like;
    auto body = [&](std::span<const Array> leaves) {
      auto trees = take_trees(leaves, args...);
      like.emplace(std::apply(f_, std::as_const(trees)));
      return tree_flatten(*like);
    };
    Leaves results = call_checkpoint(flatten_all(args...), LeafFunction(body));
    return R(tree_unflatten(*like, std::span<const Array>(results)));
  }

 private:
  [[no_unique_address]] mutable F f_;
};

}  // namespace detail

/// f, with its own rule for reverse mode. forward(args...) gives std::pair(result, residuals), back(residuals, cotangent) the gradients of
/// the arguments: one tree, or a tuple, of the types of the arguments. The cotangent has the type of the result, zeros for integers.
/// forward must compute f's result; it runs when a derivative may be asked for. jvp, jacfwd and hessian of it throw Error: use custom_jvp
/// there.
template <class F, class Forward, class Back>
auto custom_vjp(F&& f, Forward&& forward, Back&& back) {
  return detail::CustomVjp<std::decay_t<F>, std::decay_t<Forward>, std::decay_t<Back>>(std::forward<F>(f), std::forward<Forward>(forward),
                                                                                       std::forward<Back>(back));
}

/// f, with its own derivative. rule(arguments, tangents), two tuples, gives std::pair(result, its tangent), linear in the tangents. Serves
/// both modes: reverse mode transposes the rule, and throws Error where it multiplies tangents, or takes another function of them.
template <class F, class Rule>
auto custom_jvp(F&& f, Rule&& rule) {
  return detail::CustomJvp<std::decay_t<F>, std::decay_t<Rule>>(std::forward<F>(f), std::forward<Rule>(rule));
}

/// f, with its own form for batches: batched(args...) takes each argument with the batch along axis 0 (repeated, where it is not mapped
/// over) and gives the result with the batch along axis 0. Derivatives are those of f.
template <class F, class Batch>
auto custom_vmap(F&& f, Batch&& batched) {
  return detail::CustomVmap<std::decay_t<F>, std::decay_t<Batch>>(std::forward<F>(f), std::forward<Batch>(batched));
}

/// f, of which reverse mode saves the arguments alone: what f computes on the way is computed again when its gradient is. Takes a third
/// more time and less memory. Under a transform f is traced without data.
template <class F>
auto checkpoint(F&& f) {
  return detail::Checkpointed<std::decay_t<F>>(std::forward<F>(f));
}

}  // namespace sinter
