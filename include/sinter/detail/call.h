// One call of a compiled function: from its types to the core. Nothing here is for users.
//
// `call` depends on a function's signature alone and hands slots (one a parameter) and an outcome to a core that is no template, so a
// further function of a known signature costs little to compile.
#pragma once
#include <functional>
#include <string>

#include "sinter/detail/slots.h"

namespace sinter::detail {

template <class F, class... A>
decltype(auto) invoke(F& f, A&&... a) {  // std::invoke only where it is needed
  if constexpr (std::is_member_pointer_v<F>)
    return std::invoke(f, static_cast<A&&>(a)...);
  else
    return f(static_cast<A&&>(a)...);
}
template <class F>
struct Callable final : Callee {
  static constexpr bool can_copy = std::is_copy_constructible_v<F>;
  // Copies, even where a move would do: the copy shows which arrays F holds by value.
  explicit Callable(F& f, RecordCopies&& copies = {})
    requires can_copy
      : object(std::as_const(f)) {
    held = copies.take();
  }
  explicit Callable(F& f)
    requires(!can_copy)
      : object(std::move(f)) {
    copyable = false;
  }
  // A fresh copy for every run: what a mutable callable does to its captures is not seen by the next.
  template <class R, class... P>
  R run(P... a) {
    if constexpr (can_copy && !std::is_empty_v<F> && std::is_class_v<F>) {
      F fresh(std::as_const(object));
      return detail::invoke(fresh, static_cast<P&&>(a)...);
    } else {
      return detail::invoke(object, static_cast<P&&>(a)...);
    }
  }
  F object;
};

// These two depend on the signature alone: functions of one signature share them.
template <class R, class... P>
R call(Callee& callee, std::span<const void* const> types, Body<R(P...)> f, Parameter<P>&... slots) {
  OutcomeOf<value_of<R>> outcome;
  auto body = [&] { outcome.store(f, slots.pass()...); };
  Slot* all[] = {&slots..., nullptr};
  const Call whole{callee, {all, sizeof...(P)}, types, outcome, Body<void()>(body)};
  if constexpr (!is_result<R>) {
    run_compiled(whole);
    return outcome.take();
  } else {
    try {
      run_compiled(whole);
    } catch (const Failed& failed) {
      return R(failed.thrown);
    }
    if constexpr (std::is_void_v<value_of<R>>)
      return R();
    else
      return outcome.take();
  }
}
template <class R, class... P>
std::string inspect(Inspect what, Callee& callee, std::span<const void* const> types, Body<R(P...)> f, Parameter<P>&... slots) {
  OutcomeOf<value_of<R>> outcome;
  auto body = [&] { outcome.store(f, slots.pass()...); };
  Slot* all[] = {&slots..., nullptr};
  try {
    return inspect_compiled({callee, {all, sizeof...(P)}, types, outcome, Body<void()>(body)}, what);
  } catch (const Failed& failed) {
    std::rethrow_exception(failed.thrown);
  }
}

template <class F, class S>
class CallBase;
// Known signature: an ordinary member function, so arguments convert (2.0 -> Array), braces work, and compile(compile(f)) sees it.
template <class F, class R, class... P>
class CallBase<F, Sig<R, P...>> {
  using Out = std::decay_t<R>;

 public:
  Out operator()(P... args) const {
    if (run_regular(*callee_)) {
      InlineScope scope(callee_);
      return self().template run<Out, P...>(static_cast<P&&>(args)...);
    }
    return with(Parameter<P>(&args)...);
  }
  /// The call's result, or the Error that it throws or returns. Other exceptions pass through.
  Result<value_of<Out>> try_call(P... args) const {
    return attempt([&]() -> Out { return (*this)(static_cast<P&&>(args)...); });
  }
  /// The optimised graph of these arguments' entry, as text. Traces if there is none.
  std::string graph(P... args) const { return text(Inspect::graph, Parameter<P>(&args)...); }
  /// The kernels of these arguments' entry, as text. Traces if there is none.
  std::string kernels(P... args) const { return text(Inspect::kernels, Parameter<P>(&args)...); }

