// pieces: odd functions by short polynomials whose coefficients are looked up. float32 alone. Layer: ops.
#pragma once
#include "ops/math/basic.h"

namespace sinter::ops::math {

/// An odd function f that goes to 1. With t = |x| + origin, the interval that (bits of t) >> shift names, mod 16, has a centre c, and with
/// h = |x| - c a polynomial f(c) + h P(h). Intervals are wider as |x| grows: an octave of t has 2^(23 - shift). From `limit` on f is 1.
///
/// In the first one c and f(c) are 0, and f is |x| + |x| P(|x|): P is small there, and so is the error relative to f. |x| is the larger of
/// f(c) and h there, and f(c) everywhere else.
struct Pieces {
  double origin, limit;
  int shift;
  Table centre, start;                  // c, f(c)
  std::span<const Table> coefficients;  // of P, that of power 0 first
};

inline Val by_pieces(const Val& x, const Pieces& p) {
  const Val a = at_most(magnitude(x), p.limit);
  const Val interval = word_of(a + p.origin) >> p.shift;
  const Val h = a - lookup(interval, p.centre);
  const Val start = lookup(interval, p.start);
  Val sum = lookup(interval, p.coefficients.back());
  for (std::size_t i = p.coefficients.size() - 1; i-- > 0;) sum = fma(sum, h, lookup(interval, p.coefficients[i]));
  return with_sign(fma(sum, h, select(start < h, h, start)), sign_of(x));
}

}  // namespace sinter::ops::math
