#include "fuzz/sizes.h"

#include <algorithm>

namespace sinter::fuzz {

Sizes::Sizes(std::mt19937& random) : random_(random) {
  const int n = pick(10);
  class_ = n < 6 ? Class::small : n < 9 ? Class::wide : Class::one_long;
  chosen_ = pick(3) ? 0 : static_cast<std::size_t>(1 + pick(2));
}

// Half of them fill lanes, with one element more or less or none.
std::int64_t Sizes::wide() {
  static constexpr int kFull[] = {16, 16, 32, 48, 64};
  return pick(2) ? kFull[pick(5)] - 1 + pick(3) : 16 + pick(55);
}
std::int64_t Sizes::longest(std::int64_t most) {
  return std::min<std::int64_t>(pick(2) ? (256 << pick(4)) - 1 + pick(3) : 200 + pick(2000), most);
}

std::vector<std::int64_t> Sizes::of(std::size_t axes) {
  std::vector<std::int64_t> sizes(axes);
  if (axes == 0) return sizes;
  const std::size_t chosen = axes - 1 - std::min(chosen_, axes - 1);
  std::int64_t others = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    if (i == chosen) continue;
    const bool fits = class_ == Class::wide && others <= 1 && pick(2);
    sizes[i] = class_ == Class::one_long ? 1 + pick(3) : fits ? std::min<std::int64_t>(wide(), 56) : small();
    others *= sizes[i];
  }
  const std::int64_t most = kMostElements / std::max<std::int64_t>(others, 1);
  sizes[chosen] = class_ == Class::small ? small() : std::min(class_ == Class::wide ? wide() : longest(most), most);
  return sizes;
}

}  // namespace sinter::fuzz
