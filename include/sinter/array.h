// Array: one intrusive pointer to a lazily evaluated value. Operand: an array or a weak scalar, as a function argument.
#pragma once
#include <climits>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/dtype.h"
#include "sinter/shape.h"

namespace sinter {

class Array;

namespace detail {

struct Value;  // engine/value.h
SINTER_API void retain(Value* v) noexcept;
SINTER_API void release(Value* v) noexcept;

// When set, every copy of an Array made by this thread is noted: so compile() learns which arrays a callable holds by value.
struct CopyRecorder;
SINTER_API extern thread_local constinit CopyRecorder* copy_recorder;
SINTER_API void record_copy(CopyRecorder* recorder, Value* v);

}  // namespace detail

/// A scalar: it has a kind and, standing alone, a dtype (double: float32, as MLX; a Dim: int32, or int64 when it does not fit).
class Number {
 public:
  template <detail::Arithmetic E>
  Number(E v) noexcept : dtype_(std::floating_point<E> ? Dtype::float32 : detail::dtype_of<E>()), real_(static_cast<double>(v)) {
    if constexpr (std::integral<E>) integer_ = static_cast<std::uint64_t>(v);
  }
  template <std::same_as<Dim> D>
  Number(const D& d) : Number(d, nullptr) {}
  template <std::same_as<std::complex<float>> C>
  Number(const C& v) noexcept : dtype_(Dtype::complex64), real_(v.real()), imag_(v.imag()) {}
  template <class H>
    requires(std::same_as<H, Float16> || std::same_as<H, BFloat16>)
  Number(H v) noexcept : dtype_(detail::dtype_of<H>()), real_(half_value(v.bits, dtype_)) {}

  /// Its dtype standing alone; its kind is the dtype's.
  Dtype dtype() const noexcept { return dtype_; }
  double real() const noexcept { return real_; }
  double imag() const noexcept { return imag_; }
  /// Of integers and bool: all bits, sign extended.
  std::uint64_t integer() const noexcept { return integer_; }

  /// A floating number made of a size, or (null) the size.
  SINTER_API Number(const Dim& d, double (*f)(std::int64_t));
  const Dim& dim() const noexcept { return dim_; }
  double (*of_dim() const noexcept)(std::int64_t) { return of_dim_; }

 private:
  SINTER_API static double half_value(std::uint16_t bits, Dtype t) noexcept;

  Dtype dtype_;
  std::uint64_t integer_ = 0;
  double real_ = 0;
  double imag_ = 0;
  Dim dim_;  // what it was made of, where that may change
  double (*of_dim_)(std::int64_t) = nullptr;
};

/// The parameter type of elementwise functions: an Array, a C++ scalar or a Dim. It exists only during the call. A scalar is weak: it
/// takes the arrays' dtype where their kind holds it (`int8_array * 2` is int8, `int8_array * 0.5` float32). No Array is ever weak.
class Operand {
 public:
  Operand(const Array& a) noexcept : array_(&a) {}
  template <detail::Element E>
  Operand(E v) noexcept : number_(v) {}
  template <std::same_as<Dim> D>
  Operand(const D& d) : number_(d) {}
  explicit Operand(const Number& v) noexcept : number_(v) {}
  /// Null for a scalar.
  const Array* array() const noexcept { return array_; }
  const Number& number() const noexcept { return number_; }

 private:
  const Array* array_ = nullptr;
  Number number_{0};
};

/// The number of an axis; negative ones count from the end. Only integers convert: cumsum(x, true) and sum(x, 1.0) do not compile.
class Axis {
 public:
  template <detail::Integer I>
  constexpr Axis(I axis) noexcept : axis_(nearest(static_cast<std::int64_t>(axis))) {}
  constexpr operator int() const noexcept { return axis_; }

