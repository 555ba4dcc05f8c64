// compile(): traces a function once, optimises the trace and runs it from then on. See docs/COMPILE.md.
//
// Templates here know types; everything else is in src/engine. `detail::call` depends on a function's signature alone and hands slots
// (one a parameter) and an outcome to a core that is no template, so a further function of a known signature costs little to compile.
#pragma once
#include <concepts>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <string>

#include "sinter/tree.h"

namespace sinter {

/// What happens to an array that the function uses and that is neither an argument, nor state, nor held by value in the callable.
enum class Captures : std::uint8_t {
  error,     // CaptureError
  constant,  // it is read when the function is traced, and kept till the next trace
};
enum class Dynamic : std::uint8_t { automatic, never };
enum class CompileMode : std::uint8_t { enabled, disabled, no_simplify, no_fuse };

/// How to compile. Designators must follow the order of the fields.
struct CompileOptions {
  bool shapeless = false;                // accepted; this version traces again for a new shape, with the same results
  bool fast_math = false;                // give up equality with the regular call, bit for bit, for speed
  Dynamic dynamic = Dynamic::automatic;  // accepted; this version never makes an axis symbolic
  Captures captures = Captures::error;
  bool check_purity = false;             // accepted; this version does not compare traces
  std::int64_t max_entries = 1024;       // least recently used entries beyond these are dropped
  std::string name = {};                 // in messages; empty: file:line of the compile() call
};

/// Totals of a function's identity; `entries` is the number alive now.
struct Stats {
  std::int64_t calls = 0;              // all of them: compiled, disabled, inlined into another trace
  std::int64_t hits = 0;               // compiled calls that found their entry
  std::int64_t traces = 0;             // runs of the function on placeholders, failed ones too
  std::int64_t entries = 0;
  std::int64_t kernels = 0;            // generated for it, not those found in memory or on disk
  std::int64_t kernels_from_disk = 0;
  double trace_ms = 0;                 // in tracing and planning
  double codegen_ms = 0;               // in code generation
};

namespace detail {

// ---- the core, in src/engine ------------------------------------------------------------------------------------------------------

class Program;  // the cache of one identity

// Refers to a callable for the length of a call.
template <class>
class Body;
template <class R, class... A>
class Body<R(A...)> {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cv_t<F>, Body>)
  explicit Body(F& f) : object_(&f), call_([](void* o, A&&... a) -> R { return (*static_cast<F*>(o))(static_cast<A&&>(a)...); }) {}
  R operator()(A... a) const { return call_(object_, static_cast<A&&>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A&&...);
};

// One parameter, or one captured tree, during one call. The function sees a copy of the caller's object while it is traced, or (in_place)
// that object itself, which is put back afterwards.
class SINTER_API Slot {
 public:
  virtual ~Slot() = default;
  virtual void walk_user(Walker& w) = 0;
  virtual void make_copy() = 0;                // where the type can be copied
  virtual void walk_traced(Walker& w) = 0;     // what the function sees: the copy, or the caller's object
  virtual void walk_copy(Walker& w) = 0;       // the copy; the caller's object where it cannot be copied
  virtual void drop_copy() noexcept = 0;
  virtual void commit_copy() noexcept = 0;     // state that can be copied: moves the copy into the caller's object

  const void* address = nullptr;  // of the caller's object
  std::size_t bytes = 0;
  const void* type = nullptr;
  bool state = false;
  bool owned = false;     // passed by value: nobody else's, and it dies with the call
  bool plain = false;     // a `const Array&`
  bool in_place = false;
  bool copyable = true;
  const Array* alias = nullptr;  // plain: the part of a state that it refers to, while traced

  // Filled by the core: ranges in the frame.
  std::size_t leaves = 0, leaves_end = 0, targets = 0, targets_end = 0, text = 0, text_end = 0;
};

// What a function returned, kept to be copied for each call.
struct SINTER_API Kept {
  virtual ~Kept() = default;
};
// The result during one call.
class SINTER_API Outcome {
 public:
  virtual void walk(Walker& w) = 0;
  virtual std::unique_ptr<Kept> keep() = 0;      // moves the traced result away
  virtual void copy(const Kept* prototype) = 0;  // makes the result to fill

