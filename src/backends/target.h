// Target: the facts of a processor that schedules and code generation depend on. Layer: backends.
#pragma once
#include <string>

namespace sinter::backends {

struct Target {
  std::string cpu;       // LLVM's name of the processor, "znver5"
  std::string features;  // LLVM's feature string, complete
  int lanes = 8;         // of a Vector loop, for every dtype: 16 with AVX-512, 8 otherwise
  bool avx512 = false;   // F, BW, DQ, VL
  bool code = false;     // the code generator supports this processor (AVX-512, or x86-64-v3)
};

/// The processor that we run on, found without LLVM (cpuid through __builtin_cpu_supports); `cpu` and `features` are those of
/// x86-64-v4 or x86-64-v3 exactly, so that an image depends on nothing else.
const Target& host_target();

/// The same for x86-64-v4 or x86-64-v3, whatever we run on: for tests, and to look at code.
Target x86_target(bool avx512);

}  // namespace sinter::backends
