// integer: division, powers and shifts of integers, defined for every operand. Layer: ops.
#pragma once
#include "ops/math/basic.h"

namespace sinter::ops::math {

struct Quotient {
  Val quotient, remainder;
};
/// Rounded towards minus infinity: the remainder has y's sign. By 0: both 0. The minimum by -1 wraps.
inline Quotient divide_integers(const Val& x, const Val& y) {
  const Val zero = y == 0;
  if (!is_signed(x.dtype)) {
    const Val divisor = select(zero, 1, y);
    const Val q = x / divisor;
    return {select(zero, 0, q), x - q * divisor};  // x % 1 is 0
  }
  const Val minimum = bits(x, x.dtype, std::uint64_t{1} << (8 * size_of(x.dtype) - 1));
  const Val divisor = select(zero | ((y == -1) & (x == minimum)), 1, y);
  const Val q = x / divisor;
  const Val r = x - q * divisor;
  const Val lower = (r != 0) & ((r ^ divisor) < 0);
  return {select(zero, 0, select(lower, q - 1, q)), select(lower, r + divisor, r)};
}

/// Wraps. A negative exponent gives 0, but for the bases 1 and -1.
inline Val power_of_integers(const Val& x, const Val& y) {
  const bool with_sign = is_signed(x.dtype);
  const Val exponent = with_sign ? select(y < 0, y & 1, y) : y;  // of 1 and -1 only the parity matters
  const std::vector<Val> end = x.machine->loop(
      {exponent, x, literal(x, 1)}, [](std::span<const Val> s) -> Val { return s[0] != 0; },
      [](std::span<const Val> s) -> std::vector<Val> { return {s[0] >> 1, s[1] * s[1], select((s[0] & 1) != 0, s[2] * s[1], s[2])}; });
  if (!with_sign) return end[2];
  return select((y < 0) & (x != 1) & (x != -1), 0, end[2]);
}

// By the width or more, or by a negative amount: every bit is shifted out.

inline Val out_of_range(const Val& amount) {
  const int width = 8 * size_of(amount.dtype);
  return is_signed(amount.dtype) ? (amount < 0) | (amount >= width) : amount >= width;
}
inline Val left_shift(const Val& x, const Val& amount) {
  const Val out = out_of_range(amount);
  return select(out, 0, x << select(out, 0, amount));
}
inline Val right_shift(const Val& x, const Val& amount) {
  const Val out = out_of_range(amount);
  if (is_signed(x.dtype)) return x >> select(out, 8 * size_of(x.dtype) - 1, amount);
  return select(out, 0, x >> select(out, 0, amount));
}

}  // namespace sinter::ops::math