 protected:
  ~Outcome() = default;
};

struct SINTER_API CapturedTree {
  virtual ~CapturedTree() = default;
  virtual std::unique_ptr<Slot> slot() = 0;
};

// While one is alive, the copies of Arrays that this thread makes are noted: they show which arrays a callable holds by value.
class SINTER_API RecordCopies {
 public:
  RecordCopies();
  ~RecordCopies();
  RecordCopies(const RecordCopies&) = delete;
  RecordCopies& operator=(const RecordCopies&) = delete;
  std::vector<Array> take();

 private:
  CopyRecorder* before_;
  std::unique_ptr<CopyRecorder> own_;
};

// What a Compiled and its copies share.
struct SINTER_API Callee {
  Callee();
  virtual ~Callee();
  Callee(const Callee&) = delete;
  Callee& operator=(const Callee&) = delete;

  std::shared_ptr<Program> program;
  std::vector<std::unique_ptr<CapturedTree>> captured;
  std::vector<Array> held;  // by value in the callable; sorted by address
  bool copyable = true;     // else the arrays held are not known
  bool constants = false;   // Captures::constant
  std::uint32_t name = 0;
};
// Finds or makes the program of an identity; an empty one is an identity of its own.
SINTER_API std::shared_ptr<Callee> own_callee(Callee* callee, std::string identity, const CompileOptions& options, std::source_location where);
// Counts the call; true when the function itself is to run: compile is disabled, or the call is part of a trace.
SINTER_API bool run_regular(const Callee& callee);
// While the function of a compiled function runs regularly inside a trace, that trace may use its arrays.
class SINTER_API InlineScope {
 public:
  explicit InlineScope(const std::shared_ptr<Callee>& callee);
  ~InlineScope();
  InlineScope(const InlineScope&) = delete;
  InlineScope& operator=(const InlineScope&) = delete;

 private:
  bool constants_before_ = false;
};

struct Call {
  Callee& callee;
  std::span<Slot* const> slots;
  std::span<const void* const> types;  // of generic parameters
  Outcome& outcome;
  Body<void()> body;  // runs the function on the locals and stores its result in the outcome
};
SINTER_API void run_compiled(const Call& call);
enum class Inspect : std::uint8_t { graph, kernels };
SINTER_API std::string inspect_compiled(const Call& call, Inspect what);

SINTER_API Stats stats_of(const Callee& callee);
SINTER_API std::string explain_callee(const Callee& callee);
SINTER_API void clear_callee(const Callee& callee);
SINTER_API std::string name_of(const Callee& callee);
SINTER_API std::ostream& print_callee(std::ostream& out, const Callee& callee);
[[noreturn]] SINTER_API void throw_empty_function();

// Writable on purpose: linkers may fold equal read-only objects, which would merge the identities of two types.
template <class T>
inline char type_tag = 0;
template <class T>
const void* tag_of() {
  return &type_tag<T>;
}

// ---- signatures -------------------------------------------------------------------------------------------------------------------

template <class R, class... P>
struct Sig {};
struct Generic {};  // templates and overload sets: known only at the call

template <class M>
struct MemberSig;
#define SINTER_MEMBER(qualifiers, self)                              \
  template <class R, class C, class... P, bool N>                    \
  struct MemberSig<R (C::*)(P...) qualifiers noexcept(N)> {          \
    using call = Sig<R, P...>;         /* of operator() */           \
    using invoke = Sig<R, self, P...>; /* of the member pointer */   \
  };
SINTER_MEMBER(, C&)
SINTER_MEMBER(&, C&)
SINTER_MEMBER(&&, C&&)
SINTER_MEMBER(const, const C&)
SINTER_MEMBER(const&, const C&)
SINTER_MEMBER(const&&, const C&)
#undef SINTER_MEMBER

template <class F>
struct SignatureOf {
  using type = Generic;
};
template <class R, class... P, bool N>
struct SignatureOf<R (*)(P...) noexcept(N)> {
  using type = Sig<R, P...>;
};
template <class F>
  requires std::is_member_function_pointer_v<F>
struct SignatureOf<F> {
  using type = typename MemberSig<F>::invoke;
};
template <class F>
  requires requires { &F::operator(); }
struct SignatureOf<F> {
  using type = typename MemberSig<decltype(&F::operator())>::call;
};
template <class F>
using signature_of = typename SignatureOf<F>::type;

template <class P>
inline constexpr bool is_state = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
template <class S>
inline constexpr bool first_is_state = true;
template <class R>
inline constexpr bool first_is_state<Sig<R>> = false;
template <class R, class P, class... Q>
inline constexpr bool first_is_state<Sig<R, P, Q...>> = is_state<P>;

// What a parameter is kept as while tracing: views own their data.
template <class T>
struct Stored {
  using type = T;
};
template <class E, std::size_t N>
struct Stored<std::span<E, N>> {
  static_assert(std::is_const_v<E>, "sinter: take std::span<const T>: the elements of a span cannot be state; use std::vector<T>& for that");
  using type = std::vector<std::remove_cv_t<E>>;
};
template <>
struct Stored<std::string_view> {
  using type = std::string;
};
template <>
struct Stored<Operand> {
  using type = Array;
};

// ---- one parameter during one call -----------------------------------------------------------------------------------------------

template <class P, bool InPlace = false>
class Parameter final : public Slot {
 public:
  using Bare = std::remove_cvref_t<P>;
  using T = typename Stored<Bare>::type;
  static constexpr bool is_state_parameter = is_state<P>;
  static constexpr bool is_view = !std::same_as<T, Bare>;
  static constexpr bool can_copy = std::is_copy_constructible_v<T>;
  static constexpr bool traced_in_place = InPlace || (is_state_parameter && !can_copy);
  static_assert(is_state_parameter || can_copy, "sinter: an argument that is not state must be copyable");
  static_assert(!is_state_parameter || std::is_nothrow_move_assignable_v<T>,
                "sinter: a state must be nothrow move assignable, so that a call that throws leaves it as it was");
  static_assert(!is_state_parameter || !is_view, "sinter: a view cannot be state");
  using User = std::conditional_t<is_state_parameter, T, const Bare>;

