// Knobs: the environment variables of knobs.def, as data. Layer: base.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace sinter::base {

struct Knobs {
  using text = std::string;
#define KNOB(variable, member, type, initial, help) type member = initial;
#include "base/knobs.def"
#undef KNOB
};

/// What the environment said at the first call.
const Knobs& knobs();

/// Reads the environment anew, through `get` (which returns null for what is not set).
Knobs read_knobs(const char* (*get)(const char* variable));

struct KnobFacts {
  const char *variable, *type, *initial, *help;
};
std::span<const KnobFacts> all_knobs();

/// Whether a comma-separated list holds the name, or is `all`.
bool list_has(std::string_view list, std::string_view name);

}  // namespace sinter::base
