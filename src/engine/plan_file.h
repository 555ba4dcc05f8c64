// A plan as bytes on disk, and what it is found by: the first call of a process then needs no passes and no lowering. Layer: engine.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/compiled_graph.h"
#include "engine/plan.h"

namespace sinter::engine {

/// All that the plan of a captured graph for row-major inputs depends on, as bytes: the build, the processor, the number of threads,
/// options, knobs, and the graph. None where plans are not kept: sizes change, or a knob wants to see what passes do.
std::optional<std::string> plan_key(const graph::Graph& captured, const GraphOptions& options);

/// The plan as bytes, kernels as such and not their code. Empty: it has a step that numbers alone do not make again (a branch, a loop,
/// blocks, a library call that is no product).
std::string plan_bytes(const Plan& plan);
/// The inverse; null where the bytes are not those of a plan. Loads or generates the kernels.
std::shared_ptr<const Plan> plan_of(std::string_view bytes, bool fast_math);

/// What an earlier process, or an earlier trace, has kept. Never throws for what is on disk.
struct FoundPlan {
  bool known = false;                // it has had a plan, and so its kernels
  std::shared_ptr<const Plan> plan;  // null: there is none; or, where it is known, it is not to be kept
};
FoundPlan find_plan(const std::string& key, const GraphOptions& options);
/// Keeps the plan on disk, if it can; null: that there was one which is not to be kept.
void keep_plan(const std::string& key, const Plan* plan);

}  // namespace sinter::engine
