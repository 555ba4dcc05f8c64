// The rules for what a trace may touch (trace.h), and the recorder that finds arrays held by value. Layer: engine.
#include "engine/trace.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <new>
#include <unordered_map>

#include "base/check.h"
#include "base/fork_mutex.h"
#include "base/symbols.h"
#include "engine/tape.h"
#include "engine/tracing.h"
#include "engine/value.h"

namespace sinter {
namespace engine {
namespace {

thread_local constinit Trace* current = nullptr;

// A trace id is the index of its function's name and a serial number.
constexpr int kSerialBits = 40;
constexpr std::uint32_t kMaxNames = 1u << (64 - kSerialBits);
std::atomic<std::uint64_t> next_serial{1};

struct Names {
  ForkMutex lock{LockRank::Names};
  std::deque<std::string> all{"(unnamed)"};
  std::unordered_map<std::string, std::uint32_t> index;
};
Names& names() {
  static Names* n = new Names;  // never destroyed: arrays may outlive static objects
  return *n;
}
[[maybe_unused]] const auto& made_at_load = names();  // see ForkMutex

bool address_less(const Array& a, const Array& b) { return std::less<>()(a.get(), b.get()); }
bool holds(const std::vector<Array>& sorted, const Array& a) { return std::binary_search(sorted.begin(), sorted.end(), a, address_less); }

std::string traced_by(const Value& v) { return name_at(static_cast<std::uint32_t>(v.trace >> kSerialBits)); }
std::string maker(const Value& v) {
  if (v.op == ops::Op::Input) return str("input ", v.attrs.empty() ? Dim(0) : v.attrs[0]);
  return std::string(ops::info(v.op).name);
}

[[noreturn]] void throw_escaped(const Array& a, const char* what) {
  const Value& v = *a.get();
  throw TraceError(str(what, ": the array (", maker(v), ", ", describe(a), ") escaped from compiled function '", traced_by(v),
                       "'; return it or keep it in a state"));
}

}  // namespace

std::uint32_t intern_name(const std::string& name) {
  Names& n = names();
  std::lock_guard guard(n.lock);
  if (auto it = n.index.find(name); it != n.index.end()) return it->second;
  if (n.all.size() >= kMaxNames) return 0;
  std::uint32_t at = static_cast<std::uint32_t>(n.all.size());
  n.all.push_back(name);
  n.index.emplace(name, at);
  return at;
}
std::string name_at(std::uint32_t index) {
  Names& n = names();
  std::lock_guard guard(n.lock);
  return n.all[index < n.all.size() ? index : 0];
}

std::string describe(const Array& a) {
  if (!a.valid()) return "unset";
  std::string s = name(a.dtype());
  s += '[';
  for (std::size_t i = 0; i < a.shape().size(); ++i) {
    if (i) s += ',';
    s += std::to_string(base::peek(a.shape()[i]));
  }
  return s + ']';
}

Trace::Trace(const detail::Callee& c, std::span<const Array> in, std::span<const bool> state)
    : id(std::uint64_t{c.name} << kSerialBits |
         (next_serial.fetch_add(1, std::memory_order_relaxed) & ((std::uint64_t{1} << kSerialBits) - 1))),
      callee(c),
      inputs(in),
      is_state(state),
      constants(c.constants) {}

void Trace::admit(const Array& a, const char* op) {
  auto at = std::lower_bound(admitted.begin(), admitted.end(), a, address_less);
  if (at != admitted.end() && at->get() == a.get()) return;
  bool held = holds(callee.held, a);
  for (const detail::Callee* c : inlined) held = held || holds(c->held, a);
  if (!held) {
    // An argument that is also reached by reference: the same array, as long as the caller passes it. Its value in the graph is a constant,
    // so the entry holds for this array alone. Without Captures::constant even that could miss a rebinding of the reference: trace anew
    // each time. A state that is reached by reference would not follow its updates: an error.
    bool found = false;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].get() == a.get() && (constants || !is_state[i])) {
        same_as_input.push_back(i);
        found = true;
      }
    if (found && !constants) keep = false;
    if (!found && !constants) {
      const char* how = callee.copyable ? "neither an argument nor held by value"
                                        : "not an argument, and cannot be copied to see which arrays it holds by value";
      throw CaptureError(str(op, ": compiled function '", name_at(callee.name), "' uses an array that is ", how, "; got ", describe(a),
                             "; pass it as an argument, make it state, list it in captured(...), or compile with {.captures = "
                             "Captures::constant}"));
    }
  }
  admitted.insert(at, a);
}

