// trigonometric: sin, cos, tan for every magnitude, and their inverses. Layer: ops.
#pragma once
#include <vector>

#include "ops/math/basic.h"

namespace sinter::ops::math {

// |x| = q pi/2 + r + tail modulo 2 pi: |r| <= pi/4 (a little more where q was rounded the other way), q in 0 .. 3.
struct Quadrant {
  Val r, tail, q;
};

inline Val select_bit(const Val& word, std::uint64_t mask, const Val& set, const Val& clear) {
  return select((word & bits(word, word.dtype, mask)) != 0, set, clear);
}
/// 64 bits of a : b, from bit `shift` (0 .. 63) on.
inline Val funnel(const Val& a, const Val& b, const Val& shift) { return (a << shift) | ((b >> 1) >> (63 - shift)); }

// Payne and Hanek's reduction of a = m 2^s, m an integer: only those bits of 2/pi count whose product with a lies below 4, and a
// window of them is multiplied exactly. `kBits` begins with zeros, so that a window starts inside for the smallest a it serves.

/// float32 a >= 2^14: a product of 24 by 96 bits.
inline Quadrant far_quadrant_single(const Val& a) {
  static constexpr std::uint64_t kBits[4] = {0x00145f306dc9c882, 0xa53f84eafa3ea69b, 0xb81b6c52b3278872, 0x083fca2c757bd778};
  const Val word = convert(bitcast(a, Dtype::uint32), Dtype::uint64);
  const auto table = [&](int i) { return bits(word, Dtype::uint64, kBits[i]); };
  const Val m = (word & 0x7fffff) | 0x800000;
  const Val start = ((word >> 23) - 141) & 127;  // s + 9
  const Val w0 = select_bit(start, 64, table(1), table(0));
  const Val w1 = select_bit(start, 64, table(2), table(1));
  const Val w2 = select_bit(start, 64, table(3), table(2));
  const Val shift = start & 63;
  const Val product = m * funnel(w0, w1, shift) + ((m * (funnel(w1, w2, shift) >> 32)) >> 32);  // in units of 2^-62 quadrants
  const Val q = (product + bits(word, Dtype::uint64, std::uint64_t{1} << 61)) >> 62;
  const Val rest = convert(bitcast(product - (q << 62), Dtype::int64), Dtype::float64) * (0x1.921fb54442d18p0 * 0x1p-62);
  const Val r = convert(rest, Dtype::float32);
  return {r, convert(rest - convert(r, Dtype::float64), Dtype::float32), convert(q, Dtype::int32)};
}

/// The upper 64 bits of a product of 64-bit words.
inline Val multiply_high(const Val& a, const Val& b) {
  const Val mask = bits(a, Dtype::uint64, 0xffffffff);
  const Val a0 = a & mask, a1 = a >> 32, b0 = b & mask, b1 = b >> 32;
  const Val low = a0 * b0, left = a0 * b1, right = a1 * b0;
  const Val middle = (low >> 32) + (left & mask) + (right & mask);
  return a1 * b1 + (left >> 32) + (right >> 32) + (middle >> 32);
}

/// float64 a >= 2^20: a product of 53 by 192 bits, of which the upper 128 are kept.
inline Quadrant far_quadrant_double(const Val& a) {
  static constexpr std::uint64_t kBits[19] = {0x0000000028be60db, 0x9391054a7f09d5f4, 0x7d4d377036d8a566, 0x4f10e4107f9458ea,
                                              0xf7aef1586dc91b8e, 0x909374b801924bba, 0x827464873f877ac7, 0x2c4a69cfba208d7d,
                                              0x4baed1213a671c09, 0xad17df904e64758e, 0x60d4ce7d272117e2, 0xef7e4a0ec7fe25ff,
                                              0xf7816603fbcbc462, 0xd6829b47db4d9fb3, 0xc9f2c26dd3d18fd9, 0xa797fa8b5d49eeb1,
                                              0xfaf97c5ecf41ce7d, 0xe294a4ba9afed7ec, 0x47e357421580cc11};
  const Val word = bitcast(a, Dtype::uint64);
  const Val m = (word & bits(word, Dtype::uint64, 0xfffffffffffff)) | bits(word, Dtype::uint64, 0x10000000000000);
  const Val start = ((word >> 52) - 1043) & 1023;  // s + 32
  // The four words from start / 64 on, by halving the choice.
  std::vector<Val> window;
  for (const std::uint64_t w : kBits) window.push_back(bits(word, Dtype::uint64, w));
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i + half < window.size(); ++i) window[i] = select_bit(start, 64 * half, window[i + half], window[i]);
    window.resize(half + 3, word);
  }
  const Val shift = start & 63;
  const Val w0 = funnel(window[0], window[1], shift), w1 = funnel(window[1], window[2], shift), w2 = funnel(window[2], window[3], shift);
  const Val low = m * w1 + multiply_high(m, w2);  // units of 2^-126 quadrants
  const Val high = m * w0 + multiply_high(m, w1) + convert(low < multiply_high(m, w2), Dtype::uint64);
  const Val q = (high + bits(word, Dtype::uint64, std::uint64_t{1} << 61)) >> 62;
  // high : low as a sum of two float64, times pi/2 as such a sum.
  const Val whole = bitcast(high - (q << 62), Dtype::int64);
  const Val upper = convert(whole, Dtype::float64);
  const Val lower = convert(whole - convert(upper, Dtype::int64), Dtype::float64) + convert(low, Dtype::float64) * 0x1p-64;
  const Val sum = upper + lower;
  const Val left = (lower - (sum - upper)) * 0x1p-62;
  const Val f = sum * 0x1p-62;
  const Val r = f * 0x1.921fb54442d18p0;
  const Val tail = fma(f, 0x1.921fb54442d18p0, -r) + fma(f, 0x1.1a62633145c07p-54, left * 0x1.921fb54442d18p0);
  return {r, tail, convert(q, Dtype::int64)};
}

