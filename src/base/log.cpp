#include "base/log.h"

#include <cstdio>
#include <string>

#include "base/knobs.h"

namespace sinter::base {

bool logs(int level) { return knobs().log >= level; }

void log(int level, std::string_view text) {
  if (!logs(level)) return;
  std::string line = "sinter: ";
  line.append(text) += '\n';
  std::fputs(line.c_str(), stderr);  // at once: lines of several threads do not mix
}

Laps::Laps(int level, std::string_view what) : level_(level) {
  if (!logs(level)) return;
  line_ = what;
  last_ = std::chrono::steady_clock::now();
}

void Laps::lap(std::string_view part) {
  if (line_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  char time[32];
  std::snprintf(time, sizeof time, " %.3f ms", std::chrono::duration<double, std::milli>(now - last_).count());
  line_ += line_.find(": ") == std::string::npos ? ": " : ", ";
  line_.append(part) += time;
  last_ = std::chrono::steady_clock::now();
}

Laps::~Laps() {
  if (!line_.empty()) log(level_, line_);
}

}  // namespace sinter::base
