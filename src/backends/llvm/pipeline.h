// pipeline: iterations of a loop that overlap. Layer: backends.
#pragma once
#include <llvm/IR/BasicBlock.h>

namespace sinter::backends {

/// Software pipelining (Lam 1988, "Software pipelining: an effective scheduling technique for VLIW machines") of a loop that begins at
/// `head` and computes there what it stores at its end: an iteration begins every so many cycles, before those ahead of it have ended, and
/// the block holds one part of each. A long chain of operations then waits for nothing, which a processor cannot arrange by itself, for it
/// looks only some hundred instructions ahead; and the code is that of one iteration. Results do not change. Returns whether the loop has
/// the shape that this takes; then the order of `head` is that of the schedule. Otherwise nothing changed.
bool pipeline(llvm::BasicBlock* head);

}  // namespace sinter::backends