inline Quadrant quadrant(const Val& x) {
  const Val a = magnitude(x);
  const double limit = pick(x, 0x1p14, 0x1p20);
  const Val n = rint(a * 0.63661977236758134308);
  // Cody and Waite: pi/2 in three parts. The first difference is exact.
  const Val first = fma(n, pick(x, -0x1.921fb6p0, -0x1.921fb54442d18p0), a);
  // The second is done in two parts, so that r keeps its precision where it cancels.
  const double second = pick(x, 0x1.777a5cp-25, -0x1.1a62633145c07p-54);
  const Val product = n * second;
  const Val r = first + product;
  const Val lower = fma(n, pick(x, 0x1.ee59dap-50, 0x1.f1976b7ed8fbcp-110), fma(n, second, -product));
  const Val tail = (product - (r - first)) + lower;
  const Val near = a <= limit;
  const Val q = convert(select(near, n, 0), signed_word(x)) & 3;
  // Beyond: a loop that runs at most once, and only if a lane needs it. NaN and infinity have r = NaN and stay.
  const Val far = (limit < a) & (a < kInfinity);
  const std::vector<Val> end = x.machine->loop(
      {r, tail, select(far, -1, q)}, [](std::span<const Val> s) -> Val { return s[2] < 0; },
      [&](std::span<const Val>) -> std::vector<Val> {
        const Quadrant reduced = is_single(a) ? far_quadrant_single(a) : far_quadrant_double(a);
        return {reduced.r, reduced.tail, reduced.q};
      });
  return {end[0], end[1], end[2]};
}

inline Val sin_core(const Quadrant& x) {
  // sin(r) = r + r^3 S(r^2)
  const Val z = x.r * x.r;
  const Val s = polynomial(z, {-0.166666552, 0.00833217613, -0.000195169763},
                           {-0.16666666666666632, 0.00833333333332237, -0.00019841269829771075, 2.7557313678627536e-06,
                            -2.5050755955003074e-08, 1.5896666128726806e-10});
  return x.r + fma(x.r * z, s, x.tail);
}
inline Val cos_core(const Quadrant& x) {
  // cos(r) = 1 - r^2/2 + r^4 C(r^2)
  const Val z = x.r * x.r;
  const Val c = polynomial(z, {0.0416666456, -0.00138873642, 2.44380917e-05},
                           {0.0416666666666666, -0.0013888888888874068, 2.4801587289444966e-05, -2.7557314340914803e-07,
                            2.08757216423317e-09, -1.1359559717569232e-11});
  return fma(z, fma(z, c, literal(z, -0.5)), literal(z, 1));
}
/// q's bit 1 as a sign.
inline Val quadrant_sign(const Val& q, const Val& x) { return bitcast((q & 2) << (is_single(x) ? 30 : 62), unsigned_word(x)); }

inline Val sin(const Val& x) {
  const Quadrant y = quadrant(x);
  const Val r = select((y.q & 1) != 0, cos_core(y), sin_core(y));
  return with_sign(r, quadrant_sign(y.q, x) ^ sign_of(x));
}
inline Val cos(const Val& x) {
  const Quadrant y = quadrant(x);
  const Val r = select((y.q & 1) != 0, sin_core(y), cos_core(y));
  return with_sign(r, quadrant_sign(y.q + 1, x));
}
inline Val tan(const Val& x) {
  const Quadrant y = quadrant(x);
  // tan(r) = r + r^3 T(r^2); its derivative carries the tail.
  const Val z = y.r * y.r;
  const Val t =
      polynomial(z, {0.333333522, 0.133326054, 0.0540661328, 0.0212518442, 0.010910661, -1.23749999e-06, 0.00441930024},
                 {0.33333333333332704, 0.1333333333342391, 0.0539682539224717, 0.021869489704463296, 0.008863217883690403,
                  0.0035923001136718654, 0.0014546937552732664, 0.0005953242302921473, 0.00022164300116003338, 0.00013799074105212003,
                  -2.838409260079319e-05, 9.123190708148566e-05, -4.580911129446737e-05, 2.1081283368345844e-05});
  const Val more = fma(y.r * z, t, fma(y.tail, z, y.tail));
  const Val r = y.r + more;
  // -1 / tan, corrected by what r lost and by the division's own error.
  const Val lost = more - (r - y.r);
  const Val inverse = -1 / r;
  const Val corrected = fma(inverse, fma(inverse, lost, fma(inverse, r, literal(r, 1))), inverse);
  return with_sign(select((y.q & 1) != 0, corrected, r), sign_of(x));
}

