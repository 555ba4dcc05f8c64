// pieces: odd functions by short polynomials whose coefficients are looked up. float32 alone. Layer: ops.
#pragma once
#include <cmath>

#include "ops/math/basic.h"

namespace sinter::ops::math {

/// An odd function f that goes to 1. With t = |x| + origin, the interval that (bits of t) >> shift names, mod 16, has a centre c, and with
/// h = |x| - c a polynomial f(c) + h P(h). In the first one it is |x| + |x| P(|x|): P is small there, and so is the error relative to f.
/// Intervals are wider as |x| grows: an octave of t has 2^(23 - shift). From `limit` on f is 1.
struct Pieces {
  double origin, limit;  // 1 <= origin < 2
  int shift;
  Table centre, start;                  // c, f(c)
  std::span<const Table> coefficients;  // of P, that of power 0 first
};

inline Val by_pieces(const Val& x, const Pieces& p) {
  const Val a = at_most(magnitude(x), p.limit);
  const Val t = a + p.origin;
  const Val interval = word_of(t) >> p.shift;
  const Val h = a - lookup(interval, p.centre);
  Val sum = lookup(interval, p.coefficients.back());
  for (std::size_t i = p.coefficients.size() - 1; i-- > 0;) sum = fma(sum, h, lookup(interval, p.coefficients[i]));
  const Val start = select(t < p.origin + std::ldexp(1, p.shift - 23), a, lookup(interval, p.start));
  return with_sign(fma(sum, h, start), sign_of(x));
}

}  // namespace sinter::ops::math
