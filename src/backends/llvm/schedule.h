// schedule: the order of a loop's instructions. Layer: backends.
#pragma once
#include <llvm/IR/Module.h>

#include <set>

namespace sinter::backends {

/// Puts the instructions of each block with much arithmetic in the order in which a processor with several arithmetic units would run them,
/// those that most waits for first. Operations that do not wait for each other come together, so that a processor that looks a few hundred
/// instructions ahead finds enough to do; the emitter writes one operation after the other. Results do not change. `ordered`: blocks that
/// stay as they are.
void schedule(llvm::Module& module, const std::set<const llvm::BasicBlock*>& ordered);

}  // namespace sinter::backends