  explicit Parameter(User* user) : user_(user) {
    require_tree<T>();
    address = user;
    bytes = sizeof(Bare);
    type = tag_of<Bare>();
    state = is_state_parameter;
    owned = !std::is_reference_v<P>;
    plain = std::same_as<P, const Array&>;
    in_place = traced_in_place;
    copyable = can_copy;
  }

  void walk_user(Walker& w) override {
    if constexpr (std::same_as<Bare, Operand>) {
      T array = stored();
      walk(array, w);
    } else if constexpr (std::same_as<T, std::string> && is_view) {
      T text(*user_);
      w.text(text);
    } else if constexpr (is_view) {
      w.length(user_->size());
      std::size_t i = 0;
      for (const auto& x : *user_) walk_item(const_cast<std::remove_cvref_t<decltype(x)>&>(x), w, i++);
    } else {
      walk_const(*user_, w);
    }
  }
  void make_copy() override {
    if constexpr (can_copy) copy_.emplace(stored());
  }
  void walk_traced(Walker& w) override {
    if constexpr (traced_in_place) walk(*user_, w);
    else walk(*copy_, w);
  }
  void walk_copy(Walker& w) override {
    if constexpr (can_copy) walk(*copy_, w);
    else walk(*user_, w);
  }
  void drop_copy() noexcept override { copy_.reset(); }
  void commit_copy() noexcept override {
    if constexpr (is_state_parameter && can_copy) *user_ = std::move(*copy_);
  }
  P&& pass() {
    if constexpr (traced_in_place) {
      return *user_;
    } else if constexpr (is_view) {
      return static_cast<P&&>(view_.emplace(*copy_));
    } else {
      if constexpr (std::same_as<P, const Array&>)
        if (alias) return *alias;
      return static_cast<P&&>(*copy_);
    }
  }

 private:
  T stored() const {
    if constexpr (std::same_as<Bare, Operand>) {
      if (user_->array()) return *user_->array();
      const Number& n = user_->number();
      return is_complex(n.dtype()) ? Array(std::complex<float>(static_cast<float>(n.real()), static_cast<float>(n.imag())))
             : n.dtype() == Dtype::bool_ ? Array(n.integer() != 0)
             : is_floating(n.dtype())    ? Array(n.real(), n.dtype())
             : is_signed(n.dtype())      ? Array(static_cast<std::int64_t>(n.integer()), n.dtype())
                                         : Array(n.integer(), n.dtype());
    } else if constexpr (is_view) {
      return T(user_->begin(), user_->end());
    } else {
      return T(*user_);
    }
  }

