// Functions: operations as internal functions of the module, vectors in and vectors out, for kernels that would otherwise repeat long
// expansions. Layer: backends.
#pragma once
#include <llvm/IR/Module.h>

#include <map>
#include <tuple>

#include "backends/llvm/emitter.h"

namespace sinter::backends {

/// The attributes that every function of ours has: the target, wide vectors, no exceptions, no jump tables.
void describe(llvm::Function& f, const Target& target);

class Functions {
 public:
  Functions(llvm::Module& module, const Target& target, Emitter& emitter) : module_(module), target_(target), emitter_(emitter) {}
  /// ops::expand through a function, inside a Vector loop.
  ops::Wide call(ops::Op op, Dtype compute, std::span<const ops::Wide> operands);

 private:
  using Key = std::tuple<ops::Op, Dtype, int, int>;  // parts, width
  llvm::Function* make(ops::Op op, Dtype compute, std::span<const ops::Wide> operands);

  llvm::Module& module_;
  const Target& target_;
  Emitter& emitter_;
  std::map<Key, llvm::Function*> made_;
};

}  // namespace sinter::backends
