// power: powers of floats, hypot, and division with remainder of floats and integers. Layer: ops.
#pragma once
#include "ops/math/exponential.h"
#include "ops/math/integer.h"

namespace sinter::ops::math {

/// 2^(y log2 a) of a > 0 in float32, by way of float64: log2 to 2^-44, and its product with y, exact there, is rounded once.
inline Val power_core_single(const Val& a, const Val& y) {
  const auto [e, f] = log_parts(convert(a, Dtype::float64), false);
  const Val s = f / (f + 2);
  const Val z = s * s;
  // log2(1 + f) = 2 / ln 2 (s + s z R(z))
  Val r = literal(z, 0.0979225487 * 2.8853900817779268);
  for (const double c : {0.110880822, 0.142860547, 0.199999973, 0.333333343, 1.0}) r = fma(r, z, literal(z, c * 2.8853900817779268));
  const Val exponent = clamp((e + s * r) * convert(y, Dtype::float64), -300, 300);
  const Val n = rint(exponent);
  const Val t = exponent - n;
  Val p = literal(t, 0.000154764319);
  for (const double c : {0.00134004035, 0.00961800385, 0.0555032752, 0.240226507, 0.693147182, 1.0}) p = fma(p, t, literal(t, c));
  return convert(scale(p, n), Dtype::float32);
}

/// The same in float64, with log2 as a sum of two numbers, good to 2^-66.
inline Val power_core_double(const Val& a, const Val& y) {
  const auto [e, f] = log_parts(a);
  // s = f / (2 + f) = s0 + s1
  const Val d0 = f + 2;
  const Val d1 = f - (d0 - 2);
  const Val inverse = 1 / d0;
  const Val s0 = f * inverse;
  const Val s1 = (fma(-s0, d0, f) - s0 * d1) * inverse;
  // z = s^2 = z0 + z1;  c = 1/3 + z R(z) = c0 + c1;  u = z c = u0 + u1
  const Val z0 = s0 * s0;
  const Val z1 = fma(s0, s0, -z0) + 2 * s0 * s1;
  const Val r = polynomial(z0, {},
                           {0.1999999999999999, 0.14285714285722567, 0.11111111108765347, 0.0909090943551247, 0.07692278411202136,
                            0.06668159646735856, 0.05837390181054253, 0.05994665803692347}) *
                z0;
  const Val c0 = r + 0x1.5555555555555p-2;
  const Val c1 = (r - (c0 - 0x1.5555555555555p-2)) + fma(z1, 0.2, literal(z1, 0x1.5555555555555p-56));
  const Val u0 = z0 * c0;
  const Val u1 = fma(z0, c0, -u0) + fma(z0, c1, z1 * c0);
  // atanh(s) = s (1 + u) = l0 + l1
  const Val v0 = s0 * u0;
  const Val v1 = fma(s0, u0, -v0) + fma(s0, u1, fma(s1, u0, s1));
  const Val l0 = s0 + v0;
  const Val l1 = (v0 - (l0 - s0)) + v1;
  // log2(a) = e + 2 / ln 2 l = g0 + g1
  const Val p0 = l0 * 0x1.71547652b82fep1;
  const Val p1 = fma(l0, 0x1.71547652b82fep1, -p0) + fma(l0, 0x1.777d0ffda0d24p-55, l1 * 0x1.71547652b82fep1);
  const Val g0 = e + p0;
  const Val g1 = (p0 - (g0 - e)) + p1;
  const Val exponent = y * g0;
  const Val inside = magnitude(exponent) < 1100;
  const Val rest = select(inside, fma(y, g0, -exponent) + y * g1, 0);
  const Val bounded = clamp(exponent, -1100, 1100);
  const Val n = rint(bounded);
  return scale(exp2_core((bounded - n) + rest), n);
}

/// 1 ulp or better in both precisions. power(x, 0) and power(1, y) are 1.
inline Val power(const Val& x, const Val& y) {
  if (!is_floating(x.dtype)) return power_of_integers(x, y);
  const Val a = magnitude(x);
  const Val ordinary = (a > 0) & (a < kInfinity);
  const Val inner = select(ordinary, a, 1);
  const Val core = is_single(x) ? power_core_single(inner, y) : power_core_double(inner, y);
  // 0 and infinity go to 0 or infinity.
  const Val edge = select((y < 0) ^ (a == 0), literal(x, 0), literal(x, kInfinity));
  const Val value = select(ordinary, core, select(a == a, edge, a));
  // A negative base: an integral y decides the sign, another has no real power but of infinity and 0.
  const Val integral = rint(y) == y;
  const Val odd = integral & (rint(y * 0.5) != y * 0.5);
  const Val negative = sign_of(x) != 0;
  const Val flipped = select(odd & negative, -value, value);
  const Val real = select((x < 0) & (a < kInfinity) & !integral & (y == y), kNan, flipped);
  const Val infinite_of_one = (a == 1) & (magnitude(y) == kInfinity);  // -1 to an infinite power is 1
  return select((y == 0) | (x == 1) | infinite_of_one, 1, select(y == y, real, y));
}

/// sqrt(x^2 + y^2) without overflow in between; infinite if an operand is, even beside NaN.
inline Val hypot(const Val& x, const Val& y) {
  const Val a = magnitude(x), b = magnitude(y);
  const Val larger = select(a < b, b, a), smaller = select(a < b, a, b);
  // Times a power of two that brings the larger to [2, 4); its exponent field is kept off both ends, where the power has no inverse.
  const Dtype word = unsigned_word(x);
  const Val field = word_of(larger) & bits(x, word, is_single(x) ? 0x7f800000 : 0x7ff0000000000000);
  const Val lowest = bits(x, word, is_single(x) ? 0x00800000 : 0x0010000000000000);
  const Val unit = select(field < lowest, lowest, field);
  const Val down = bitcast(bits(x, word, is_single(x) ? 0x7f800000 : 0x7ff0000000000000) - unit, x.dtype);
  const Val p = larger * down, q = smaller * down;
  const Val root = sqrt(fma(p, p, q * q)) * 0.5 * bitcast(unit, x.dtype);
  return select((a == kInfinity) | (b == kInfinity), kInfinity, select(b == b, root, b));
}

/// The exponent e of a = m 2^e, 1 <= m < 2, of a > 0, denormals too; an integer.
inline Val exponent_of(const Val& a) {
  const Val tiny = a < pick(a, 0x1p-126, 0x1p-1022);
  const Val word = bitcast(select(tiny, a * pick(a, 0x1p23, 0x1p52), a), signed_word(a));
  return (word >> (is_single(a) ? 23 : 52)) - select(tiny, is_single(a) ? 150 : 1075, literal(word, is_single(a) ? 127 : 1023));
}

/// C's fmod, exact. Each turn takes the quotient's upper 22 (51) bits off.
inline Val fmod(const Val& x, const Val& y) {
  const Val b = magnitude(y), a = magnitude(x);
  const Val valid = (a < kInfinity) & (b > 0);
  const Val divisor = select(b > 0, b, 1);  // NaN becomes 1, and makes the result NaN below
  const Val lowest = exponent_of(divisor);
  const int step = is_single(x) ? 22 : 51;
  const std::vector<Val> end = x.machine->loop(
      {select(valid & (b < kInfinity), a, 0)}, [&](std::span<const Val> s) -> Val { return divisor <= s[0]; },
      [&](std::span<const Val> s) -> std::vector<Val> {
        const Val distance = exponent_of(s[0]) - lowest - step;
        const Val c = scale(divisor, convert(select(distance < 0, 0, distance), x.dtype));
        // The quotient is below 2^24 (2^53); rounding can make it 1 too large. The difference is a multiple of c's last bit: exact.
        const Val rest = fma(-trunc(s[0] / c), c, s[0]);
        return {select(rest < 0, rest + c, rest)};
      });
  const Val r = select(b == kInfinity, a, end[0]);
  return select(valid, with_sign(r, sign_of(x)), kNan);
}

/// Has the divisor's sign and lies in [0, y) (or (y, 0]), exact but for one rounding where signs differ. By 0, of infinity: NaN.
inline Val remainder(const Val& x, const Val& y) {
  if (!is_floating(x.dtype)) return divide_integers(x, y).remainder;
  const Val r = fmod(x, y);
  const Val other = (r != 0) & ((r < 0) ^ (y < 0));
  const Val moved = r + y;
  // A tiny r of the other sign would round to y itself: the last number before it then.
  const Val word = word_of(y);
  const Val before = bitcast(word - 1, x.dtype);
  const Val inside = select((moved == y) & (magnitude(y) < kInfinity), before, moved);
  return select(other, inside, select(r == 0, with_sign_of(literal(x, 0), y), r));
}

/// floor of the exact quotient, rounded; consistent with remainder. By 0: x / y.
inline Val floor_divide(const Val& x, const Val& y) {
  if (!is_floating(x.dtype)) return divide_integers(x, y).quotient;
  const Val r = fmod(x, y);
  const Val other = (r != 0) & ((r < 0) ^ (y < 0));
  const Val quotient = (x - r) / y;  // near an integer
  const Val whole = rint(select(other, quotient - 1, quotient));
  return select(y == 0, x / y, select(whole == 0, with_sign_of(literal(x, 0), x / y), whole));
}

}  // namespace sinter::ops::math