  User* user_;
  struct Nothing {
    void reset() {}
  };
  std::conditional_t<can_copy, std::optional<T>, Nothing> copy_;
  std::optional<std::conditional_t<is_view, Bare, char>> view_;
};

template <class T>
struct CapturedTreeOf final : CapturedTree {
  explicit CapturedTreeOf(T* t) : tree(t) {}
  std::unique_ptr<Slot> slot() override { return std::make_unique<Parameter<T&, true>>(tree); }
  T* tree;
};
/// Trees that a function reaches by reference: see captured().
template <class... T>
struct Captured {
  std::tuple<T*...> trees;
};

// ---- the result during one call ---------------------------------------------------------------------------------------------------

template <class Out>
class OutcomeOf final : public Outcome {
 public:
  static_assert(std::is_copy_constructible_v<Out>, "sinter: the result of a compiled function must be copyable");
  void walk(Walker& w) override { detail::walk(*value_, w); }
  std::unique_ptr<Kept> keep() override {
    auto kept = std::make_unique<KeptAs>(std::move(*value_));
    value_.reset();
    return kept;
  }
  void copy(const Kept* prototype) override { value_.emplace(static_cast<const KeptAs*>(prototype)->value); }
  template <class F, class... P>
  void store(const F& f, P&&... args) {
    value_.emplace(f(static_cast<P&&>(args)...));
  }
  Out take() { return std::move(*value_); }

