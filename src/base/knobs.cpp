#include "base/knobs.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace sinter::base {
namespace {

void read(const char* value, bool& v) {
  v = false;
  for (const char* yes : {"1", "true", "on", "yes"}) v = v || std::strcmp(value, yes) == 0;
}
void read(const char* value, int& v) {
  const char* end = value + std::strlen(value);
  int read = 0;
  if (std::from_chars(value, end, read).ptr == end && end != value) v = read;
}
void read(const char* value, std::string& v) {
  if (*value != 0) v = value;
}

}  // namespace

Knobs read_knobs(const char* (*get)(const char*)) {
  Knobs k;
#define KNOB(variable, member, type, initial, help) \
  if (const char* value = get(#variable)) read(value, k.member);
#include "base/knobs.def"
#undef KNOB
  return k;
}

const Knobs& knobs() {
  static const Knobs k = read_knobs([](const char* variable) -> const char* { return std::getenv(variable); });
  return k;
}

std::span<const KnobFacts> all_knobs() {
  static constexpr KnobFacts kFacts[] = {
#define KNOB(variable, member, type, initial, help) {#variable, #type, #initial, help},
#include "base/knobs.def"
#undef KNOB
  };
  return kFacts;
}

bool list_has(std::string_view list, std::string_view name) {
  if (list == "all") return true;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == name && !name.empty()) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace sinter::base
