// modulo: when each operation of a loop begins, if iterations overlap. Layer: backends.
#pragma once
#include <llvm/IR/Instruction.h>

#include <optional>
#include <utility>
#include <vector>

namespace sinter::backends {

/// What an instruction takes on a processor with AVX-512.
struct Cost {
  int latency = 0;
  int multiply = 0, add = 0, permute = 0, any = 0;  // of which units
  int divider = 0;                                  // half cycles
  int registers = 0;                                // of the result
};
Cost cost_of(const llvm::Instruction& i);

/// An instruction of the loop.
struct Op {
  llvm::Instruction* code;
  Cost cost;
  std::vector<std::pair<unsigned, std::size_t>> in = {};  // operand, the op that computes it
  std::vector<std::size_t> needs = {}, users = {};        // of those that take time: through others, which come with their users
  int depth = 0;                                          // cycles from the beginning of the longest chain of operands to its result
  int time = 0;                                           // cycle since its iteration began
};
inline bool takes_time(const Op& op) { return op.cost.latency > 0; }

struct Schedule {
  std::vector<Op> ops;  // those of the loop, then loads that are there once more
  int interval = 0;     // an iteration begins every so many cycles
  int stages = 0;       // iterations that are under way at once
  int stage(std::size_t op) const { return ops[op].time / interval; }
};

/// Modulo scheduling (Rau 1994, "Iterative modulo scheduling"), but from the end, and without a way back: for the least interval at which
/// registers hold what is alive. `ops` are in an order in which operands come first. Nothing where there is no such interval.
std::optional<Schedule> overlap(const std::vector<Op>& ops);

}  // namespace sinter::backends
