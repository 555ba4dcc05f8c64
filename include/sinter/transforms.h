// Function transforms: grad, value_and_grad, vjp, jvp, vmap. See docs/TRANSFORMS.md.
//
// A transform is a callable like the function it is made from, so transforms nest, in each other and with compile(). Under grad, vjp and
// jvp the function may look at values (loops until convergence, printing), unless it is being compiled; under vmap it may not.
#pragma once
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "sinter/compile.h"

namespace sinter {

/// The axis of an argument or result over which vmap maps; none: the same for every element of the batch.
using BatchAxis = std::optional<Axis>;

namespace detail {

// What a function's results are, as a graph over the arrays that the variables stood for; outlives the tape.
struct Recording;

// One application of a transform on this thread: what the function computes from the variables is found again, as a graph.
class SINTER_API Tape {
 public:
  // `what` is the transform's name, for messages; it must outlive the tape.
  explicit Tape(const char* what);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Stand-ins for these arrays, with their data where they have any. Throws DtypeError for integers and bool.
  std::vector<Array> variables(std::span<const Array> arrays);
  // Stand-ins for one element of the batch: without the axis, without data. Throws ShapeError when sizes differ.
  std::vector<Array> elements(std::span<const Array> arrays, std::span<const BatchAxis> axes);
  // Stand-ins for arrays like these, without data.
  std::vector<Array> placeholders(std::span<const Array> arrays);
  // `whole`: what the function made without the variables belongs to the graph, too; else it is an array that the graph uses.
  std::shared_ptr<const Recording> record(std::span<const Array> outputs, bool whole = false);
  // The outputs for the whole batch, along `axes` (one an output).
  std::vector<Array> batch(std::span<const Array> outputs, std::span<const BatchAxis> axes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};
struct Derivatives {
  std::vector<Array> outputs, derivatives;
};
// By variable: of the sum of outputs times cotangents (one an output; unset: zero).
SINTER_API Derivatives backward(const Recording& r, std::span<const Array> cotangents);
// By output: along the tangents (one a variable).
SINTER_API Derivatives forward(const Recording& r, std::span<const Array> tangents);
// 1, for the loss; the other outputs have no cotangent. Throws when the first output is no floating scalar.
SINTER_API std::vector<Array> cotangents_of_loss(std::span<const Array> outputs, const char* what);

template <class F, class... A>
decltype(auto) apply_to(F& f, A&&... a) {
  if constexpr (std::is_member_pointer_v<F>)
    return std::invoke(f, static_cast<A&&>(a)...);
  else
    return f(static_cast<A&&>(a)...);
}

// Argument I. A number that is differentiated by, which is one of N, is an array; everything else stays as it is.
template <std::size_t I, std::size_t... N, class T>
decltype(auto) argument(const T& x) {
  if constexpr (((I == N) || ...) && std::is_floating_point_v<T>)
    return Array(x);
  else
    return static_cast<const T&>(x);
}

// Runs f with variables in the place of arguments N; hands over its result.
template <std::size_t... N>
struct WithVariables {
  template <class F, class... A>
  static auto run(Tape& tape, F& f, const A&... args) {
    static_assert(((N < sizeof...(A)) && ...), "sinter: this transform names an argument that the function does not have");
    auto stand_in = [&]<std::size_t I, class T>(std::integral_constant<std::size_t, I>, const T& arg) -> T {
      if constexpr (((I == N) || ...))
        return tree_unflatten(arg, std::span<const Array>(tape.variables(tree_flatten(arg))));
      else
        return arg;
    };
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::tuple<A...> all{stand_in(std::integral_constant<std::size_t, I>(), args)...};  // braces: left to right
      return apply_to(f, std::as_const(std::get<I>(all))...);
    }(std::index_sequence_for<A...>());
  }
  // The trees of arguments N with these arrays in them: one tree, or a tuple.
  template <class... A>
  static auto trees(std::span<const Array> leaves, const A&... args) {
    auto all = std::tie(args...);
    auto take = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      const auto& arg = std::get<I>(all);
      std::size_t n = tree_flatten(arg).size();
      auto tree = tree_unflatten(arg, leaves.first(n));
      leaves = leaves.subspan(n);
      return tree;
    };
    std::tuple<std::remove_cvref_t<std::tuple_element_t<N, decltype(all)>>...> made{take(std::integral_constant<std::size_t, N>())...};
    if constexpr (sizeof...(N) == 1)
      return std::get<0>(std::move(made));
    else
      return made;
  }
};

// Value: the pair of result and gradient; else the gradient alone.
template <class F, class S, bool Value, std::size_t... N>
class Gradient {
 public:
  explicit Gradient(F f) : f_(std::move(f)) {}
  template <class... A>
  auto operator()(const A&... args) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return run(argument<I, N...>(args)...); }(std::index_sequence_for<A...>());
  }

 private:
  template <class... A>
  auto run(const A&... args) const {
    constexpr const char* what = Value ? "value_and_grad" : "grad";
    Tape tape(what);
    auto result = WithVariables<N...>::run(tape, f_, args...);
    std::vector<Array> outputs = tree_flatten(result);
    Derivatives d = backward(*tape.record(outputs), cotangents_of_loss(outputs, what));
    auto gradient = WithVariables<N...>::trees(d.derivatives, args...);
    if constexpr (Value)
      return std::pair(tree_unflatten(result, std::span<const Array>(d.outputs)), std::move(gradient));
    else
      return gradient;
  }
  [[no_unique_address]] mutable F f_;
};
// A known signature is kept, so that arguments convert and further transforms see it.
template <class F, class R, class... P, bool Value, std::size_t... N>
class Gradient<F, Sig<R, P...>, Value, N...> : Gradient<F, Generic, Value, N...> {
  static_assert(!(is_state<P> || ...), "sinter: a function with state has no gradient of its own: return what it changes beside the loss");
  using Base = Gradient<F, Generic, Value, N...>;

