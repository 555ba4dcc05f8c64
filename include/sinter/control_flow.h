// Control flow that compiles, differentiates and batches: cond, while_loop, fori_loop, scan. See docs/TRANSFORMS.md.
//
// Branches and bodies are traced once, without data: they may not look at values. They may use other arrays. A loop's body becomes code
// once, however many steps it runs.
#pragma once
#include "sinter/detail/bodies.h"
#include "sinter/transforms.h"

namespace sinter {

/// yes(args...) where the condition, one bool or number without axes, is true (not 0), else no(args...). Only one of them runs. Both give
/// trees with arrays of the same shapes and dtypes; ShapeError or DtypeError otherwise. Under vmap over conditions both run, and the
/// results are chosen by `where`.
template <class Y, class N, class... A>
auto cond(const Array& condition, Y&& yes, N&& no, const A&... args) {
  using R = std::decay_t<std::invoke_result_t<Y&, const A&...>>;
  std::optional<R> like;
  auto branch = [&](auto& f, bool keep) {
    return [&args..., &f, &like, keep](std::span<const Array> leaves) {
      auto trees = detail::take_trees(leaves, args...);
      auto result = std::apply(f, std::as_const(trees));
      detail::Leaves out = tree_flatten(result);
      if constexpr (std::same_as<R, std::decay_t<decltype(result)>>)
        if (keep) like.emplace(std::move(result));
      return out;
    };
  };
  detail::Leaves arguments = detail::flatten_all(args...);
  auto first = branch(yes, true);
  auto second = branch(no, false);  // of its own: for clang these lambdas have two types
  auto traced_yes = detail::trace_body("cond", arguments, detail::LeafFunction(first), false);
  auto traced_no = detail::trace_body("cond", arguments, detail::LeafFunction(second), false);
  detail::Leaves results = detail::call_cond(condition, arguments, traced_yes, traced_no);
  return tree_unflatten(*like, std::span<const Array>(results));
}

/// While condition(state) is true: state = body(state). The state is a tree; the body gives one with arrays of the same shapes and dtypes,
/// the condition one bool; ShapeError or DtypeError otherwise. Under vmap the loop runs until every example has stopped. It has jvp;
/// reverse mode needs max_steps: then it stops after so many steps, and the time of a call is that of max_steps steps, those after the end
/// without work.
template <class C, class F, Tree S>
S while_loop(C&& condition, F&& body, const S& init, std::int64_t max_steps = -1) {
  auto test = [&](std::span<const Array> leaves) { return detail::Leaves{Array(condition(detail::take_tree(init, leaves)))}; };
  auto step = [&](std::span<const Array> leaves) { return tree_flatten(body(detail::take_tree(init, leaves))); };
  detail::Leaves carries = tree_flatten(init);
  auto traced_test = detail::trace_body("while_loop", carries, detail::LeafFunction(test), true);
  auto traced_step = detail::trace_body("while_loop", carries, detail::LeafFunction(step), true);
  detail::Leaves last = detail::call_while(traced_test, traced_step, carries, max_steps);
  return tree_unflatten(init, std::span<const Array>(last));
}

/// For i = begin, ..., end - 1: state = body(i, state), i an int32 array without axes. With numbers it differentiates in both modes; with
/// arrays the number of steps is known when it runs, and it has jvp alone. Error where a number does not fit int32.
template <class B, class E, class F, Tree S>
S fori_loop(const B& begin, const E& end, F&& body, const S& init) {
  if constexpr (std::is_integral_v<B> && std::is_integral_v<E>) {
    if (!std::in_range<std::int32_t>(+begin) || !std::in_range<std::int32_t>(+end)) {
      std::string text("fori_loop: a bound does not fit int32, the dtype of the index; got ");
      text.append(std::to_string(+begin)).append(" and ").append(std::to_string(+end));
      throw Error(text.append("; use while_loop with an index of int64"));
    }
    auto step = [&](std::span<const Array> leaves) {
      Array i = leaves[0];
      leaves = leaves.subspan(1);
      detail::Leaves out{i + 1}, next = tree_flatten(body(std::as_const(i), detail::take_tree(init, leaves)));
      out.insert(out.end(), next.begin(), next.end());
      return out;
    };
    const auto first = static_cast<std::int64_t>(begin), steps = static_cast<std::int64_t>(end) - first;
    detail::Leaves carries = detail::flatten_all(Array(static_cast<std::int32_t>(first)), init);
    detail::Leaves last = detail::call_scan({"fori_loop", steps < 0 ? 0 : steps, false, 0}, detail::LeafFunction(step), carries, {});
    return tree_unflatten(init, std::span<const Array>(last).subspan(1));
  } else {
    const Array stop(end);
    auto state = while_loop([&](const std::pair<Array, S>& s) { return s.first < stop; },
                            [&](const std::pair<Array, S>& s) { return std::pair<Array, S>(s.first + 1, body(s.first, s.second)); },
                            std::pair<Array, S>(Array(begin), init));
    return std::move(state.second);
  }
}

struct ScanOptions {
  bool reverse = false;  // from the last element to the first; outputs lie where their elements lie
  /// What reverse mode saves: 0: the carry of every step; n: of every n-th step, and the steps between are computed twice on the way back.
  std::int64_t checkpoint_every = 0;
};
/// f(carry, x) -> std::pair(carry, y) for each element x of xs, a tree of arrays, along axis 0, one after the other. Gives the last carry
/// and the y, a tree, stacked along axis 0. Carries keep their shapes and dtypes. Throws ShapeError when the arrays of xs have different
/// lengths or there is none, and ShapeError or DtypeError when a carry changes in a step.
template <class F, Tree S, Tree X>
auto scan(F&& f, const S& init, const X& xs, const ScanOptions& options = {}) {
  using Y = std::decay_t<decltype(f(init, xs).second)>;
  std::optional<Y> like;
  auto step = [&](std::span<const Array> leaves) {
    S carry = detail::take_tree(init, leaves);
    X x = detail::take_tree(xs, leaves);
    auto [next, y] = f(std::as_const(carry), std::as_const(x));
    detail::Leaves out = detail::flatten_all(next, y);
    like.emplace(std::move(y));
    return out;
  };
  detail::Leaves carries = tree_flatten(init);
  detail::Leaves all =
      detail::call_scan({"scan", -1, options.reverse, options.checkpoint_every}, detail::LeafFunction(step), carries, tree_flatten(xs));
  std::span<const Array> leaves(all);
  S last = detail::take_tree(init, leaves);
  return std::pair<S, Y>(std::move(last), tree_unflatten(*like, leaves));
}

}  // namespace sinter
