// Symbols: sizes that change between calls of a compiled function, what is computed from them, and what a trace relied on. Layer: base.
//
// A trace runs on the sizes of one call, and each size that may change also carries a symbol: an expression over the sizes of inputs. A
// result follows the expressions, and is right for all sizes for which the function, and all of ours, would have done the same: so whatever
// looks at a number (a comparison, a conversion) leaves a guard, an interval of an expression. Nothing can be forgotten: Dim has no other
// way to its number, but for `peek`, which asks its caller to know why the number changes nothing.
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sinter/shape.h"

namespace sinter::base {

/// The number; records nothing. For messages, for estimates, and for what stays right with another number.
std::int64_t peek(const Dim& d);
/// Certainly equal, whatever the sizes; records nothing. Not the same does not mean different.
bool same(const Dim& x, const Dim& y);
bool same(std::span<const Dim> x, std::span<const Dim> y);
inline bool same(const Shape& x, const Shape& y) { return same(std::span(x.begin(), x.end()), std::span(y.begin(), y.end())); }
/// May change with the sizes of the open table.
bool changes(const Dim& d);
bool changes(std::span<const Dim> d);
inline bool changes(const Shape& s) { return changes(std::span(s.begin(), s.end())); }

/// f(arguments), which must be defined for all numbers; follows them. `low` is a lower bound of all results; texts show the first
/// arguments.
using DimFunction = std::int64_t (*)(std::span<const std::int64_t>);
constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::min();
Dim apply(const char* name, DimFunction f, std::span<const Dim> arguments, std::int64_t low = kNoBound, std::size_t shown = 8);
inline Dim apply(const char* name, DimFunction f, std::initializer_list<Dim> arguments, std::int64_t low = kNoBound,
                 std::size_t shown = 8) {
  return apply(name, f, std::span(arguments.begin(), arguments.size()), low, shown);
}

/// What an expression must be for a trace to hold.
struct Interval {
  std::int64_t low = kNoBound, high = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> others;  // in it, but not these
  bool contains(std::int64_t v) const;
  friend bool operator==(const Interval&, const Interval&) = default;
};
using Guards = std::map<std::uint32_t, Interval>;  // by expression

class Symbols {
 public:
  Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  /// A size that changes; expression number is its number.
  Dim input(std::int64_t value, std::string name);
  std::size_t inputs() const { return inputs_; }

  /// Every expression's number for these sizes of the inputs; none where one cannot be computed (an overflow, a division by 0).
  using Numbers = std::vector<std::int64_t>;
  std::optional<Numbers> evaluate(std::span<const std::int64_t> sizes) const;
  /// The Dim with another number; itself where it does not change.
  Dim at(const Numbers& numbers, const Dim& d) const;
  Shape at(const Numbers& numbers, const Shape& s) const;
  static bool hold(const Guards& guards, const Numbers& numbers);
  /// The input that a guard fixes to one number above 1.
  std::optional<std::size_t> fixed_input(const Guards::value_type& guard) const;

  bool follows(const Dim& d) const;                       // is an expression of this table
  std::string text(const Dim& d) const;                   // "2*s0 + s1"; the number where it does not change
  std::vector<std::string> texts(const Guards& g) const;  // "s0 >= 2"
  const std::string& name(std::size_t input) const { return names_[input]; }

 private:
  friend class OpenSymbols;
  friend struct Access;
  struct Atom {  // what is not a sum or a product
    enum class Kind : std::uint8_t { Input, Divide, Remainder, Apply } kind;
    std::int64_t input = 0;
    const char* name = nullptr;
    DimFunction function = nullptr;
    std::int64_t low = kNoBound;
    std::size_t shown = 0;                                          // arguments in texts
    std::vector<std::pair<std::uint32_t, std::int64_t>> arguments;  // expression, or 0 and a number
    friend bool operator==(const Atom&, const Atom&) = default;
  };
  struct Term {
    std::vector<std::uint32_t> atoms;  // ascending, with repetitions
    std::int64_t factor;
    friend auto operator<=>(const Term&, const Term&) = default;
  };
  using Sum = std::vector<Term>;  // ascending by atoms; no factor is 0
  struct Item {                   // in the order in which they were made, operands first
    bool is_atom;
    std::uint32_t index;
  };

  Sum sum_of(const Dim& d) const;
  Dim dim_of(Sum s, std::int64_t value);
  std::uint32_t index_of(const Sum& s);
  Dim atom(Atom a, std::int64_t value);
  Dim combine(detail::DimOp op, const Dim& x, const Dim& y);
  bool test(const Dim& x, detail::DimTest t, const Dim& y);
  void restrict(const Sum& p, detail::DimTest t, std::int64_t k);
  std::int64_t low_of(const Sum& s) const;
  std::string text_of(const Sum& s) const;
  std::string text_of(const Atom& a) const;

  const std::uint32_t serial_;
  std::size_t inputs_ = 0;
  std::vector<std::string> names_;
  std::vector<Atom> atoms_;
  std::vector<Sum> sums_;  // of expression i + 1
  std::vector<Item> items_;
  std::map<Sum, std::uint32_t> index_;
  Guards* guards_ = nullptr;
};

/// Opens a table on this thread: its Dims follow, and guards go here. Others are numbers until it closes.
class OpenSymbols {
 public:
  OpenSymbols(Symbols& symbols, Guards& guards);
  ~OpenSymbols();
  OpenSymbols(const OpenSymbols&) = delete;
  OpenSymbols& operator=(const OpenSymbols&) = delete;

 private:
  Symbols* const outer_;
  Symbols& mine_;
  Guards* const before_;
};

}  // namespace sinter::base
