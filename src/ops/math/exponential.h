// exponential: exp, log and their relatives. Layer: ops.
#pragma once
#include "ops/math/tables.h"

namespace sinter::ops::math {

// 2^r = 1 + r q(r) on [-1/2, 1/2]. (Returns all of it.)
inline Val exp2_core(const Val& r) {
  return polynomial(
      r, {1, 0.693147182, 0.240226507, 0.0555032752, 0.00961800385, 0.00134004035, 0.000154764319},
      {1, 0.6931471805599453, 0.24022650695910133, 0.05550410866482174, 0.009618129107593047, 0.0013333558146378496, 0.0001540353045847195,
       1.5252733868046262e-05, 1.3215434607023924e-06, 1.0178046258501627e-07, 7.073898400170323e-09, 4.4574166832147616e-10});
}

struct ExpParts {
  Val n, r;  // x = n ln 2 + r, |r| <= ln 2 / 2
};
inline ExpParts exp_parts(const Val& x) {
  const Val n = rint(x * 1.4426950408889634);
  // The first fma is exact: n times the upper part of ln 2 is a multiple of its last bit, and the difference is small.
  const Val upper = fma(n, pick(x, -0x1.62e43p-1, -0x1.62e42fefa39efp-1), x);
  return {n, fma(n, pick(x, 0x1.05c61p-29, -0x1.abc9e3b39803fp-56), upper)};
}

// e^r = 1 + r + r^2 q(r) on [-ln 2 / 2, ln 2 / 2]
inline Val exp_rest(const Val& r) {
  return polynomial(r, {0.49999994, 0.166665211, 0.041668389, 0.00836874451, 0.00138145441},
                    {0.5000000000000011, 0.1666666666666641, 0.04166666666652972, 0.008333333333494937, 0.001388888894376177,
                     0.00019841269505833917, 2.480149294808297e-05, 2.755758676881831e-06, 2.763030672000301e-07, 2.5000025046717848e-08});
}

/// e^x 2^shift, which may be finite where e^x is not; at `high` it must have overflowed.
inline Val exp_shifted(const Val& x, double high, int shift) {
  const auto [n, r] = exp_parts(clamp(x, pick(x, -104, -746), high));
  const Val one = literal(x, 1);
  return scale(fma(fma(exp_rest(r), r, one), r, one), shift == 0 ? n : n + shift);
}
inline Val exp(const Val& x) { return exp_shifted(x, pick(x, 89, 710), 0); }

inline Val exp2(const Val& x) {
  const Val c = clamp(x, pick(x, -152, -1080), pick(x, 129, 1025));
  const Val n = rint(c);
  return scale(exp2_core(c - n), n);
}

/// (e^x - 1) / 2, relatively accurate near 0 and finite as far as sinh is. Loses the sign of zero and low bits of denormals.
inline Val half_expm1(const Val& x) {
  const auto [n, r] = exp_parts(clamp(x, pick(x, -30, -60), pick(x, 89.7, 710.7)));
  // e^x = 2^n (1 + r + r^2 q), computed to a quarter of what is wanted, so that nothing overflows early. The first fma is nearly exact
  // where the result is small.
  const Val s = scale(literal(x, 1), n - 2);
  return 2 * fma(r * r * exp_rest(r), s, fma(r, s, s - 0.25));
}
inline Val expm1(const Val& x) { return select(magnitude(x) < pick(x, 0x1p-26, 0x1p-55), x, 2 * half_expm1(x)); }

struct LogParts {
  Val e, f;  // x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
};
/// Denormals are normalised first, unless x has none.
inline LogParts log_parts(const Val& x, bool denormals = true) {
  const bool single = is_single(x);
  const int fraction = single ? 23 : 52;
  const Val tiny = denormals ? x < pick(x, 0x1p-126, 0x1p-1022) : never(x);
  const Val word = bitcast(denormals ? select(tiny, x * pick(x, 0x1p23, 0x1p52), x) : x, signed_word(x));
  const Val k = (word - bits(x, word.dtype, single ? 0x3f3504f3 : 0x3fe6a09e667f3bcd)) >> fraction;  // sqrt(1/2) and up: exponent 0
  const Val e = convert(k, x.dtype);
  return {denormals ? e - select(tiny, fraction, literal(x, 0)) : e, bitcast(word - (k << fraction), x.dtype) - 1};
}

/// log(1 + f) - f for f as in LogParts.
inline Val log_rest(const Val& f) {
  if (is_single(f)) {
    // log(1 + f) = f - f^2/2 + f^3 P(f)
    const Val square = f * f;
    const Val p =
        polynomial(f, {0.333333164, -0.250008106, 0.200022906, -0.166245386, 0.141810969, -0.131288543, 0.128823057, -0.0786005333}, {});
    return fma(square, literal(f, -0.5), square * f * p);
  }
  // With s = f / (2 + f) and z = s^2: log(1 + f) = 2 atanh(s) = 2s + 2 s z R(z), and 2s = f - f^2/2 + s f^2/2.
  const Val s = f / (f + 2);
  const Val z = s * s;
  const Val r = polynomial(z, {},
                           {0.6666666666666734, 0.3999999999941361, 0.28571428742692627, 0.22222198544048082, 0.18183565951062862,
                            0.15314006298036214, 0.14796418093436090}) *
                z;  // 2 z R
  const Val half = 0.5 * f * f;
  return fma(s, half + r, -half);
}

/// Puts log's values at 0, below it, at infinity and NaN into r.
inline Val log_edges(const Val& x, const Val& r) {
  return select(x < kInfinity, select(x <= 0, select(x < 0, kNan, literal(x, -kInfinity)), r), x);
}
/// e ln 2 + log(1 + f)
inline Val log_sum(const LogParts& x) {
  const Val rest = fma(x.e, pick(x.e, -0x1.05c61p-29, 0x1.abc9e3b39803fp-56), log_rest(x.f));
  return fma(x.e, pick(x.e, 0x1.62e43p-1, 0x1.62e42fefa39efp-1), x.f + rest);
}

/// In float32: x = m 2^e, and c from a table with c m = 1 + r, |r| <= 1/16, gives e ln 2 - log(c) + log(1 + r). Next to 1 the first two
/// are 0. Exponent and mantissa are such that all edges come out right: 0, negative numbers, infinity and NaN.
inline Val log_single(const Val& x) {
  const Val m = emit(Prim::mantissa, x.dtype, {x}), e = emit(Prim::exponent, x.dtype, {x});
  const Val interval = word_of(m) >> 19;
  const Val r = fma(m, lookup(interval, kLogInverse), literal(x, -1));
  const Val square = r * r;
  const Val q = fma(square, fma(kLogQ[3], r, literal(r, kLogQ[2])), fma(kLogQ[1], r, literal(r, kLogQ[0])));
  const Val rest = lookup(interval, kLogStart) + fma(square, q, r);
  return fma(e, 0.69314718055994530942, rest);
}

inline Val log(const Val& x) { return is_single(x) ? log_single(x) : log_edges(x, log_sum(log_parts(x))); }

inline Val log2(const Val& x) {
  const auto [e, f] = log_parts(x);
  const double upper = pick(x, 0x1.715476p0, 0x1.71547652b82fep0), lower = pick(x, 0x1.4ae0cp-26, 0x1.777d0ffda0d24p-56);  // 1 / ln 2
  const Val rest = fma(f, lower, log_rest(f) * upper);
  return log_edges(x, e + fma(f, upper, rest));
}

inline Val log10(const Val& x) {
  const auto [e, f] = log_parts(x);
  const double upper = pick(x, 0x1.bcb7b2p-2, 0x1.bcb7b1526e50ep-2), lower = pick(x, -0x1.5b235ep-27, 0x1.95355baaafad3p-57);  // 1 / ln 10
  const Val rest = fma(e, pick(x, -0x1.ec10cp-27, -0x1.9dc1da994fd21p-59), fma(f, lower, log_rest(f) * upper));
  return log_edges(x, fma(e, pick(x, 0x1.344136p-2, 0x1.34413509f79ffp-2), fma(f, upper, rest)));  // log10(2)
}

/// log(1 + x) + extra * ln 2
inline Val log1p_plus(const Val& x, const Val* extra) {
  const Val u = x + 1;
  const Val e = log_parts(u, false).e;
  // 1 + x = 2^e (1 + f) without the rounding of u: x 2^-e is exact, and so is 2^-e - 1 where it matters.
  const Val down = -e;
  const Val f = scale(x, down) + (scale(literal(x, 1), down) - 1);
  return log_edges(u, log_sum({extra != nullptr ? e + *extra : e, f}));
}
inline Val log1p(const Val& x) { return select(x == 0, x, log1p_plus(x, nullptr)); }

/// log(e^x + e^y). The error is relative to the larger of |maximum(x, y)| and the correction, not to a result near 0.
/// 2 ulp of it.
inline Val logaddexp(const Val& x, const Val& y) {
  const Val distance = select(x == y, 0, -magnitude(x - y));  // equal infinities too
  return maximum(x, y) + log1p(exp(distance));
}

}  // namespace sinter::ops::math
