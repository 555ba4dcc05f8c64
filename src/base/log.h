// log: what the library says about itself on stderr, where the knob SINTER_LOG asks for it. Layer: base.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace sinter::base {

/// Whether SINTER_LOG is at least `level`: for texts that take time to make.
bool logs(int level);
/// Writes `sinter: TEXT` as one line to stderr where SINTER_LOG is at least `level`.
void log(int level, std::string_view text);

/// How long the parts of something take, as one such line: `sinter: WHAT: PART 0.120 ms, PART 1.300 ms`.
class Laps {
 public:
  Laps(int level, std::string_view what);
  /// What has been done since the last lap.
  void lap(std::string_view part);
  ~Laps();
  Laps(const Laps&) = delete;
  Laps& operator=(const Laps&) = delete;

 private:
  const int level_;
  std::string line_;  // empty: nobody asks
  std::chrono::steady_clock::time_point last_;
};

}  // namespace sinter::base
