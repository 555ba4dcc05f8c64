// flatten: a relocatable ELF object as one self-contained block. Layer: backends.
#pragma once
#include <llvm/ADT/StringRef.h>

#include "runtime/image.h"

namespace sinter::backends {

/// Lays out code and constants behind each other and applies the relocations between them. Throws InternalError that names the symbol
/// when the object needs anything from outside, or the relocation or section when it is of a kind that cannot stand in such a block.
runtime::Image flatten(llvm::StringRef object, llvm::StringRef entry);

}  // namespace sinter::backends
