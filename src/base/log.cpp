#include "base/log.h"

#include <cstdio>
#include <string>

#include "base/knobs.h"

namespace sinter::base {

void log(int level, std::string_view text) {
  if (knobs().log < level) return;
  std::string line = "sinter: ";
  line.append(text) += '\n';
  std::fputs(line.c_str(), stderr);  // at once: lines of several threads do not mix
}

}  // namespace sinter::base
