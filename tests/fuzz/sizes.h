// Sizes: how long the axes of a random program's arrays are.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace sinter::fuzz {

/// The most elements of an array that a step gives.
inline constexpr std::int64_t kMostElements = 4096;

/// Those of one program are of one class. Six of ten programs have small ones only. But lanes fill up, loops have a rest and large memory
/// is used again where axes have 16 elements and more: three of ten have some of up to 70, one has one of up to some thousands beside short
/// ones.
class Sizes {
 public:
  explicit Sizes(std::mt19937& random);
  /// The sizes of so many axes, whose product is at most kMostElements. Now and then one is 0.
  std::vector<std::int64_t> of(std::size_t axes);

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  std::int64_t small() { return pick(40) ? 1 + pick(8) : 0; }
  std::int64_t wide();
  std::int64_t longest(std::int64_t most);

  enum class Class { small, wide, one_long };
  std::mt19937& random_;
  Class class_ = Class::small;
  std::size_t chosen_ = 0;  // the wide or long axis, from the last on
};

}  // namespace sinter::fuzz
