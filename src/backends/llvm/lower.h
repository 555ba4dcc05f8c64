// lower: a kernel as an LLVM function `kernel(begin, end, block)`. Layer: backends.
#pragma once
#include <llvm/IR/Module.h>

#include "backends/codegen.h"

namespace sinter::backends {

inline constexpr const char* kEntry = "kernel";

void lower(const kernel::Kernel& k, const Target& target, const CodegenOptions& options, llvm::Module& module);

}  // namespace sinter::backends
