// Process-wide settings. Layer: base.
#include "base/globals.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace sinter::globals {

bool read_switch(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value) return false;
  std::string v;
  for (const char* c = value; *c; ++c) v += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  if (v == "1" || v == "true" || v == "on") return true;
  if (!(v.empty() || v == "0" || v == "false" || v == "off"))
    std::fprintf(stderr, "sinter: warning: %s is neither on nor off; got '%s'; use 1 or 0\n", variable, value);
  return false;
}

// 1: CompileMode::disabled.
std::atomic<std::uint8_t> compile_mode{static_cast<std::uint8_t>(read_switch("SINTER_DISABLE_COMPILE") ? 1 : 0)};

}  // namespace sinter::globals