 private:
  struct KeptAs final : Kept {
    explicit KeptAs(Out&& v) : value(std::move(v)) {}
    Out value;
  };
  std::optional<Out> value_;
};
template <>
class OutcomeOf<void> final : public Outcome {
 public:
  void walk(Walker&) override {}
  std::unique_ptr<Kept> keep() override { return nullptr; }
  void copy(const Kept*) override {}
  template <class F, class... P>
  void store(const F& f, P&&... args) {
    f(static_cast<P&&>(args)...);
  }
  void take() {}
};

// ---- calls ------------------------------------------------------------------------------------------------------------------------

template <class F, class... A>
decltype(auto) invoke(F& f, A&&... a) {  // std::invoke only where it is needed
  if constexpr (std::is_member_pointer_v<F>) return std::invoke(f, static_cast<A&&>(a)...);
  else return f(static_cast<A&&>(a)...);
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
  OutcomeOf<R> outcome;
  auto body = [&] { outcome.store(f, slots.pass()...); };
  Slot* all[] = {&slots..., nullptr};
  run_compiled({callee, {all, sizeof...(P)}, types, outcome, Body<void()>(body)});
  return outcome.take();
}
template <class R, class... P>
std::string inspect(Inspect what, Callee& callee, std::span<const void* const> types, Body<R(P...)> f, Parameter<P>&... slots) {
  OutcomeOf<R> outcome;
  auto body = [&] { outcome.store(f, slots.pass()...); };
  Slot* all[] = {&slots..., nullptr};
  return inspect_compiled({callee, {all, sizeof...(P)}, types, outcome, Body<void()>(body)}, what);
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
  if constexpr (std::is_pointer_v<F> || std::is_member_function_pointer_v<F>) return f == nullptr;
  else if constexpr (!std::is_empty_v<F> && requires { { f == nullptr } -> std::same_as<bool>; }) return f == nullptr;
  else return false;
}

}  // namespace detail

// ---- concepts ---------------------------------------------------------------------------------------------------------------------

/// F can be called with these trees, and may change its own captures.
template <class F, class... A>
concept CallMut = (Tree<std::remove_cvref_t<A>> && ...) && std::invocable<F&, A...>;
/// The same with a first argument that F may change.
template <class F, class S, class... A>
concept CallMutWithState = Tree<S> && CallMut<F, S&, A...>;
/// compile(f) accepts F: a function, a member function, or a callable object that can be kept.
template <class F>
concept Compile = std::is_object_v<std::decay_t<F>> && std::move_constructible<std::decay_t<F>> &&
                  (std::is_class_v<std::decay_t<F>> || std::is_member_function_pointer_v<std::decay_t<F>> ||
                   (std::is_pointer_v<std::decay_t<F>> && std::is_function_v<std::remove_pointer_t<std::decay_t<F>>>));
/// compile_with_state(f) accepts F: its first parameter is a non-const lvalue reference, or generic.
template <class F>
concept CompileWithState = Compile<F> && detail::first_is_state<detail::signature_of<std::decay_t<F>>>;

// ---- compile ----------------------------------------------------------------------------------------------------------------------

/// A compiled function: call it like the function. Copies share everything. Any number of threads may call it.
template <class F, bool State = false>
class Compiled : public detail::call_base<F, State> {
 public:
  template <class... T>
  Compiled(F f, const CompileOptions& options, const detail::Captured<T...>& trees, std::source_location where) {
    if (detail::is_null(f)) detail::throw_empty_function();
    auto* callee = new detail::Callable<F>(f);
    std::string id = sizeof...(T) == 0 ? detail::identity(f) : std::string();
    this->callee_ = detail::own_callee(callee, std::move(id), options, where);
    std::apply([&](auto*... t) { (callee->captured.push_back(std::make_unique<detail::CapturedTreeOf<std::remove_pointer_t<decltype(t)>>>(t)), ...); },
               trees.trees);
  }
  /// Of the function's identity: shared by every Compiled of the same function and options.
  Stats stats() const { return detail::stats_of(*this->callee_); }
  /// Text about the last miss, the entries, their kernels, what was fused and what not, and why.
  std::string explain() const { return detail::explain_callee(*this->callee_); }
  /// Drops the entries of this identity.
  void clear() const { detail::clear_callee(*this->callee_); }
  /// As in messages.
  std::string name() const { return detail::name_of(*this->callee_); }
  /// `compiled step: 2 entries, 2 traces, 5 calls, 3 hits`.
  friend std::ostream& operator<<(std::ostream& out, const Compiled& c) { return detail::print_callee(out, *c.callee_); }
};

/// Trees (models, optimizers) that the function reaches by reference; compile() makes them state. They are known by address and must outlive
/// the calls.
template <class... T>
detail::Captured<T...> captured(T&... trees) {
  static_assert((!std::is_const_v<T> && ...), "sinter: captured() takes trees that may be written; pass a const one as an argument");
  (detail::require_tree<T>(), ...);
  return {{&trees...}};
}

/// Compiles f: a call traces it once for each signature of its arguments (dtypes, shapes, structure, static values) and runs the optimised
/// trace from then on. A parameter declared as a non-const lvalue reference is state: read before the call, written after it. Throws Error
/// when f is empty.
template <Compile F>
auto compile(F&& f, const CompileOptions& options = {}, std::source_location where = std::source_location::current()) {
  using D = std::decay_t<F>;
  return Compiled<D>(D(std::forward<F>(f)), options, detail::Captured<>{}, where);
}
// `same_as<bool>`: braces do not deduce it, so compile(f, {}) and compile(f, {.shapeless = true}) never see this overload.
/// compile(f, {.shapeless = shapeless}).
template <Compile F>
auto compile(F&& f, std::same_as<bool> auto shapeless, std::source_location where = std::source_location::current()) {
  using D = std::decay_t<F>;
  return Compiled<D>(D(std::forward<F>(f)), {.shapeless = shapeless}, detail::Captured<>{}, where);
}
/// compile(f, captured(model, optimizer)): these are state, although f reaches them by reference.
template <Compile F, class... T>
auto compile(F&& f, detail::Captured<T...> trees, std::source_location where = std::source_location::current()) {
  using D = std::decay_t<F>;
  return Compiled<D>(D(std::forward<F>(f)), CompileOptions{}, trees, where);
}
template <Compile F, class... T>
auto compile(F&& f, const CompileOptions& options, detail::Captured<T...> trees, std::source_location where = std::source_location::current()) {
  using D = std::decay_t<F>;
  return Compiled<D>(D(std::forward<F>(f)), options, trees, where);
}
/// compile(), with the first parameter as state also where f is generic.
template <CompileWithState F>
auto compile_with_state(F&& f, const CompileOptions& options = {}, std::source_location where = std::source_location::current()) {
  using D = std::decay_t<F>;
  return Compiled<D, true>(D(std::forward<F>(f)), options, detail::Captured<>{}, where);
}
template <CompileWithState F>
auto compile_with_state(F&& f, std::same_as<bool> auto shapeless, std::source_location where = std::source_location::current()) {
  using D = std::decay_t<F>;
  return Compiled<D, true>(D(std::forward<F>(f)), {.shapeless = shapeless}, detail::Captured<>{}, where);
}

/// Drops every entry of every compiled function, kernels that nobody runs, and the allocator's idle memory.
SINTER_API void clear_cache();
/// From the next call on, in every thread, also for functions compiled before. `disabled`: a call is the regular call.
SINTER_API void set_compile_mode(CompileMode mode);
SINTER_API CompileMode compile_mode();
/// set_compile_mode(CompileMode::disabled), and CompileMode::enabled.
SINTER_API void disable_compile();
SINTER_API void enable_compile();

}  // namespace sinter
