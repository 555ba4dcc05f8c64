#include "engine/prepare.h"

#include "backends/cpu/products.h"
#include "passes/decompose.h"
#include "passes/fuse.h"
#include "passes/pass.h"

namespace sinter::engine {

Prepared prepare(const graph::Graph& g) {
  Prepared p;
  p.graph = passes::decompose(g, [](Dtype t) { return backends::has_product(t); });
  p.partition = passes::fuse(p.graph, {});
  return p;
}

Prepared prepare(const graph::Graph& g, const GraphOptions& options) {
  Prepared p;
  p.graph = passes::decompose(g, [](Dtype t) { return backends::has_product(t); });
  passes::Context context;
  context.fast_math = options.fast_math;
  if (options.simplify) p.graph = passes::run_pipeline(p.graph, context);
  passes::FuseOptions fuse;
  fuse.fuse = options.fuse;
  p.partition = passes::fuse(p.graph, fuse);
  return p;
}

std::string explain_groups(const Prepared& p) {
  std::string out;
  for (std::size_t i = 0; i < p.partition.groups.size(); ++i) {
    const graph::Group& group = p.partition.groups[i];
    out += str("  k", i, ":");
    for (graph::Id id : group.members) out += str(" ", ops::info(p.graph[id].op).name);
    out += str("  (", group.members.size(), " operations, ", group.outputs.size(), " stored)\n");
  }
  for (const std::string& reason : p.partition.refused) out += "  not fused: " + reason + "\n";
  return out;
}

}  // namespace sinter::engine
