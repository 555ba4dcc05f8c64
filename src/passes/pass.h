// Pass: a function from graphs to graphs, and the runner that times, verifies, dumps, skips and stops. Layer: passes.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/knobs.h"
#include "graph/graph.h"
#include "ops/product.h"

namespace sinter::passes {

struct Context {
  bool fast_math = false;  // rules that change bits, too
  bool is_part = false;    // the graph is the body of blocks, which holds none itself
  bool plain = true;       // inputs will be row-major
  int threads = 1;         // that will run it, about
  // Whether rows of a library product have the same bits as the product of those rows, which one thread computes.
  std::function<bool(const ops::Product& whole, const ops::Product& part)> rows_keep_bits = [](const auto&, const auto&) { return true; };
  base::Knobs knobs = base::knobs();  // verify, log, dump, dump_dir, skip, stop_after
  struct Run {
    std::string_view pass;
    double ms;
    graph::Id nodes;  // after it
  };
  std::vector<Run> runs;  // what the runner did
  bool relied_on_plain = false;
  std::vector<std::string> reasons;  // what passes did, or did not do, and why: for explain()
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
/// Attention that is written out, products around a softmax, becomes blocks (graph/bodies.h): its scores stay in a cache.
graph::Graph by_blocks(const graph::Graph& g, Context& context);
/// Moves views of elementwise nodes to their operands, so that fusion sees nodes of one shape over views of inputs.
graph::Graph sink_views(const graph::Graph& g, Context& context);
/// Moves reads at other places (take, pad, the parts of concatenate) to the operands of elementwise nodes, so that what is read is computed
/// there and not stored.
graph::Graph sink_reads(const graph::Graph& g, Context& context);
/// Drops nodes that no output needs.
graph::Graph drop_dead(const graph::Graph& g, Context& context);

}  // namespace sinter::passes
