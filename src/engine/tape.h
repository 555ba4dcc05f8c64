// OpenTape: a function transform at work on this thread. Layer: engine.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/value.h"

namespace sinter::engine {

struct Trace;

/// Values that depend on the variables of a tape carry its id, the newest one where there are several; while it is open they keep their
/// operands when they are evaluated.
class OpenTape {
 public:
  explicit OpenTape(const char* what);
  ~OpenTape();
  OpenTape(const OpenTape&) = delete;
  OpenTape& operator=(const OpenTape&) = delete;
  /// The open tape of this id on this thread, or null.
  static OpenTape* find(std::uint64_t id);
  /// An evaluated value that has kept its operands: it drops them when the tape closes.
  void keep(Array evaluated) { evaluated_.push_back(std::move(evaluated)); }

  const std::uint64_t id;
  const char* const what;  // the transform's name
  bool has_data = true;    // of its variables
  bool closed = false;     // the function has run
  Dim batch = -1;          // of vmap
  Array first;             // a variable, if there is one
  Array printed;           // the last of what the function shows (debug_print.h)
  Trace* const within;     // the trace that was open before
  OpenTape* outer() const { return outer_; }

 private:
  OpenTape* outer_;
  std::vector<Array> evaluated_;
};
/// The innermost one at work on this thread, or null.
OpenTape* innermost_tape();

}  // namespace sinter::engine

namespace sinter::detail {

/// What a function's results are, as a graph. Inputs 0 to variables - 1 are the variables; then come other arrays that it uses.
struct Recording {
  const char* what;
  std::size_t variables = 0;
  graph::Graph graph;
  std::vector<Array> bindings;  // of the inputs
  std::vector<graph::Id> outputs;
};

}  // namespace sinter::detail
