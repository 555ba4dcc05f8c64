// basic: signs, tests, rounding, comparisons and clamps; and what the other files of ops/math share. Layer: ops.
#pragma once
#include <initializer_list>
#include <limits>

#include "ops/val.h"

namespace sinter::ops::math {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kDegree = 57.295779513082320877;    // 180 / pi
inline constexpr double kRadian = 0.017453292519943295769;  // pi / 180

inline bool is_single(const Val& x) { return x.dtype == Dtype::float32; }
/// The number for x's precision.
inline double pick(const Val& x, double single, double twice) { return is_single(x) ? single : twice; }

inline Val fma(const Val& a, const Val& b, const Val& c) { return emit(Prim::fma, a.dtype, {a, b, c}); }
inline Val fma(const Val& a, double b, const Val& c) { return fma(a, literal(a, b), c); }
inline Val fma(double a, const Val& b, const Val& c) { return fma(literal(b, a), b, c); }
inline Val rint(const Val& x) { return emit(Prim::rint, x.dtype, {x}); }
/// Of a float: |x|.
inline Val magnitude(const Val& x) { return emit(Prim::abs, x.dtype, {x}); }
inline Val sqrt(const Val& x) { return emit(Prim::sqrt, x.dtype, {x}); }
/// x * 2^n for integral n of x's dtype.
inline Val scale(const Val& x, const Val& n) { return emit(Prim::scale, x.dtype, {x, n}); }

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule: the set for x's precision.
inline Val polynomial(const Val& x, std::initializer_list<double> single, std::initializer_list<double> twice) {
  const std::span<const double> c = is_single(x) ? std::span(single.begin(), single.size()) : std::span(twice.begin(), twice.size());
  Val sum = literal(x, c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, literal(x, c[i]));
  return sum;
}

// Floats as integers.

inline Dtype unsigned_word(const Val& x) { return is_single(x) ? Dtype::uint32 : Dtype::uint64; }
inline Dtype signed_word(const Val& x) { return is_single(x) ? Dtype::int32 : Dtype::int64; }
inline Val word_of(const Val& x) { return bitcast(x, unsigned_word(x)); }
/// The sign bit of a float, alone in its word.
inline Val sign_of(const Val& x) { return word_of(x) & bits(x, unsigned_word(x), is_single(x) ? 0x80000000 : 0x8000000000000000); }
/// Flips x's sign where the word `sign` has its sign bit.
inline Val with_sign(const Val& x, const Val& sign) { return bitcast(word_of(x) ^ sign, x.dtype); }

// Clamps by a number that keep a NaN: one instruction in vector code.

inline Val at_most(const Val& x, double high) { return select(literal(x, high) < x, high, x); }
inline Val at_least(const Val& x, double low) { return select(x < low, low, x); }
inline Val clamp(const Val& x, double low, double high) { return at_least(at_most(x, high), low); }

// Tests: false for integers and bool, but isfinite.

inline Val never(const Val& x) { return literal(x, Dtype::bool_, 0); }
inline Val isnan(const Val& x) { return is_floating(x.dtype) ? x != x : never(x); }
inline Val isinf(const Val& x) { return is_floating(x.dtype) ? magnitude(x) == kInfinity : never(x); }
inline Val isposinf(const Val& x) { return is_floating(x.dtype) ? x == kInfinity : never(x); }
inline Val isneginf(const Val& x) { return is_floating(x.dtype) ? x == -kInfinity : never(x); }
inline Val isfinite(const Val& x) { return is_floating(x.dtype) ? magnitude(x) < kInfinity : literal(x, Dtype::bool_, 1); }

inline Val less(const Val& x, const Val& y) { return x.dtype == Dtype::bool_ ? (!x) & y : x < y; }
inline Val less_equal(const Val& x, const Val& y) { return x.dtype == Dtype::bool_ ? (!x) | y : x <= y; }

// Signs and rounding: bool and integers with nothing to do stay as they are.

inline Val abs(const Val& x) {
  if (is_floating(x.dtype)) return magnitude(x);
  return is_signed(x.dtype) ? select(x < 0, -x, x) : x;  // the minimum wraps to itself
}
/// -1, 0 or 1; NaN and signed zeros stay.
inline Val sign(const Val& x) {
  if (x.dtype == Dtype::bool_) return x;
  if (kind(x.dtype) == Kind::Unsigned) return select(x == 0, 0, literal(x, 1));
  return select(x > 0, 1, select(x < 0, -1, x));
}
inline Val round_by(Prim prim, const Val& x) { return is_floating(x.dtype) ? emit(prim, x.dtype, {x}) : x; }
inline Val floor(const Val& x) { return round_by(Prim::floor, x); }
inline Val ceil(const Val& x) { return round_by(Prim::ceil, x); }
inline Val trunc(const Val& x) { return round_by(Prim::trunc, x); }
/// Half to even.
inline Val round(const Val& x) { return round_by(Prim::rint, x); }
inline Val with_sign_of(const Val& x, const Val& y) { return with_sign(magnitude(x), sign_of(y)); }
/// Which sign a NaN has depends on the order of operands, so no result may: as with one that is positive.
inline Val copysign(const Val& x, const Val& y) { return select(isnan(y), magnitude(x), with_sign_of(x, y)); }

// Arithmetic; of bool: or, and.

inline Val add(const Val& x, const Val& y) { return x.dtype == Dtype::bool_ ? x | y : x + y; }
inline Val multiply(const Val& x, const Val& y) { return x.dtype == Dtype::bool_ ? x & y : x * y; }
inline Val multiply_add(const Val& x, const Val& y, const Val& z) { return is_floating(x.dtype) ? fma(x, y, z) : x * y + z; }

/// NaN if either is; +0 exceeds -0.
inline Val maximum(const Val& x, const Val& y) {
  if (is_floating(x.dtype)) return emit(Prim::max, x.dtype, {x, y});
  return x.dtype == Dtype::bool_ ? x | y : select(y < x, x, y);
}
inline Val minimum(const Val& x, const Val& y) {
  if (is_floating(x.dtype)) return emit(Prim::min, x.dtype, {x, y});
  return x.dtype == Dtype::bool_ ? x & y : select(x < y, x, y);
}
inline Val clip(const Val& x, const Val& low, const Val& high) { return minimum(maximum(x, low), high); }

/// x + t (y - x), from the nearer end: exact at t = 0 and t = 1, and where x equals y.
inline Val lerp(const Val& x, const Val& y, const Val& t) {
  const Val step = y - x;
  return select(t < 0.5, fma(step, t, x), fma(step, t - 1, y));
}

}  // namespace sinter::ops::math
