// Process-wide settings. Layer: base.
#pragma once
#include <atomic>
#include <cstdint>

namespace sinter::globals {

/// The CompileMode (sinter/compile.h), as a number; starts as `disabled` where SINTER_DISABLE_COMPILE says so.
extern std::atomic<std::uint8_t> compile_mode;

/// A switch in the environment: 1, true or on; 0, false, off or empty. Anything else warns once and counts as unset.
bool read_switch(const char* variable);

}  // namespace sinter::globals
