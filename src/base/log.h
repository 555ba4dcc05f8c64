// log: what the library says about itself on stderr, where the knob SINTER_LOG asks for it. Layer: base.
#pragma once
#include <string_view>

namespace sinter::base {

/// Writes `sinter: TEXT` as one line to stderr where SINTER_LOG is at least `level`.
void log(int level, std::string_view text);

}  // namespace sinter::base
