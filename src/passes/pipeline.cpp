#include <chrono>
#include <fstream>

#include "base/log.h"
#include "graph/interpret.h"
#include "passes/pass.h"

namespace sinter::passes {
namespace {

constexpr Pass kPipeline[] = {
    {"fold", fold},
    {"simplify", simplify},
    {"by_blocks", by_blocks},
    {"sink_views", sink_views},
    {"clean", simplify},  // what views hid
    {"sink_reads", sink_reads},
    {"drop_dead", drop_dead},
};

// `NAME.NN-PASS.txt` in the dump directory. A dump is for people: one that cannot be written is no failure.
void dump(const Context& context, const graph::Graph& g, std::size_t number, std::string_view pass) {
  std::string name = g.name;
  for (char& c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) c = '_';
  }
  std::ofstream(
      str(context.knobs.dump_dir.empty() ? "." : context.knobs.dump_dir, "/", name, ".", number / 10, number % 10, "-", pass, ".txt"))
      << graph::print(g);
}

// Values agree on sample inputs. Graphs with much data are left alone: the interpreter is slow.
void compare(const graph::Graph& before, const graph::Graph& after, std::string_view pass) {
  std::int64_t elements = 0;
  for (graph::Id id = 0; id < before.size(); ++id) elements += before[id].type.shape.product();
  if (elements > 1 << 18) return;
  const std::vector<graph::Tensor> inputs = graph::sample_inputs(before, 1);
  const std::string difference = graph::difference(graph::interpret(before, inputs), graph::interpret(after, inputs));
  check(difference.empty(), str("pass ", pass, " changed a value: ", difference).c_str());
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

const Pass& find_pass(std::string_view name) {
  for (const Pass& p : kPipeline) {
    if (p.name == name) return p;
  }
  throw Error(str("passes: there is no such pass; got '", name, "'; see pipeline.cpp"));
}

graph::Graph run(std::span<const Pass> passes, graph::Graph g, Context& context) {
  const base::Knobs& knobs = context.knobs;
  std::size_t number = 0;
  if (!knobs.dump.empty()) dump(context, g, number, "captured");
  for (const Pass& p : passes) {
    ++number;
    if (base::list_has(knobs.skip, p.name)) continue;
    const auto start = std::chrono::steady_clock::now();
    graph::Graph after = p.run(g, context);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    context.runs.push_back({p.name, ms, after.size()});
    if (base::logs(2)) base::log(2, str("pass ", p.name, " of ", after.name, ": ", ms, " ms, ", after.size(), " nodes"));
    if (knobs.verify >= 1) graph::verify(after);
    if (knobs.verify >= 2 && !context.fast_math) compare(g, after, p.name);
    if (base::list_has(knobs.dump, p.name) && !(after == g)) dump(context, after, number, p.name);
    g = std::move(after);
    if (p.name == knobs.stop_after) break;
  }
  return g;
}

graph::Graph drop_dead(const graph::Graph& g, Context&) {
  return graph::rewrite(g, [](graph::Graph&, const graph::Node&) { return graph::kKeep; });
}

}  // namespace sinter::passes