TraceScope::TraceScope(Trace& trace) : outer_(current) { current = &trace; }
TraceScope::~TraceScope() { current = outer_; }
Trace* open_trace() { return current; }

std::uint64_t current_trace() { return current ? current->id : 0; }

void check_operand(const Array& a, const char* op) {
  const Value* v = a.get();
  if (!v) [[unlikely]]
    value_of(a, op);  // throws
  if (v->symbolic) {
    if (!current || v->trace != current->id) throw_escaped(a, op);
  } else if (current && v->trace != current->id) {
    current->admit(a, op);
  }
}

void throw_no_data(const Array& a, const char* what) {
  const Value& v = value_of(a, what);
  if (!current || v.trace != current->id) throw_escaped(a, what);
  if (const OpenTape* t = OpenTape::find(v.tape); t && !t->has_data)
    throw TraceError(str(what, ": the value is not known inside ", t->what, ", which runs its function without data; got an array made by ",
                         maker(v), ", ", describe(a), "; use where, cond or while_loop, or return it"));
  throw TraceError(str(
      what, ": the value is not known while compiled function '", traced_by(v), "' is traced; got a placeholder made by ", maker(v), ", ",
      describe(a), "; return it, show it by debug_print(), keep it in a state, or call disable_compile() to run the function as it is"));
}

Array placeholder(const Array& like, std::size_t slot, std::uint64_t trace) {
  const Value& from = *like.get();
  auto v = std::make_unique<Value>();
  v->op = ops::Op::Input;
  v->attrs = {static_cast<std::int64_t>(slot)};
  v->dtype = from.dtype;
  v->shape = from.shape;
  v->symbolic = true;
  v->trace = trace;
  return Array(v.release());
}

}  // namespace engine

namespace detail {

struct CopyRecorder {
  std::vector<Array> seen;
  bool failed = false;
};
thread_local constinit CopyRecorder* copy_recorder = nullptr;

// Called from a noexcept copy constructor: running out of memory is reported by take().
void record_copy(CopyRecorder* recorder, Value* v) {
  if (!v) return;
  copy_recorder = nullptr;
  try {
    recorder->seen.emplace_back(v);
  } catch (const std::bad_alloc&) {
    recorder->failed = true;
  }
  copy_recorder = recorder;
}

RecordCopies::RecordCopies() : before_(copy_recorder), own_(std::make_unique<CopyRecorder>()) { copy_recorder = own_.get(); }
RecordCopies::~RecordCopies() { copy_recorder = before_; }
std::vector<Array> RecordCopies::take() {
  copy_recorder = before_;
  if (own_->failed) throw OutOfMemory("compile: no memory to note the arrays that the callable holds");
  std::vector<Array> seen = std::move(own_->seen);
  std::sort(seen.begin(), seen.end(), engine::address_less);
  seen.erase(std::unique(seen.begin(), seen.end(), [](const Array& a, const Array& b) { return a.get() == b.get(); }), seen.end());
  return seen;
}

InlineScope::InlineScope(const std::shared_ptr<Callee>& callee) {
  engine::Trace* t = engine::current;
  if (!t) return;
  constants_before_ = t->constants;
  t->constants = t->constants || callee->constants;
  if (std::find(t->inlined.begin(), t->inlined.end(), callee.get()) == t->inlined.end()) {
    t->keep_inlined.push_back(callee);
    t->inlined.push_back(callee.get());
  }
}
InlineScope::~InlineScope() {
  if (engine::current) engine::current->constants = constants_before_;
}

}  // namespace detail
}  // namespace sinter