 private:
  // No array has an axis beyond int.
  static constexpr int nearest(std::int64_t n) { return n > INT_MAX ? INT_MAX : n < INT_MIN ? INT_MIN : static_cast<int>(n); }
  int axis_;
};

/// One axis, several, or (`{}`) all.
class Axes {
 public:
  Axes() : all_(true) {}
  template <class I>
    requires(detail::Integer<I> || std::same_as<I, Axis>)
  Axes(I axis) : axes_{Axis(axis)} {}
  Axes(std::initializer_list<Axis> axes) : axes_(axes.begin(), axes.end()) {}
  template <std::same_as<int> I>
  Axes(const std::vector<I>& axes) : axes_(axes) {}
  bool all() const { return all_; }
  const std::vector<int>& list() const { return axes_; }

 private:
  bool all_ = false;
  std::vector<int> axes_;
};

/// An n-dimensional array. Copies share one value; operations are lazy, and looking at elements evaluates.
class SINTER_API Array {
 public:
  /// Unset: any use throws. In a tree it is structure.
  Array() noexcept = default;
  Array(const Array& o) noexcept : value_(o.value_) {
    if (value_) detail::retain(value_);
    if (detail::copy_recorder) [[unlikely]]
      detail::record_copy(detail::copy_recorder, value_);
  }
  Array(Array&& o) noexcept : value_(std::exchange(o.value_, nullptr)) {}
  Array& operator=(Array o) noexcept {
    std::swap(value_, o.value_);
    return *this;
  }
  ~Array() {
    if (value_) detail::release(value_);
  }

  // Every constructor of one argument is a template on the exact type: otherwise text, pointers, nullptr and {} would convert.

  /// 0-d. Array(1.0) is float32, Array(1) int32, Array(true) bool; other types keep theirs.
  template <detail::Element E>
  Array(E v) : Array(Number(v), std::nullopt) {}
  template <detail::Element E>
  Array(E v, Dtype t) : Array(Number(v), t) {}
  template <std::same_as<Dim> D>
  Array(const D& d) : Array(Number(d), std::nullopt) {}

  // Lists are `const E (&)[N]`, not std::initializer_list: braces and parentheses then mean the same (Array{0} is 0-d, Array{{0}} and
  // Array({0}) are 1-d), a ragged list does not compile, and a shape must be spelled: Array({1, 2, 3, 4}, Shape{2, 2}).

  /// From a nested list of up to four levels: Array({{1, 2}, {3, 4}}), Array({0.5, 1.5}, float16). A list of double is float32.
  template <detail::Element E, std::size_t N>
  Array(const E (&v)[N], std::optional<Dtype> t = {}) : Array(&v, detail::dtype_of<E>(), {N}, t, true) {}
  template <detail::Element E, std::size_t N, std::size_t M>
  Array(const E (&v)[N][M], std::optional<Dtype> t = {}) : Array(&v, detail::dtype_of<E>(), {N, M}, t, true) {}
  template <detail::Element E, std::size_t N, std::size_t M, std::size_t K>
  Array(const E (&v)[N][M][K], std::optional<Dtype> t = {}) : Array(&v, detail::dtype_of<E>(), {N, M, K}, t, true) {}
  template <detail::Element E, std::size_t N, std::size_t M, std::size_t K, std::size_t L>
  Array(const E (&v)[N][M][K][L], std::optional<Dtype> t = {}) : Array(&v, detail::dtype_of<E>(), {N, M, K, L}, t, true) {}
  /// A flat list in row-major order. ShapeError when the number of elements does not match.
  template <detail::Element E, std::size_t N, std::same_as<Shape> S>
  Array(const E (&v)[N], const S& s, std::optional<Dtype> t = {}) : Array(&v, detail::dtype_of<E>(), sized(s, N), t, true) {}

