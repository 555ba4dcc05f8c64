#include "engine/prepare.h"

#include <algorithm>

#include "backends/cpu/products.h"
#include "base/log.h"
#include "passes/decompose.h"
#include "passes/fuse.h"
#include "passes/pass.h"
#include "runtime/pool.h"

namespace sinter::engine {
namespace {

using graph::Id;

graph::Graph decomposed(const graph::Graph& g) {
  return passes::decompose(passes::inline_bodies(g), [](Dtype t) { return backends::has_product(t); });
}

// `is_part`: the body of blocks.
Prepared optimised(const graph::Graph& g, const GraphOptions& options, bool is_part = false) {
  Prepared p;
  p.graph = decomposed(g);
  if (!options.simplify) return p;
  passes::Context context;
  context.fast_math = options.fast_math;
  context.plain = options.plain;
  context.is_part = is_part;
  context.threads = runtime::max_threads();
  context.rows_keep_bits = [&p](const ops::Product& whole, const ops::Product& part) {
    p.measured = true;
    return backends::rows_keep_bits(whole, part);
  };
  p.graph = passes::run_pipeline(p.graph, context);
  p.reasons = std::move(context.reasons);
  p.plain = context.relied_on_plain;
  return p;
}

// Every output in memory of its own, row-major: what a branch or a step gives can be taken as it is, and overwritten by the next step.
graph::Graph own_outputs(graph::Graph g) {
  std::vector<Id> outputs = g.outputs();
  std::vector<Id> seen;
  auto copy = [&](Id id) { return g.add({ops::Op::Copy, {id}, {}, graph::Type(g[id].type)}); };
  for (Id& id : outputs) {
    const ops::OpKind kind = ops::info(g[id].op).kind;
    if (kind == ops::OpKind::View || kind == ops::OpKind::Source || kind == ops::OpKind::Alias) id = copy(id);
    while (std::find(seen.begin(), seen.end(), id) != seen.end()) id = copy(id);  // equal copies are one node: a copy of the copy
    seen.push_back(id);
  }
  g.set_outputs(std::move(outputs));
  return g;
}

// Fuses, and prepares the bodies. Graphs in graphs are as deep as the user's code nests.
Prepared fused(Prepared p, const GraphOptions& options) {
  passes::FuseOptions fuse;
  fuse.fuse = options.fuse;
  p.partition = passes::fuse(p.graph, fuse);
  if (base::logs(3)) base::log(3, str("fusion of ", p.graph.name, ":\n", explain_groups(p)));
  GraphOptions within = options;
  within.plain = true;  // what bodies read is
  for (Id id = 0; id < p.graph.size(); ++id)
    for (const graph::Body& body : p.graph[id].bodies) {
      Prepared b = optimised(*body, within, p.graph[id].op == ops::Op::Blocks);
      b.graph = own_outputs(std::move(b.graph));
      p.bodies[id].push_back(std::make_shared<const Prepared>(fused(std::move(b), within)));
    }
  return p;
}

}  // namespace

Prepared prepare(const graph::Graph& g) {
  Prepared p;
  p.graph = decomposed(g);
  return fused(std::move(p), {});
}
Prepared prepare(const graph::Graph& g, const GraphOptions& options) { return fused(optimised(g, options), options); }

Prepared rebind(const Prepared& p, const base::Symbols& symbols, const base::Symbols::Numbers& numbers) {
  Prepared out{graph::rebind(p.graph, symbols, numbers), graph::rebind(p.partition, symbols, numbers), {}, p.reasons, p.plain, p.measured};
  for (const auto& [id, bodies] : p.bodies)
    for (const auto& body : bodies) out.bodies[id].push_back(std::make_shared<const Prepared>(rebind(*body, symbols, numbers)));
  return out;
}

std::string explain_groups(const Prepared& p) {
  std::string out;
  for (std::size_t i = 0; i < p.partition.groups.size(); ++i) {
    const graph::Group& group = p.partition.groups[i];
    out += str("  k", i, ":");
    for (graph::Id id : group.members) out += str(" ", ops::info(p.graph[id].op).name);
    out += str("  (", group.members.size(), " operations, ", group.outputs.size(), " stored)\n");
  }
  for (const std::string& reason : p.reasons) out += "  " + reason + "\n";
  for (const std::string& reason : p.partition.refused) out += "  not fused: " + reason + "\n";
  for (Id id = 0; id < p.graph.size(); ++id)
    if (auto it = p.bodies.find(id); it != p.bodies.end()) {
      std::string before;  // bodies of other sizes say the same
      for (std::size_t i = 0; i < it->second.size(); ++i) {
        std::string text =
            str("  ", ops::info(p.graph[id].op).name, " %", id, ", ", p.graph[id].bodies[i]->name, ":\n", explain_groups(*it->second[i]));
        if (text != before) out += text;
        before = std::move(text);
      }
    }
  return out;
}

}  // namespace sinter::engine
