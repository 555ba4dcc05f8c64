// LLVM's machine for a target with its passes from IR to an object file. Layer: backends.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "backends/target.h"

namespace sinter::backends {

/// Lent by a pool: making one takes 1 ms, so those that nobody uses wait for the next. Any threads may compile at once, and threads come
/// and go.
class Machine {
 public:
  Machine(const Target& target, int level);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Names the target in the module.
  void prepare(llvm::Module& module) const;
  /// An ELF object, valid until the next call. Changes the module.
  llvm::StringRef object(llvm::Module& module);
  std::string assembly(const llvm::Module& module) const;

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sinter::backends
