// hyperbolic: sinh, cosh, tanh and their inverses. Layer: ops.
#pragma once
#include "ops/math/exponential.h"

namespace sinter::ops::math {

inline Val sinh(const Val& x) {
  const Val a = magnitude(x);
  const Val z = a * a;
  // sinh(a) = a + a^3 P(a^2) on [0, 1]
  const Val p = polynomial(z, {0.166666672, 0.00833335053, 0.000198360663, 2.81743837e-06},
                           {0.16666666666666669, 0.008333333333333139, 0.00019841269841437676, 2.7557319155338455e-06,
                            2.5052123398343493e-08, 1.6057240354846006e-10, 7.759311869486227e-13});
  const Val near = fma(a * z, p, a);
  const Val h = half_expm1(a);
  const Val bounded = at_most(h, 0x1p60);  // the quotient is 1/2 from here on
  const Val far = h + bounded / (2 * bounded + 1);
  return with_sign(select(a < 1, near, far), sign_of(x));
}

inline Val cosh(const Val& x) {
  const Val h = exp_shifted(magnitude(x), pick(x, 90, 711), -1);
  return h + 0.25 / h;
}

inline Val tanh(const Val& x) {
  if (is_single(x)) return by_pieces(x, kTanh);
  const Val a = magnitude(x);
  const Val z = a * a;
  // tanh(a) = a + a^3 P(a^2) on [0, 5/8]
  const Val p = polynomial(z, {},
                           {-0.33333333333333315, 0.13333333333329891, -0.05396825396613467, 0.02186948847066007, -0.008863234341584003,
                            0.00359211427197472, -0.0014557276205960524, 0.0005894586369321795, -0.000237030158940114, 9.15898647112403e-05,
                            -3.0218027381027165e-05, 6.055659648315272e-06});
  const Val near = fma(a * z, p, a);
  const Val far = 1 - 2 / (exp(a + a) + 1);
  return with_sign(select(a < 0.625, near, far), sign_of(x));
}

/// asinh(a) = a + a^3 P(a^2) on [0, 1/2], given z = a^2
inline Val arcsinh_near(const Val& a, const Val& z) {
  const Val p = polynomial(
      z, {-0.166666433, 0.0749866292, -0.0443858653, 0.028175557, -0.0132480981},
      {-0.16666666666665708, 0.07499999999773871, -0.04464285695717021, 0.03038193682352517, -0.02237197671650863, 0.017350004736270606,
       -0.013937242958578675, 0.011365501687109454, -0.008910736477751953, 0.005797464334851486, -0.0021867356212399306});
  return fma(a * z, p, a);
}
// From here on log(2a) is asinh and acosh: log1p(a - 1) + ln 2.
inline double large_argument(const Val& x) { return pick(x, 0x1p13, 0x1p28); }

/// 2 ulp in float32.
inline Val arcsinh(const Val& x) {
  const Val a = magnitude(x);
  const Val z = a * a;
  const Val large = a > large_argument(x);
  const Val u = select(large, a - 1, a + z / (1 + sqrt(z + 1)));
  const Val one = select(large, 1, literal(x, 0));
  return with_sign(select(a < 0.5, arcsinh_near(a, z), log1p_plus(u, &one)), sign_of(x));
}

inline Val arccosh(const Val& x) {
  const Val large = x > large_argument(x);
  const Val t = x - 1;
  const Val u = select(large, t, t + sqrt(fma(t, t, 2 * t)));
  const Val one = select(large, 1, literal(x, 0));
  // Near 1 it is 2 asinh(sqrt(t / 2)).
  const Val near = 2 * arcsinh_near(sqrt(0.5 * t), 0.5 * t);
  return select(x < 1.5, near, log1p_plus(u, &one));
}

inline Val arctanh(const Val& x) {
  const Val a = magnitude(x);
  const Val z = a * a;
  // atanh(a) = a + a^3 P(a^2) on [0, 1/2]
  const Val p = polynomial(z, {0.333332986, 0.200025856, 0.142215148, 0.118337691, 0.0509914011, 0.177189872},
                           {0.3333333333333402, 0.19999999999787382, 0.14285714308768077, 0.11111109853730923, 0.09090949457918468,
                            0.07691477497342795, 0.06678148540063479, 0.05772747826278755, 0.05991518717136036, 0.014225159633651951,
                            0.1457431531269141, -0.1540330979248338, 0.22547907223168});
  const Val near = fma(a * z, p, a);
  const Val far = 0.5 * log1p_plus((a + a) / (1 - a), nullptr);
  return with_sign(select(a < 0.5, near, far), sign_of(x));
}

}  // namespace sinter::ops::math
