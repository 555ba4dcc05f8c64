// Arguments: what a kernel is called with, as values of its function. Layer: backends.
#pragma once
#include <vector>

#include "backends/llvm/emitter.h"
#include "kernel/kernel.h"

namespace sinter::backends {

struct Arguments {
  Arguments() = default;
  /// Of `kernel(begin, end, block, flags)`; loads what the block holds of buffers and scalars, where the emitter's builder is.
  Arguments(const kernel::Kernel& k, llvm::Function& f, bool streams, Emitter& emitter);
  /// Loads an Arg.
  llvm::Value* integer(llvm::IRBuilderBase& b, std::size_t number) const { return word(b, b.getInt64Ty(), buffers.size() + number); }

  llvm::Value *begin = nullptr, *end = nullptr;  // of the Parallel loop
  Values buffers;
  Values streams;  // by buffer, i1: stores go past the caches; null: never
  std::vector<ops::Wide> scalars;

 private:
  llvm::Value* word(llvm::IRBuilderBase& b, llvm::Type* type, std::size_t number, std::size_t offset = 0) const;

  llvm::Value* block_ = nullptr;
};

}  // namespace sinter::backends
