// Process-wide settings that change at run time. Layer: base.
#pragma once
#include <atomic>
#include <cstdint>

namespace sinter::globals {

/// The CompileMode (sinter/compile.h), as a number; starts as `disabled` where SINTER_DISABLE_COMPILE says so.
extern std::atomic<std::uint8_t> compile_mode;

}  // namespace sinter::globals
