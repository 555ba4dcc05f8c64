// Dim: the size of an axis. Shape: a list of them.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/error.h"

namespace sinter {

class Dim;

namespace detail {
template <class T>
concept Integer = std::integral<T> && !std::same_as<std::remove_cv_t<T>, bool>;
SINTER_API std::int64_t divide_dim(std::int64_t a, std::int64_t b);     // ShapeError when b is 0
SINTER_API std::int64_t remainder_dim(std::int64_t a, std::int64_t b);  // ShapeError when b is 0

// Of sizes that may change between calls of a compiled function; base/symbols.h.
enum class DimOp : std::uint8_t { Add, Subtract, Multiply, Divide, Remainder };
enum class DimTest : std::uint8_t { Equal, NotEqual, Less, Greater, LessEqual, GreaterEqual };
SINTER_API Dim combine_dims(DimOp op, const Dim& x, const Dim& y);
SINTER_API bool test_dims(const Dim& x, DimTest test, const Dim& y);
SINTER_API std::int64_t pin_dim(const Dim& x);
struct DimAccess;
}  // namespace detail

// The overload rules that keep `dim op int` unambiguous: one implicit conversion, to int64_t, which is no template; every operator as
// (Dim, Dim), (Dim, T) and (T, Dim) with T any integer type, which beats the builtin operators; no form for floating types, so that
// `dim * 0.5` is the builtin product.

/// The size of an axis. Behaves like an int64_t; a class of its own because, while a function is compiled, it may stand for a size that
/// changes between calls. Arithmetic with such a size follows the change. What needs its number (converting it, comparing it) is noted,
/// and a call for which the answer would be another one is traced anew. See docs/COMPILE.md, "Changing shapes".
class Dim {
 public:
  constexpr Dim() = default;
  template <detail::Integer T>
  constexpr Dim(T v) noexcept : value_(static_cast<std::int64_t>(v)) {}

  constexpr operator std::int64_t() const { return symbol_ != 0 ? detail::pin_dim(*this) : value_; }
  constexpr explicit operator bool() const { return *this != 0; }
  Dim operator-() const { return symbol_ != 0 ? Dim(0) - *this : Dim(-value_); }
  constexpr Dim operator+() const { return *this; }

#define SINTER_DIM_ARITH(op, name, result)                                                    \
  friend Dim operator op(const Dim& x, const Dim& y) {                                        \
    if ((x.symbol_ | y.symbol_) != 0) return detail::combine_dims(detail::DimOp::name, x, y); \
    std::int64_t a = x.value_, b = y.value_;                                                  \
    return Dim(result);                                                                       \
  }                                                                                           \
  template <std::integral T>                                                                  \
  friend Dim operator op(const Dim& x, T y) {                                                 \
    return x op Dim(static_cast<std::int64_t>(y));                                            \
  }                                                                                           \
  template <std::integral T>                                                                  \
  friend Dim operator op(T x, const Dim& y) {                                                 \
    return Dim(static_cast<std::int64_t>(x)) op y;                                            \
  }                                                                                           \
  Dim& operator op##=(const Dim & y) { return *this = *this op y; }
  SINTER_DIM_ARITH(+, Add, a + b)
  SINTER_DIM_ARITH(-, Subtract, a - b)
  SINTER_DIM_ARITH(*, Multiply, a* b)
  SINTER_DIM_ARITH(/, Divide, detail::divide_dim(a, b))
  SINTER_DIM_ARITH(%, Remainder, detail::remainder_dim(a, b))
#undef SINTER_DIM_ARITH

#define SINTER_DIM_COMPARE(op, name)                                                         \
  friend constexpr bool operator op(const Dim& x, const Dim& y) {                            \
    if ((x.symbol_ | y.symbol_) != 0) return detail::test_dims(x, detail::DimTest::name, y); \
    return x.value_ op y.value_;                                                             \
  }                                                                                          \
  template <std::integral T>                                                                 \
  friend constexpr bool operator op(const Dim& x, T y) {                                     \
    return x op Dim(static_cast<std::int64_t>(y));                                           \
  }                                                                                          \
  template <std::integral T>                                                                 \
  friend constexpr bool operator op(T x, const Dim& y) {                                     \
    return Dim(static_cast<std::int64_t>(x)) op y;                                           \
  }
  SINTER_DIM_COMPARE(==, Equal)
  SINTER_DIM_COMPARE(!=, NotEqual)
  SINTER_DIM_COMPARE(<, Less)
  SINTER_DIM_COMPARE(>, Greater)
  SINTER_DIM_COMPARE(<=, LessEqual)
  SINTER_DIM_COMPARE(>=, GreaterEqual)
#undef SINTER_DIM_COMPARE
  SINTER_API friend std::ostream& operator<<(std::ostream& out, const Dim& d);

 private:
  friend struct detail::DimAccess;
  std::int64_t value_ = 0;    // in the call that is traced
  std::uint32_t symbol_ = 0;  // an expression of base::Symbols; 0: a number
  std::uint32_t table_ = 0;   // which table: the dims of another trace are numbers
};

/// The sizes of an array's axes, outermost first. A list of `Dim`.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  template <detail::Integer T>
  Shape(const std::vector<T>& dims) : dims_(dims.begin(), dims.end()) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}

  std::size_t size() const { return dims_.size(); }
  bool empty() const { return dims_.empty(); }
  const Dim& operator[](std::size_t i) const { return dims_[i]; }
  Dim& operator[](std::size_t i) { return dims_[i]; }
  const Dim& back() const { return dims_.back(); }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  auto begin() { return dims_.begin(); }
  auto end() { return dims_.end(); }
  void push_back(Dim d) { dims_.push_back(d); }
  void insert(std::size_t at, Dim d) { dims_.insert(dims_.begin() + static_cast<std::ptrdiff_t>(at), d); }
  void erase(std::size_t at) { dims_.erase(dims_.begin() + static_cast<std::ptrdiff_t>(at)); }
  /// The number of elements; 1 for a 0-d shape.
  Dim product() const {
    Dim p(1);
    for (const Dim& d : dims_) p *= d;
    return p;
  }
  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  /// `(2,3)`, `(4)`, `()`.
  SINTER_API friend std::ostream& operator<<(std::ostream& out, const Shape& s);

 private:
  std::vector<Dim> dims_;
};

}  // namespace sinter
