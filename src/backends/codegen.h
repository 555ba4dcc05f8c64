// The code generator's interface: all that crosses from libsinter.so to libsinter_codegen.so, the only object that links LLVM.
// Layer: backends.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "backends/target.h"
#include "kernel/kernel.h"
#include "runtime/image.h"

namespace sinter::backends {

struct CodegenOptions {
  int level = 2;  // LLVM's code-generation level; bits do not depend on it
  bool fast_math = false;
  bool brief = false;               // less code rather than fast code: one masked loop, of one vector at a time unless it carries partials
  std::string* llvm_ir = nullptr;   // receives the module's text
  std::string* assembly = nullptr;  // receives the assembly
};

struct Codegen {
  const char* build;  // base::build_identity() of the object: has to be ours
  runtime::Image (*compile)(const kernel::Kernel&, const Target&, const CodegenOptions&);
  void (*warm)(const Target&, int level);  // makes what the first kernel of this level needs beside itself
};

/// Opens libsinter_codegen.so (beside libsinter.so, else by the loader's search) at the first call. Throws Error when it is missing.
/// The object exports `extern "C" const sinter::backends::Codegen* sinter_codegen()`.
const Codegen& codegen();
/// The first of these objects that can be opened and is of this build. Throws DeviceError with the reasons when there is none.
const Codegen& open_codegen(std::span<const std::string> paths);
/// Whether codegen() has been called successfully: the object is loaded.
bool codegen_loaded();

}  // namespace sinter::backends