  /// Copies a buffer in row-major order; keeps its dtype (double: float64) unless told otherwise. ShapeError when sizes do not match.
  template <detail::Element E>
  explicit Array(const std::vector<E>& v, std::optional<Dtype> t = {}) : Array(v, Shape{v.size()}, t) {}
  template <detail::Element E, std::same_as<Shape> S>
  Array(const std::vector<E>& v, const S& s, std::optional<Dtype> t = {}) {
    if constexpr (std::same_as<E, bool>) {
      std::unique_ptr<bool[]> bits(new bool[v.size()]);
      for (std::size_t i = 0; i < v.size(); ++i) bits[i] = v[i];
      *this = Array(bits.get(), Dtype::bool_, sized(s, v.size()), t, false);
    } else {
      *this = Array(v.data(), detail::dtype_of<E>(), sized(s, v.size()), t, false);
    }
  }
  template <class E, std::size_t N>
    requires detail::Element<std::remove_const_t<E>>
  explicit Array(std::span<E, N> v, std::optional<Dtype> t = {}) : Array(v, Shape{v.size()}, t) {}
  template <class E, std::size_t N, std::same_as<Shape> S>
    requires detail::Element<std::remove_const_t<E>>
  Array(std::span<E, N> v, const S& s, std::optional<Dtype> t = {})
      : Array(v.data(), detail::dtype_of<std::remove_const_t<E>>(), sized(s, v.size()), t, false) {}

  /// Uses `data` (row-major) without a copy; `deleter(data)` runs when the last user is gone. The library never writes to it, and it must
  /// not change while an array uses it.
  template <detail::Element E, std::same_as<Shape> S, std::invocable<E*> D>
  Array(E* data, const S& s, D deleter) : Array(std::shared_ptr<void>(data, std::move(deleter)), detail::dtype_of<E>(), s) {}

  bool valid() const noexcept { return value_ != nullptr; }
  const Shape& shape() const;
  /// The size of an axis, negative ones from the end. ShapeError when there is no such axis.
  Dim shape(Axis axis) const;
  int ndim() const;
  /// The number of elements.
  Dim size() const;
  Dtype dtype() const;
  std::int64_t nbytes() const;

  /// The only element, converted to E. ShapeError when there is not exactly one; TraceError while tracing.
  template <detail::Element E>
  E item() const {
    E v;
    copy_out(&v, detail::dtype_of<E>(), "item");
    return v;
  }
  /// All elements in row-major order, converted to E.
  template <detail::Element E>
  std::vector<E> to_vector() const {
    std::size_t n = static_cast<std::size_t>(static_cast<std::int64_t>(size()));
    if constexpr (std::same_as<E, bool>) {
      std::unique_ptr<bool[]> v(new bool[n]);
      copy_out(v.get(), Dtype::bool_, "to_vector");
      return std::vector<bool>(v.get(), v.get() + n);
    } else {
      std::vector<E> v(n);
      copy_out(v.data(), detail::dtype_of<E>(), "to_vector");
      return v;
    }
  }
  /// Row-major elements, alive as long as the value (of a contiguous copy that it keeps, where it is not contiguous itself). DtypeError
  /// when E is not the dtype's type.
  template <detail::Element E>
  const E* data() const {
    return static_cast<const E*>(elements(detail::dtype_of<E>()));
  }
  /// Computes the elements now.
  const Array& eval() const;
  /// Of an array with one element: whether it differs from 0. ShapeError for more; TraceError while tracing.
  explicit operator bool() const;

