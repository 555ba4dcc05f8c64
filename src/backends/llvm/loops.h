// Loops: those of LLVM's blocks, with values that go from one iteration to the next. Layer: backends.
#pragma once
#include <vector>

#include "backends/llvm/primitives.h"
#include "base/check.h"

namespace sinter::backends {

using State = std::vector<llvm::Value*>;
/// Writes an iteration that begins with this state; returns the state behind it.
using LoopBody = FunctionRef<State(llvm::Value* index, const State& state)>;

/// A loop with its test at the bottom, behind a test for no iterations at all. `once`: at most one iteration. Where numbers say that there
/// is none, or one, there is no loop.
State counted(llvm::IRBuilderBase& b, llvm::Value* begin, llvm::Value* end, int step, bool once, State state, LoopBody body);
/// The last iterations of a loop of `parts` parts, of so many lanes each: part by part, each with its own partials, so that a short row
/// leaves most parts out.
void tail(llvm::IRBuilderBase& b, int lanes, llvm::Value* begin, llvm::Value* end, int parts, State& state, LoopBody body);

}  // namespace sinter::backends
