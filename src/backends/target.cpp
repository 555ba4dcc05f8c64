#include "backends/target.h"

namespace sinter::backends {

namespace {

// Complete for both levels: what a level contains is written out, so that an image never depends on what LLVM knows of a processor.
constexpr const char* kV3 =
    "+64bit,+cmov,+cx8,+cx16,+fxsr,+mmx,+sahf,+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+crc32,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,"
    "+lzcnt,+movbe,+xsave,-idivq-to-divl";
// Zmm registers throughout: kernels are made of 16 lanes.
constexpr const char* kV4 = ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+evex512,-prefer-256-bit";

Target find() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("lzcnt") &&
                  __builtin_cpu_supports("movbe") && __builtin_cpu_supports("popcnt");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return v3 ? x86_target(v4) : Target{};
}

}  // namespace

const Target& host_target() {
  static const Target& target = *new Target(find());  // never destroyed
  return target;
}
namespace {
[[maybe_unused]] const auto& made_at_load = host_target();  // see ForkMutex
}  // namespace

Target x86_target(bool avx512) {
  return {.cpu = avx512 ? "x86-64-v4" : "x86-64-v3",
          .features = avx512 ? std::string(kV3) + kV4 : kV3,
          .lanes = avx512 ? 16 : 8,
          .avx512 = avx512,
          .code = true};
}

}  // namespace sinter::backends