 public:
  using Base::Base;
  auto operator()(const std::remove_cvref_t<P>&... args) const { return Base::operator()(args...); }
};
template <bool Value, class F, std::size_t... N>
auto make_gradient(F&& f) {
  using D = std::decay_t<F>;
  if constexpr (sizeof...(N) == 0)
    return Gradient<D, signature_of<D>, Value, 0>(std::forward<F>(f));
  else
    return Gradient<D, signature_of<D>, Value, N...>(std::forward<F>(f));
}

[[noreturn]] SINTER_API void throw_axes_count(std::size_t axes, std::size_t arguments);

template <class F, class S>
class Batched {
 public:
  Batched(F f, std::vector<BatchAxis> in, BatchAxis out) : f_(std::move(f)), in_(std::move(in)), out_(out) {}
  template <class... A>
  auto operator()(const A&... args) const {
    return run(std::index_sequence_for<A...>(), args...);
  }

 protected:
  template <std::size_t... I, class... A>
  auto run(std::index_sequence<I...>, const A&... args) const {
    if (!in_.empty() && in_.size() != sizeof...(A)) throw_axes_count(in_.size(), sizeof...(A));
    Tape tape("vmap");
    std::vector<Array> leaves;
    std::vector<BatchAxis> axes;
    auto read = [&](std::size_t i, const auto& arg) {
      std::vector<Array> own = tree_flatten(arg);
      axes.resize(axes.size() + own.size(), in_.empty() ? BatchAxis(0) : in_[i]);
      leaves.insert(leaves.end(), own.begin(), own.end());
      return own.size();
    };
    std::array<std::size_t, sizeof...(A)> counts{read(I, args)...};
    std::vector<Array> elements = tape.elements(leaves, axes);
    std::span<const Array> rest(elements);
    auto take = [&](std::size_t i, const auto& arg) {
      auto tree = tree_unflatten(arg, rest.first(counts[i]));
      rest = rest.subspan(counts[i]);
      return tree;
    };
    std::tuple<A...> all{take(I, args)...};
    auto result = apply_to(f_, std::as_const(std::get<I>(all))...);
    std::vector<Array> outputs = tree_flatten(result);
    std::vector<Array> whole = tape.batch(outputs, std::vector<BatchAxis>(outputs.size(), out_));
    return tree_unflatten(result, std::span<const Array>(whole));
  }
  [[no_unique_address]] mutable F f_;
  std::vector<BatchAxis> in_;
  BatchAxis out_;
};
template <class F, class R, class... P>
class Batched<F, Sig<R, P...>> : Batched<F, Generic> {
  static_assert(!(is_state<P> || ...), "sinter: vmap of a function with state: return what it changes instead");

 public:
  using Batched<F, Generic>::Batched;
  auto operator()(const std::remove_cvref_t<P>&... args) const { return this->run(std::index_sequence_for<P...>(), args...); }
};

}  // namespace detail

/// The gradient of a function whose result is, or begins with, a floating scalar: of its first argument, or grad<0, 2>(f) of others (then a
/// tuple). It has the type of the argument: a struct of arrays gives a struct of gradients. The result takes f's arguments. Throws
/// ShapeError when the loss is no scalar, DtypeError for integer arrays.
template <std::size_t... N, Compile F>
auto grad(F&& f) {
  return detail::make_gradient<false, F, N...>(std::forward<F>(f));
}
/// Like grad, but gives std::pair(result of f, gradient), sharing the forward pass.
template <std::size_t... N, Compile F>
auto value_and_grad(F&& f) {
  return detail::make_gradient<true, F, N...>(std::forward<F>(f));
}

