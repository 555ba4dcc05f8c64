// The interface of the core in src/engine: what a compiled function is made of when its types are forgotten. Nothing here is for users.
#pragma once
#include <concepts>
#include <iosfwd>
#include <memory>
#include <source_location>
#include <string>

#include "sinter/tree.h"

namespace sinter {

struct CompileOptions;
struct Stats;

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
  virtual void make_copy() = 0;             // where the type can be copied
  virtual void walk_traced(Walker& w) = 0;  // what the function sees: the copy, or the caller's object
  virtual void walk_copy(Walker& w) = 0;    // the copy; the caller's object where it cannot be copied
  virtual void drop_copy() noexcept = 0;
  virtual void commit_copy() noexcept = 0;  // state that can be copied: moves the copy into the caller's object

  const void* address = nullptr;  // of the caller's object
  std::size_t bytes = 0;
  const void* type = nullptr;
  bool state = false;
  bool owned = false;  // passed by value: nobody else's, and it dies with the call
  bool plain = false;  // a `const Array&`
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
SINTER_API std::shared_ptr<Callee> own_callee(Callee* callee, std::string identity, const CompileOptions& options,
                                              std::source_location where);
// True when the function itself is to run: compile is disabled, or the call is part of a trace. Then the call is counted.
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

}  // namespace detail
}  // namespace sinter
