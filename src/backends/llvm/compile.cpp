// The way from a kernel to its image: LLVM IR, machine code, flat block; and the entry of libsinter_codegen.so.
#include <llvm/IR/Verifier.h>

#include "backends/codegen.h"
#include "backends/llvm/flatten.h"
#include "backends/llvm/lower.h"
#include "backends/llvm/machine.h"
#include "base/build.h"
#include "base/check.h"

namespace sinter::backends {

namespace {

runtime::Image compile(const kernel::Kernel& k, const Target& target, const CodegenOptions& options) {
  Machine machine(target, options.level);
  llvm::LLVMContext context;
  llvm::Module module(k.name, context);
  machine.prepare(module);
  lower(k, target, options, module);
#ifndef NDEBUG
  std::string fault;
  llvm::raw_string_ostream faults(fault);
  if (llvm::verifyModule(module, &faults)) throw InternalError("internal: codegen: " + fault);
#endif
  if (options.llvm_ir) {
    llvm::raw_string_ostream out(*options.llvm_ir);
    module.print(out, nullptr);
  }
  if (options.assembly) *options.assembly = machine.assembly(module);
  return flatten(machine.object(module), kEntry);
}

void warm(const Target& target, int level) { Machine(target, level); }

}  // namespace

}  // namespace sinter::backends

extern "C" __attribute__((visibility("default"))) const sinter::backends::Codegen* sinter_codegen() {
  static const sinter::backends::Codegen codegen{sinter::base::build_identity(), sinter::backends::compile, sinter::backends::warm};
  return &codegen;
}
