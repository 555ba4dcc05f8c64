// CompiledGraph: what a trace becomes. The optimised graph, and for each layout of the inputs a plan: flat steps over buffers.
// Layer: engine.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/symbols.h"
#include "engine/kernel_store.h"
#include "graph/graph.h"
#include "sinter/array.h"

namespace sinter::engine {

/// Work on constants alone is done while tracing, and its result kept, up to this size of it.
inline constexpr std::int64_t kMaxFoldedBytes = std::int64_t{1} << 20;

struct GraphOptions {
  std::string name;  // of the compiled function, for texts
  bool simplify = true;
  bool fuse = true;
  bool fast_math = false;
  bool plain = true;  // for row-major inputs
};

class CompiledGraph {
 public:
  virtual ~CompiledGraph() = default;
  /// One output array per traced output. Inputs may be lazy and of any layout. `owned[i]` is the number of references to input i that
  /// the caller knows of and gives up (0: not to be overwritten); if there are no others, its memory may hold an output. Throws before
  /// any input is overwritten.
  virtual std::vector<Array> run(std::span<const Array> inputs, std::span<const int> owned) = 0;
  /// The same as lazy values, operation by operation, for a transform to see. Inputs may be placeholders.
  virtual std::vector<Array> replay(std::span<const Array> inputs) const = 0;
  virtual KernelCost cost() const = 0;                                 // of all plans so far
  virtual std::string traced_text() const = 0;                         // the graph before passes
  virtual std::span<const Array> constants() const = 0;                // too large to be nodes
  virtual std::string graph_text() const = 0;                          // optimised
  virtual std::string kernel_text(std::span<const Array> inputs) = 0;  // of the plan for these inputs
  virtual std::string explain() const = 0;                             // kernels; what was fused, and what not and why
};

/// What the outputs of a trace are. Sizes that change are expressions of `symbols`; null: none does.
class GraphTemplate {
 public:
  virtual ~GraphTemplate() = default;
  /// For the sizes of the trace (none given), or for others. Null where an array would be larger than memory can be.
  virtual std::unique_ptr<CompiledGraph> instantiate(std::span<const std::int64_t> sizes) = 0;
  /// Whether the sizes agree with guards. The symbols grow while graphs are instantiated: this waits for it.
  virtual bool hold(const base::Guards& guards, std::span<const std::int64_t> sizes) const = 0;
};

/// Captures what `outputs` need of the current trace's values; `placeholders` become the graph's inputs, in order; other ready values
/// become constants.
std::unique_ptr<GraphTemplate> capture_graph(std::span<const Array> placeholders, std::span<const Array> outputs,
                                             const GraphOptions& options, std::shared_ptr<base::Symbols> symbols);

}  // namespace sinter::engine
