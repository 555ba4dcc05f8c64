// special: the error function and the activations. Layer: ops.
#pragma once
#include "ops/math/hyperbolic.h"
#include "ops/math/power.h"

namespace sinter::ops::math {

inline Val erf(const Val& x) {
  if (is_single(x)) return by_pieces(x, kErf);
  const Val a = magnitude(x);
  // erf(a) = a + a E(a^2) on [0, 1]
  const Val e = polynomial(a * a, {},
                           {0.12837916709551256, -0.3761263890318355, 0.11283791670945253, -0.02686617064327622, 0.005223977607423468,
                            -0.0008548325989696758, 0.00012055295320494294, -1.4924744663335489e-05, 1.6447517677871873e-06,
                            -1.6209175911748696e-07, 1.3722976265924504e-08, -7.801188874097751e-10});
  // erf(a) = 1 - 2^Q(a - 1) from 1 to where the result is 1
  const Val q =
      polynomial(at_most(a, 6) - 1, {},
                 {-2.6684166967815997, -3.8072253458535883, -1.2163466576871425, -0.059959990015939935, 0.014475749837763537,
                  -0.0028535083319042066, 0.0003423754416619461, 3.7937098524085835e-05, -3.9238985439796535e-05, 1.3951787965487083e-05,
                  -3.074752790947126e-06, 2.9480391144045853e-07, 8.403439238096756e-08, -4.829777490809613e-08, 1.2321783813317083e-08,
                  -1.908459826887383e-09, 1.726959431095111e-10, -7.043489539882928e-12});
  const Val n = rint(q);
  const Val far = 1 - scale(exp2_core(q - n), n);
  return with_sign(select(a < 1, fma(a, e, a), far), sign_of(x));
}

/// 3 ulp in both precisions.
inline Val erfinv(const Val& x) {
  // With w = -log(1 - x^2), erfinv(x) / x is a smooth function of w, and for large w of sqrt(w): a fit for each range of w.
  const Val w = -log(fma(-x, x, literal(x, 1)));
  const Val root = sqrt(w);
  const Val near = polynomial(
      w - pick(x, 2.5, 3.125),
      {1.50140941, 0.246640295, -0.00417733938, -0.00125274458, 0.000218282672, -4.96192251e-06, -3.43462648e-06, 4.65893834e-07,
       1.80392501e-08, -8.77292106e-09, 3.35439065e-10},
      {1.6536545626831027,      0.24015818242558826,     -0.006033670871427755,   -0.000740702534153954,   0.00018673420802425736,
       -1.3882523395794358e-05, -1.3654691844350447e-06, 4.2347881908116734e-07,  -2.9070382775029513e-08, -4.1126619802699416e-09,
       1.0512183985437249e-09,  -5.4142388913248673e-11, -1.2976958327232986e-11, 2.6303542880735618e-12,  -8.117007805265565e-14,
       -3.998972840515318e-14,  6.594698860193597e-15,   -4.2871347085452114e-17, -1.3003898247948873e-16, 1.5760191801332205e-17,
       1.144407693926794e-18,   -3.575668592175611e-19,  -1.009007473399675e-21,  3.376053960983761e-21});
  const Val far =
      polynomial(root - pick(x, 3, 5),
                 {2.83297682, 1.00167525, 0.00944530964, -0.00764275296, 0.0056876298, -0.00356717617, 0.00147535827, -0.000119840915,
                  -0.000277869287, 0.000160400232, -2.93018238e-05},
                 {4.849906401408584, 1.0103004648645453, -0.0001387193183807796, -0.00021503011982639081, 7.599527811271288e-05,
                  -1.968177072041769e-05, 4.526052371431004e-06, -9.930292715900614e-07, 2.2905357208539486e-07, -6.755649217712238e-08,
                  2.901657580292202e-08, -1.5254705440374463e-08, 7.824785787359506e-09, -3.4714883941413542e-09, 1.3128467955913702e-09,
                  -4.376026488348243e-10, 7.115197234366014e-11, 4.290748006822692e-11, -2.072074180623348e-11});
  Val p = select(w < pick(x, 5, 6.25), near, far);
  if (!is_single(x)) {
    const Val middle =
        polynomial(root - 3.25, {}, {3.0838856104922208,     1.0052589676941657,     0.005370914553570849,    -0.0037512085082625686,
                                     0.0024914420970211554,  -0.0016882755342625105, 0.0009532893630255017,   -0.00035503783068999557,
                                     2.403126356447018e-05,  6.828724784229923e-05,  -4.7319017651559656e-05, 1.2464437025617568e-05,
                                     2.925829987878785e-06,  -3.984086876207493e-06, 1.4985365292747307e-06,  -3.0251809066321674e-08,
                                     -2.711783740005636e-07, 1.339308957906799e-07,  6.313125129814655e-10,   -1.6183553332150766e-08});
    p = select((w < 6.25) | (w >= 16), p, middle);
  }
  return select(magnitude(x) == 1, x * kInfinity, x * p);
}

/// min(max(x, 0), 6)
inline Val relu6(const Val& x) {
  const Val low = select(x <= 0, 0, x);
  return select(literal(x, 6) < low, 6, low);
}
/// 1 / (1 + e^-x), relatively accurate for negative x too. 2.5 ulp.
inline Val sigmoid(const Val& x) {
  const Val e = exp(-magnitude(x));
  return select(x < 0, e, 1) / (1 + e);
}
// The factor x of the next four is bounded below, so that -infinity gives the limit and not infinity times 0.

/// x sigmoid(x). 3.5 ulp.
inline Val silu(const Val& x) { return at_least(x, -2000) * sigmoid(x); }
/// x (1 + erf(x / sqrt(2))) / 2. Error below 2 ulp of max(|result|, |x| / 4): the sum cancels for negative x, as everywhere.
inline Val gelu(const Val& x) { return at_least(x, -2000) * fma(erf(x * 0.70710678118654752440), literal(x, 0.5), literal(x, 0.5)); }
/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 = x sigmoid(2 sqrt(2 / pi) (...)): the argument's rounding counts |argument| times.
inline Val gelu_tanh(const Val& x) {
  const Val c = clamp(x, -2000, 2000);
  return at_least(x, -2000) * sigmoid(c * fma(c * c, 0.071354816272600, literal(x, 1.5957691216057308)));
}
/// log(1 + e^x). 2 ulp.
inline Val softplus(const Val& x) { return select(x <= 0, 0, x) + log1p(exp(-magnitude(x))); }
/// x tanh(softplus(x)). 5 ulp.
inline Val mish(const Val& x) {
  // With e = e^x: tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2), 1 from x = 20 (40) on.
  const Val e = exp(at_most(x, pick(x, 20, 40)));
  const Val n = e * (e + 2);
  return at_least(x, -2000) * (n / (n + 2));
}
/// 3 ulp.
inline Val elu(const Val& x, const Val& alpha) { return select(x < 0, alpha * expm1(x), x); }
/// Klambauer and others (2017): scale (x, or alpha (e^x - 1)). 4 ulp.
inline Val selu(const Val& x) {
  return select(x < 0, expm1(x) * (1.0507009873554804934193349852946 * 1.6732632423543772848170429916717),
                x * 1.0507009873554804934193349852946);
}
/// x min(max(x + 3, 0), 6) / 6
inline Val hardswish(const Val& x) { return at_least(x, -3) * (clamp(x + 3, 0, 6) / 6); }

}  // namespace sinter::ops::math