/// What vjp gives: call it with a cotangent, of the type of f's result, for the gradients of all arguments (one tree, or a tuple). Of a
/// result that is neither floating nor complex it counts for nothing.
template <class R, class... A>
class Pullback {
 public:
  Pullback(std::shared_ptr<const detail::Recording> recording, std::tuple<A...> args)
      : recording_(std::move(recording)), args_(std::move(args)) {}
  auto operator()(const R& cotangent) const {
    std::vector<Array> leaves = detail::backward(*recording_, tree_flatten(cotangent)).derivatives;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return detail::WithVariables<I...>::trees(leaves, std::get<I>(args_)...);
    }(std::index_sequence_for<A...>());
  }

 private:
  std::shared_ptr<const detail::Recording> recording_;
  std::tuple<A...> args_;
};
/// std::pair(f(args...), a Pullback): products of cotangents with the Jacobian.
template <Compile F, class... A>
auto vjp(F&& f, const A&... args) {
  detail::Tape tape("vjp");
  auto recorded = [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto result = detail::WithVariables<I...>::run(tape, f, args...);
    return std::pair(tape.record(tree_flatten(result)), std::move(result));
  }(std::index_sequence_for<A...>());
  std::vector<Array> none(tree_flatten(recorded.second).size());
  detail::Derivatives d = detail::backward(*recorded.first, none);
  using R = std::remove_cvref_t<decltype(recorded.second)>;
  return std::pair(tree_unflatten(recorded.second, std::span<const Array>(d.outputs)),
                   Pullback<R, A...>(recorded.first, std::tuple<A...>(args...)));
}
/// std::pair(f(arguments...), its change along the tangents), both of the type of f's result: products of the Jacobian with tangents.
template <Compile F, class... A>
auto jvp(F&& f, const std::tuple<A...>& arguments, const std::tuple<A...>& tangents) {
  detail::Tape tape("jvp");
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto result = detail::WithVariables<I...>::run(tape, f, std::get<I>(arguments)...);
    std::vector<Array> along = tree_flatten(tangents);
    detail::Derivatives d = detail::forward(*tape.record(tree_flatten(result)), along);
    return std::pair(tree_unflatten(result, std::span<const Array>(d.outputs)),
                     tree_unflatten(result, std::span<const Array>(d.derivatives)));
  }(std::index_sequence_for<A...>());
}

/// f on each element of a batch at once: arguments are mapped over in_axes (one an argument, none: not mapped; empty: axis 0 of all) and
/// results stacked along out_axis. Throws ShapeError when sizes differ.
template <Compile F>
auto vmap(F&& f, std::vector<BatchAxis> in_axes = {}, BatchAxis out_axis = 0) {
  using D = std::decay_t<F>;
  return detail::Batched<D, detail::signature_of<D>>(std::forward<F>(f), std::move(in_axes), out_axis);
}

namespace detail {

// Rows of the identity, each in the shape of `like`.
SINTER_API Array basis_of(const Array& like);
// (n, A...) -> (A..., B...), where n counts the elements of shape B.
SINTER_API Array columns_last(const Array& jacobian, const Shape& outputs, const Shape& inputs);

template <class F, bool Forward>
class Jacobian {
 public:
  explicit Jacobian(F f) : f_(std::move(f)) {}
  template <class... A>
  Array operator()(const Array& x, const A&... rest) const {
    auto of_x = [&](const Array& v) -> Array { return apply_to(f_, v, rest...); };
    if constexpr (Forward) {
      auto along = [&](const Array& tangent) { return jvp(of_x, std::tuple(x), std::tuple(tangent)).second; };
      Array j = vmap(along)(basis_of(x));
      Shape out(std::vector<Dim>(j.shape().begin() + 1, j.shape().end()));
      return columns_last(j, out, x.shape());
    } else {
      auto [y, pullback] = vjp(of_x, x);
      Shape shape = y.shape();
      for (const Dim& d : x.shape()) shape.push_back(d);
      return vmap(pullback)(basis_of(y)).reshape(shape);
    }
  }

 private:
  [[no_unique_address]] mutable F f_;
};

}  // namespace detail

/// The Jacobian of f's result (one array) with respect to its first argument (one array), of shape result + argument: a row for each
/// element of the result, by reverse mode. Best where results are few.
template <Compile F>
auto jacrev(F&& f) {
  return detail::Jacobian<std::decay_t<F>, false>(std::forward<F>(f));
}
/// The same, a column for each element of the argument, by forward mode. Best where arguments are few.
template <Compile F>
auto jacfwd(F&& f) {
  return detail::Jacobian<std::decay_t<F>, true>(std::forward<F>(f));
}
/// Second derivatives of a scalar function of its first argument (one array), of shape argument + argument.
template <Compile F>
auto hessian(F&& f) {
  return jacfwd(grad(std::forward<F>(f)));
}

}  // namespace sinter
