// Process-wide settings that change at run time. Layer: base.
#include "base/globals.h"

#include "base/knobs.h"

namespace sinter::globals {

std::atomic<std::uint8_t> compile_mode{static_cast<std::uint8_t>(base::knobs().disable_compile ? 1 : 0)};  // CompileMode::disabled

}  // namespace sinter::globals
