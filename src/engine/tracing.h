// The trace that is open on a thread: what it may touch, and what it found. Layer: engine.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/compile.h"

namespace sinter::engine {

/// Names of compiled functions are kept for the process's life, once each: an array that escapes from a trace can name its function.
std::uint32_t intern_name(const std::string& name);
std::string name_at(std::uint32_t index);

struct Trace {
  Trace(const detail::Callee& callee, std::span<const Array> inputs, std::span<const bool> is_state);

  const std::uint64_t id;  // holds the name's index, see trace.cpp
  const detail::Callee& callee;
  const std::span<const Array> inputs;   // the caller's arrays
  const std::span<const bool> is_state;  // of each input
  bool constants;                        // Captures::constant, of the function or of one inlined into it
  std::vector<const detail::Callee*> inlined;
  std::vector<std::shared_ptr<detail::Callee>> keep_inlined;
  std::vector<Array> admitted;             // arrays from before the trace that it uses as constants; sorted by address
  std::vector<std::size_t> same_as_input;  // inputs that it also reached by reference: the entry holds for these very arrays only
  bool keep = true;                        // false: the entry serves this call alone
  bool has_batch_rules = false;            // custom_vmap: for the batches that are open now, not for those to come
  std::vector<std::string> notes;          // for explain()
  Array printed;                           // the last of what it shows (debug_print.h)

  /// Lets the trace use an array made before it, or throws CaptureError.
  void admit(const Array& a, const char* op);
};

/// Opens a trace on this thread; what is open already waits.
class TraceScope {
 public:
  explicit TraceScope(Trace& trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Trace* const outer_;
};
Trace* open_trace();

/// A stand-in for `like` in the trace.
Array placeholder(const Array& like, std::size_t slot, std::uint64_t trace);

/// `float32[32,784]`.
std::string describe(const Array& a);

}  // namespace sinter::engine