 protected:
  Callable<F>& self() const { return static_cast<Callable<F>&>(*callee_); }
  Out with(Parameter<P>&&... slots) const {
    auto body = [this](P... a) { return self().template run<Out, P...>(static_cast<P&&>(a)...); };
    return call<Out, P...>(*callee_, {}, Body<Out(P...)>(body), slots...);
  }
  std::string text(Inspect what, Parameter<P>&&... slots) const {
    auto body = [this](P... a) { return self().template run<Out, P...>(static_cast<P&&>(a)...); };
    return inspect<Out, P...>(what, *callee_, {}, Body<Out(P...)>(body), slots...);
  }
  std::shared_ptr<Callee> callee_;
};

// Generic: arguments are passed on as const lvalues, so that `auto&` binds const and nothing is written by mistake.
template <bool State, class A, std::size_t I>
using generic_param = std::conditional_t<State && I == 0, std::remove_reference_t<A>&, const std::remove_cvref_t<A>&>;
template <bool State>
struct GenericState {};
template <class F, bool State>
class CallBase<F, GenericState<State>> {
 public:
  template <class... A>
  auto operator()(A&&... args) const {
    return go(std::index_sequence_for<A...>(), args...);
  }
  template <class... A>
  auto try_call(A&&... args) const {
    return attempt([&] { return go(std::index_sequence_for<A...>(), args...); });
  }
  template <class... A>
  std::string graph(A&&... args) const {
    return text(Inspect::graph, std::index_sequence_for<A...>(), args...);
  }
  template <class... A>
  std::string kernels(A&&... args) const {
    return text(Inspect::kernels, std::index_sequence_for<A...>(), args...);
  }

 protected:
  template <class... P>
  struct Types {
    static_assert(std::is_invocable_v<F&, P...>, "sinter: the compiled callable cannot be called with these arguments");
    using Out = std::decay_t<std::invoke_result_t<F&, P...>>;
    static std::span<const void* const> tags() {
      static const void* const all[] = {tag_of<P>()..., nullptr};
      return {all, sizeof...(P)};
    }
  };
  template <std::size_t... I, class... A>
  auto go(std::index_sequence<I...>, A&... args) const {
    using Out = typename Types<generic_param<State, A, I>...>::Out;
    if (run_regular(*callee_)) {
      InlineScope scope(callee_);
      return self().template run<Out, generic_param<State, A, I>...>(static_cast<generic_param<State, A, I>>(args)...);
    }
    return with<Out, generic_param<State, A, I>...>(Parameter<generic_param<State, A, I>>(&args)...);
  }
  template <class Out, class... P>
  Out with(Parameter<P>&&... slots) const {
    auto body = [this](P... a) { return self().template run<Out, P...>(static_cast<P&&>(a)...); };
    return call<Out, P...>(*callee_, Types<P...>::tags(), Body<Out(P...)>(body), slots...);
  }
  template <std::size_t... I, class... A>
  std::string text(Inspect what, std::index_sequence<I...>, A&... args) const {
    return text_with<generic_param<State, A, I>...>(what, Parameter<generic_param<State, A, I>>(&args)...);
  }
  template <class... P>
  std::string text_with(Inspect what, Parameter<P>&&... slots) const {
    using Out = typename Types<P...>::Out;
    auto body = [this](P... a) { return self().template run<Out, P...>(static_cast<P&&>(a)...); };
    return inspect<Out, P...>(what, *callee_, Types<P...>::tags(), Body<Out(P...)>(body), slots...);
  }
  Callable<F>& self() const { return static_cast<Callable<F>&>(*callee_); }
  std::shared_ptr<Callee> callee_;
};
template <class F, bool State>
using call_base = CallBase<F, std::conditional_t<std::same_as<signature_of<F>, Generic>, GenericState<State>, signature_of<F>>>;

// Function pointers: type and address. Callables without data: type. Others: empty, an identity of their own.
template <class F>
std::string identity(const F& f) {
  std::string id;
  auto append = [&id](const void* p, std::size_t n) { id.append(static_cast<const char*>(p), n); };
  if constexpr (std::is_pointer_v<F> || std::is_member_function_pointer_v<F> || std::is_empty_v<F>) {
    const void* tag = tag_of<F>();
    append(&tag, sizeof tag);
    if constexpr (!std::is_empty_v<F>) append(&f, sizeof f);
  }
  return id;
}
template <class F>
bool is_null(const F& f) {
  if constexpr (std::is_pointer_v<F> || std::is_member_function_pointer_v<F>)
    return f == nullptr;
  else if constexpr (!std::is_empty_v<F> && requires {
                       { f == nullptr } -> std::same_as<bool>;
                     })
    return f == nullptr;
  else
    return false;
}

}  // namespace sinter::detail
