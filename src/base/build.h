// The identity of this build: what kernels and plans on disk and libsinter_codegen.so have to agree with. Layer: base.
#pragma once

namespace sinter::base {

/// A digest of the sources that generated code depends on, of the compiler and of LLVM (cmake/identity.cmake), in hexadecimal. The library
/// and its code generator each have their own.
const char* build_identity();
/// The same for what plans depend on, which is more. The library alone has one.
const char* plan_identity();

}  // namespace sinter::base