// pi/2 in two parts.
inline double half_pi(const Val& x) { return pick(x, 0x1.921fb6p0, 0x1.921fb54442d18p0); }
inline double half_pi_rest(const Val& x) { return pick(x, -0x1.777a5cp-25, 0x1.1a62633145c07p-54); }

// asin(s) = s + s z A(z), z = s^2, on [0, 1/2]; beyond, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
struct ArcSinParts {
  Val far, s, rest;  // rest = s z A(z)
};
inline ArcSinParts arcsin_parts(const Val& a) {
  const Val far = a > 0.5;
  const Val z = select(far, (1 - a) * 0.5, a * a);
  const Val s = select(far, sqrt(z), a);
  const Val p = polynomial(
      z, {0.166667536, 0.0749524236, 0.0454770699, 0.0241477359, 0.0422183461},
      {0.16666666666665383, 0.0750000000034306, 0.04464285682347774, 0.03038195933121314, 0.0223717535284023, 0.017359770985932436,
       0.013884599949625386, 0.012173268509157087, 0.006510902516268487, 0.0195737687150395, -0.016293857334509953, 0.03195881878191489});
  return {far, s, s * z * p};
}
inline Val arcsin(const Val& x) {
  const auto [far, s, rest] = arcsin_parts(magnitude(x));
  const Val twice = 2 * s;
  const Val difference = half_pi(x) - twice;
  const Val lost = (half_pi(x) - difference) - twice;  // its rounding, exactly
  const Val beyond = difference + (lost - (2 * rest - half_pi_rest(x)));
  return with_sign(select(far, beyond, s + rest), sign_of(x));
}
inline Val arccos(const Val& x) {
  const auto [far, s, rest] = arcsin_parts(magnitude(x));
  const Val sign = sign_of(x);
  const Val near = half_pi(x) - (with_sign(s, sign) + (with_sign(rest, sign) - half_pi_rest(x)));
  const Val beyond = select(x < 0, 2 * (half_pi(x) - (s + (rest - half_pi_rest(x)))), 2 * (s + rest));
  return select(far, beyond, near);
}

/// atan(u) - u = u z T(z), z = u^2, on [0, 1].
inline Val arctan_rest(const Val& u) {
  const Val z = u * u;
  return u * z *
         polynomial(z,
                    {-0.333333015, 0.199986383, -0.142652482, 0.109575875, -0.0841948986, 0.0582350418, -0.0314561538, 0.0110646626,
                     -0.00182725792},
                    {-0.33333333333333093, 0.19999999999955445,  -0.14285714282802786,  0.11111111013666648,     -0.0909090711951847,
                     0.07692281189603223,  -0.06666415018967542, 0.05880592673511142,   -0.052538060508704444,   0.04723294956008314,
                     -0.04221721755583176, 0.036693601947975475, -0.02998567967538668,  0.022085275082809185,    -0.013995097664174911,
                     0.007263433972676436, -0.00291938099357919, 0.0008434985468209874, -0.00015480013171750067, 1.3489595331894106e-05});
}
inline Val arctan(const Val& x) {
  const Val a = magnitude(x);
  const Val far = a > 1;
  const Val u = select(far, 1 / a, a);
  const Val rest = arctan_rest(u);
  return with_sign(select(far, half_pi(x) - (u + (rest - half_pi_rest(x))), u + rest), sign_of(x));
}
/// The angle of the point (x, y). 2 ulp in float32.
inline Val arctan2(const Val& y, const Val& x) {
  const Val ay = magnitude(y), ax = magnitude(x);
  const Val steep = ax < ay;
  const Val numerator = select(steep, ax, ay), denominator = select(steep, ay, ax);
  const Val quotient = numerator / select(denominator == 0, 1, denominator);
  const Val u = select((numerator == kInfinity) & (denominator == kInfinity), 1, quotient);
  const Val left = sign_of(x) != 0;
  // +-t from 0, pi/2 or pi, whose lower parts go with t.
  const Val t = u + arctan_rest(u);
  const Val turns = select(steep, 1, select(left, 2, literal(x, 0)));
  const Val signed_t = select(steep ^ left, -t, t);
  return with_sign(fma(turns, half_pi(x), fma(turns, half_pi_rest(x), signed_t)), sign_of(y));
}

}  // namespace sinter::ops::math
