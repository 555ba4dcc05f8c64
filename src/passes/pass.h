// Pass: a function from graphs to graphs, and the runner that times, verifies, dumps, skips and stops. Layer: passes.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/knobs.h"
#include "graph/graph.h"

namespace sinter::passes {

struct Context {
  bool fast_math = false;             // rules that change bits, too
  base::Knobs knobs = base::knobs();  // verify, log, dump, dump_dir, skip, stop_after
  struct Run {
    std::string_view pass;
    double ms;
    graph::Id nodes;  // after it
  };
  std::vector<Run> runs;  // what the runner did
};

struct Pass {
  std::string_view name;
  graph::Graph (*run)(const graph::Graph& g, Context& context);
};

/// Every pass, in the order in which they run.
std::span<const Pass> pipeline();
/// By name. Throws Error.
const Pass& find_pass(std::string_view name);

/// Runs passes one after the other.
graph::Graph run(std::span<const Pass> passes, graph::Graph g, Context& context);
/// The whole pipeline.
inline graph::Graph run_pipeline(const graph::Graph& g, Context& context) { return run(pipeline(), g, context); }

/// Before all passes, also in regular evaluation: what checkpoints compute in their place, and no custom rules.
graph::Graph inline_bodies(const graph::Graph& g);
/// Operations on constants alone, where the result has few elements, become constants. Not reductions and products: their order of
/// rounding is the kernels'.
graph::Graph fold(const graph::Graph& g, Context& context);
/// Applies simplify_rules.def, drops what changes nothing (views, casts), composes views of views, orders commutative operands.
graph::Graph simplify(const graph::Graph& g, Context& context);
/// Moves views of elementwise nodes to their operands, so that fusion sees nodes of one shape over views of inputs.
graph::Graph sink_views(const graph::Graph& g, Context& context);
/// Moves reads at other places (take, pad, the parts of concatenate) to the operands of elementwise nodes, so that what is read is computed
/// there and not stored.
graph::Graph sink_reads(const graph::Graph& g, Context& context);
/// Drops nodes that no output needs.
graph::Graph drop_dead(const graph::Graph& g, Context& context);

}  // namespace sinter::passes
