// Replay files: the graph on which the library failed, as text that graph::parse reads. Layer: engine.
#pragma once
#include "graph/graph.h"
#include "sinter/error.h"

namespace sinter::engine {

/// Writes `g` to $SINTER_DUMP_DIR, else to runtime::cache_directory(), and throws InternalError with `e`'s text and the file's name. Where
/// no file can be written, the text says so.
[[noreturn]] void throw_with_replay(const InternalError& e, const graph::Graph& g);

/// f(); an InternalError in it leaves `g` as a replay file.
template <class F>
auto with_replay(const graph::Graph& g, F&& f) {
  try {
    return f();
  } catch (const InternalError& e) {
    throw_with_replay(e, g);
  }
}

}  // namespace sinter::engine
