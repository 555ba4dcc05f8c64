// Positions in the order of elements. A row's elements become unsigned numbers of the same order, each with its position, so that no two
// entries are equal: every way to sort them gives the same positions. Short rows are sorted by comparison; long ones digit by digit (for a
// million 6 ms instead of 57).
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "backends/cpu/products.h"
#include "runtime/pool.h"

namespace sinter::backends {
namespace {

constexpr int kDigit = 11;              // bits of a digit: its counts stay in the first cache
constexpr std::int64_t kLong = 200;     // from here on digits win
constexpr std::int64_t kGroups = 16;    // of rows: one thread's each, with a workspace of its own
constexpr double kGrainElements = 2e3;  // of a range that is worth a thread: about 20 us

enum class Kind { Unsigned, Signed, Floating };

// The element as an unsigned number; `infinity`: the bits of a floating dtype's.
template <Kind kind, class Word>
Word ordered(Word bits, Word infinity) {
  constexpr Word kSign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  if constexpr (kind == Kind::Unsigned) return bits;
  if constexpr (kind == Kind::Signed) return bits ^ kSign;
  const Word size = bits & static_cast<Word>(~kSign);
  if (size > infinity) return std::numeric_limits<Word>::max();
  if (size == 0) return kSign;  // of either sign
  return static_cast<Word>(bits & kSign ? ~bits : bits | kSign);
}

template <class Key>
struct Entry {
  Key key;
  std::uint32_t position;
  auto operator<=>(const Entry&) const = default;
};

// Each digit in turn, from the lowest, keeps the order of the digits before it. A digit that all entries share moves nothing. Returns where
// the sorted entries are: in `from` or in `to`.
template <class Key>
Entry<Key>* sort_digits(Entry<Key>* from, Entry<Key>* to, std::int64_t n, int bits) {
  for (int low = 0; low < bits; low += kDigit) {
    const auto digit = [low](const Entry<Key>& e) { return static_cast<std::size_t>(e.key >> low) & ((1 << kDigit) - 1); };
    std::array<std::uint32_t, 1 << kDigit> next{};
    for (std::int64_t i = 0; i < n; ++i) ++next[digit(from[i])];
    if (next[digit(from[0])] == n) continue;
    std::uint32_t total = 0;
    for (std::uint32_t& count : next) total += std::exchange(count, total);
    for (std::int64_t i = 0; i < n; ++i) to[next[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

template <Kind kind, class Word>
class Sort final : public Routine {
 public:
  using Key = std::conditional_t<sizeof(Word) == 8, std::uint64_t, std::uint32_t>;

  Sort(const kernel::SortDesc& d, std::uint64_t infinity) : d_(d), infinity_(static_cast<Word>(infinity)) {}
  const char* name() const override { return "sort"; }
  std::int64_t groups() const { return std::min(kGroups, rows()); }
  std::int64_t workspace() const { return groups() * 2 * d_.n * static_cast<std::int64_t>(sizeof(Entry<Key>)); }

  void run(std::span<void* const> memory) const override {
    if (rows() * d_.n == 0) return;
    const double elements = static_cast<double>(rows()) / static_cast<double>(groups()) * static_cast<double>(d_.n);
    runtime::parallel_for(groups(), static_cast<std::int64_t>(kGrainElements / elements) + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t g = begin; g < end; ++g)
        for (std::int64_t r = rows() * g / groups(); r < rows() * (g + 1) / groups(); ++r) {
          const std::int64_t at = r / d_.inner * d_.n * d_.inner + r % d_.inner;
          sort_row(static_cast<const Word*>(memory[0]) + at, static_cast<std::uint32_t*>(memory[1]) + at,
                   static_cast<Entry<Key>*>(memory[2]) + g * 2 * d_.n);
        }
    });
  }

 private:
  std::int64_t rows() const { return d_.outer * d_.inner; }
  void sort_row(const Word* x, std::uint32_t* out, Entry<Key>* entries) const {
    const std::int64_t n = d_.n, stride = d_.inner;
    for (std::int64_t i = 0; i < n; ++i) entries[i] = {ordered<kind>(x[i * stride], infinity_), static_cast<std::uint32_t>(i)};
    if (n < kLong)
      std::sort(entries, entries + n);
    else
      entries = sort_digits(entries, entries + n, n, 8 * static_cast<int>(sizeof(Word)));
    for (std::int64_t i = 0; i < n; ++i) out[i * stride] = entries[i].position;
  }

  kernel::SortDesc d_;
  Word infinity_;
};

template <Kind kind, class Word>
WithWorkspace make(const kernel::SortDesc& d, std::uint64_t infinity = 0) {
  auto routine = std::make_shared<Sort<kind, Word>>(d, infinity);
  const std::int64_t workspace = routine->workspace();
  return {std::move(routine), workspace};
}

template <Kind kind>
WithWorkspace make_integer(const kernel::SortDesc& d) {
  switch (size_of(d.dtype)) {
    case 1: return make<kind, std::uint8_t>(d);
    case 2: return make<kind, std::uint16_t>(d);
    case 4: return make<kind, std::uint32_t>(d);
    default: return make<kind, std::uint64_t>(d);
  }
}

}  // namespace

WithWorkspace make_sort(const kernel::SortDesc& d) {
  switch (d.dtype) {
    case Dtype::float16: return make<Kind::Floating, std::uint16_t>(d, 0x7c00);
    case Dtype::bfloat16: return make<Kind::Floating, std::uint16_t>(d, 0x7f80);
    case Dtype::float32: return make<Kind::Floating, std::uint32_t>(d, 0x7f800000);
    case Dtype::float64: return make<Kind::Floating, std::uint64_t>(d, 0x7ff0000000000000);
    default: return is_signed(d.dtype) ? make_integer<Kind::Signed>(d) : make_integer<Kind::Unsigned>(d);
  }
}

}  // namespace sinter::backends
