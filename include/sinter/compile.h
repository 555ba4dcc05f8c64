// compile(): traces a function once, optimises the trace and runs it from then on. See docs/COMPILE.md.
#pragma once
#include "sinter/detail/call.h"

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
  bool shapeless = false;                // a new shape needs no new trace: docs/COMPILE.md, "Changing shapes"
  bool fast_math = false;                // give up equality with the regular call, bit for bit, for speed
  Dynamic dynamic = Dynamic::automatic;  // automatic: an axis may change from its third size on
  Captures captures = Captures::error;
  bool check_purity = false;        // trace again at every call; throw TraceError if the graph is another one
  std::int64_t max_entries = 1024;  // least recently used entries beyond these are dropped
  std::string name = {};            // in messages; empty: file:line of the compile() call
};

/// Totals of a function's identity; `entries` is the number alive now.
struct Stats {
  std::int64_t calls = 0;   // all of them: compiled, disabled, inlined into another trace
  std::int64_t hits = 0;    // compiled calls that found their entry
  std::int64_t traces = 0;  // runs of the function on placeholders, failed ones too
  std::int64_t entries = 0;
  std::int64_t kernels = 0;            // generated for it, not those found in memory or on disk
  std::int64_t kernels_from_disk = 0;  // kept there by an earlier process, or before clear_cache()
  double trace_ms = 0;                 // in tracing and optimising
  double codegen_ms = 0;               // in code generation
};

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
    std::apply(
        [&](auto*... t) {
          (callee->captured.push_back(std::make_unique<detail::CapturedTreeOf<std::remove_pointer_t<decltype(t)>>>(t)), ...);
        },
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

/// Trees (models, optimizers) that the function reaches by reference; compile() makes them state. They are known by address and must
/// outlive the calls.
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
/// compile(f, options, captured(model, optimizer)): these are state, although f reaches them by reference.
template <Compile F, class... T>
auto compile(F&& f, const CompileOptions& options, detail::Captured<T...> trees,
             std::source_location where = std::source_location::current()) {
  using D = std::decay_t<F>;
  return Compiled<D>(D(std::forward<F>(f)), options, trees, where);
}
template <Compile F, class... T>
auto compile(F&& f, detail::Captured<T...> trees, std::source_location where = std::source_location::current()) {
  return sinter::compile(std::forward<F>(f), CompileOptions{}, trees, where);
}
// `same_as<bool>`: braces do not deduce it, so compile(f, {}) and compile(f, {.shapeless = true}) never see these overloads.
/// compile(f, {.shapeless = shapeless}, trees).
template <Compile F, class... T>
auto compile(F&& f, std::same_as<bool> auto shapeless, detail::Captured<T...> trees,
             std::source_location where = std::source_location::current()) {
  return sinter::compile(std::forward<F>(f), CompileOptions{.shapeless = shapeless}, trees, where);
}
/// compile(f, {.shapeless = shapeless}).
template <Compile F>
auto compile(F&& f, std::same_as<bool> auto shapeless, std::source_location where = std::source_location::current()) {
  return sinter::compile(std::forward<F>(f), CompileOptions{.shapeless = shapeless}, detail::Captured<>{}, where);
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
