#include "base/knobs.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sinter::base {
namespace {

void warn(const char* variable, const char* value, const char* wanted) {
  std::fprintf(stderr, "sinter: warning: %s is not understood; got '%s'; use %s\n", variable, value, wanted);
}

void read(const char* variable, const char* value, bool& v) {
  auto is = [&](auto... words) { return ((strcasecmp(value, words) == 0) || ...); };
  v = is("1", "true", "on", "yes");
  if (!v && !is("", "0", "false", "off", "no")) warn(variable, value, "1 or 0");
}
void read(const char* variable, const char* value, int& v) {
  const char* end = value + std::strlen(value);
  int number = 0;
  const auto got = std::from_chars(value, end, number);
  if (got.ec == std::errc() && got.ptr == end)
    v = number;
  else if (end != value)
    warn(variable, value, "a number");
}
void read(const char*, const char* value, std::string& v) {
  if (*value != 0) v = value;
}

}  // namespace

Knobs read_knobs(const char* (*get)(const char*)) {
  Knobs k;
#define KNOB(variable, member, type, initial, help) \
  if (const char* value = get(#variable)) read(#variable, value, k.member);
#include "base/knobs.def"
#undef KNOB
  return k;
}

const Knobs& knobs() {
  static const Knobs& k = *new Knobs(read_knobs([](const char* variable) -> const char* { return std::getenv(variable); }));
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