  // Hidden friends: found only when one side is an Array, so they never compete for (Dim, int) or (int, int).
#define SINTER_BINARY(op) SINTER_API friend Array operator op(const Operand& a, const Operand& b);
  SINTER_BINARY(+)
  SINTER_BINARY(-)
  SINTER_BINARY(*)
  SINTER_BINARY(/)
  SINTER_BINARY(%)
  SINTER_BINARY(==)
  SINTER_BINARY(!=)
  SINTER_BINARY(<)
  SINTER_BINARY(>)
  SINTER_BINARY(<=)
  SINTER_BINARY(>=)
  SINTER_BINARY(&)
  SINTER_BINARY(|)
  SINTER_BINARY(^)
  SINTER_BINARY(<<)
  SINTER_BINARY(>>)
#undef SINTER_BINARY
  SINTER_API friend Array operator-(const Array& a);
  SINTER_API friend Array operator~(const Array& a);
  SINTER_API friend Array operator!(const Array& a);
  friend Array operator+(const Array& a) { return a; }
  // These compete with the builtin (bool, bool) through the explicit conversion, so they must be exact; (bool, Array) stays builtin.
  template <std::same_as<Array> A, std::same_as<Array> B>
  friend Array operator&&(const A& a, const B& b) {
    return a.both(b);
  }
  template <std::same_as<Array> A, std::same_as<Array> B>
  friend Array operator||(const A& a, const B& b) {
    return a.either(b);
  }
#define SINTER_ASSIGN(op) \
  Array& operator op##=(const Operand & o) { return *this = *this op o; }
  SINTER_ASSIGN(+)
  SINTER_ASSIGN(-)
  SINTER_ASSIGN(*)
  SINTER_ASSIGN(/)
  SINTER_ASSIGN(%)
  SINTER_ASSIGN(&)
  SINTER_ASSIGN(|)
  SINTER_ASSIGN(^)
  SINTER_ASSIGN(<<)
  SINTER_ASSIGN(>>)
#undef SINTER_ASSIGN

  // Members of the same meaning as the functions in functions.h.
  Array sum(const Axes& axes = {}, bool keepdims = false) const;
  Array prod(const Axes& axes = {}, bool keepdims = false) const;
  Array mean(const Axes& axes = {}, bool keepdims = false) const;
  Array var(const Axes& axes = {}, bool keepdims = false, int ddof = 0) const;
  Array std(const Axes& axes = {}, bool keepdims = false, int ddof = 0) const;
  Array max(const Axes& axes = {}, bool keepdims = false) const;
  Array min(const Axes& axes = {}, bool keepdims = false) const;
  Array all(const Axes& axes = {}, bool keepdims = false) const;
  Array any(const Axes& axes = {}, bool keepdims = false) const;
  Array argmax(std::optional<Axis> axis = {}, bool keepdims = false) const;
  Array argmin(std::optional<Axis> axis = {}, bool keepdims = false) const;
  Array cumsum(std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true) const;
  Array cumprod(std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true) const;
  Array cummax(std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true) const;
  Array cummin(std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true) const;
  Array logcumsumexp(std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true) const;
  Array sort(std::optional<Axis> axis = {}) const;
  Array argsort(std::optional<Axis> axis = {}) const;
  Array astype(Dtype t) const;
  Array reshape(const Shape& shape) const;
  Array flatten(Axis start_axis = 0, Axis end_axis = -1) const;
  Array squeeze(const Axes& axes = {}) const;
  Array expand_dims(const Axes& axes) const;
  Array transpose(const Axes& axes = {}) const;
  Array swapaxes(Axis a, Axis b) const;
  Array moveaxis(Axis source, Axis destination) const;
  Array T() const;

  // The shared value. For the library.
  detail::Value* get() const noexcept { return value_; }
  template <std::same_as<detail::Value*> P>
  explicit Array(P v) noexcept : value_(v) {
    if (v) detail::retain(v);
  }

 private:
  Array(const Number& v, std::optional<Dtype> t);
  // `literal`: elements of type double give float32 unless `t` says otherwise.
  Array(const void* data, Dtype from, const Shape& shape, std::optional<Dtype> t, bool literal);
  Array(std::shared_ptr<void> owner, Dtype t, const Shape& shape);
  static const Shape& sized(const Shape& shape, std::size_t n);  // ShapeError when it does not have n elements
  void copy_out(void* out, Dtype t, const char* what) const;
  const void* elements(Dtype t) const;
  Array both(const Array& b) const;
  Array either(const Array& b) const;

  detail::Value* value_ = nullptr;
};
static_assert(sizeof(Array) == sizeof(void*));

/// `array(3, dtype=float32)`, `array([1, 2.5], dtype=float32)`: see set_printoptions in io.h.
SINTER_API std::ostream& operator<<(std::ostream& out, const Array& a);

}  // namespace sinter
