#include "runtime/speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/once.h"
#include "runtime/pool.h"

namespace sinter::runtime {

namespace {

double measure() {
  constexpr std::int64_t kPart = 1 << 20, kParts = 64;
  // Not arrays: neither counted nor limited.
  const auto from = std::make_unique_for_overwrite<char[]>(kPart * kParts), to = std::make_unique_for_overwrite<char[]>(kPart * kParts);
  auto each_part = [](auto&& f) {
    parallel_for(kParts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) f(part * kPart);
    });
  };
  each_part([&](std::int64_t offset) { std::memset(&from[offset], 0, kPart), std::memset(&to[offset], 0, kPart); });
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    each_part([&](std::int64_t offset) { std::memcpy(&to[offset], &from[offset], kPart); });
    const double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(2 * kPart * kParts) / ns);
  }
  return best;
}

}  // namespace

double copy_speed() {
  static constinit std::atomic<double*> place{nullptr};
  return base::once(place, measure);
}

}  // namespace sinter::runtime
