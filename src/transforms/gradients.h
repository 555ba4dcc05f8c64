// Gradients: the functions that the gradient columns of elementwise.def call besides those of the table. Layer: transforms.
//
// What does not matter, as the operand that maximum() does not choose, has the cotangent 0, and 0 times an infinite derivative is NaN.
// Hence `ratio` and `times`, which keep a zero g zero at singular points alone, so that derivatives with respect to g stay right elsewhere.
// What where() does not take is kept silent for every line (elementwise.cpp).
#pragma once
#include "transforms/sym.h"

namespace sinter::transforms {

inline constexpr double kLn2 = 0.69314718055994530942;
inline constexpr double kLn10 = 2.30258509299404568402;
inline constexpr double kDegree = 57.295779513082320877;    // 180 / pi
inline constexpr double kRadian = 0.017453292519943295769;  // pi / 180
inline constexpr double kTwoOverRootPi = 1.12837916709551257390;
inline constexpr double kHalfRootPi = 0.88622692545275801365;
inline constexpr double kRootHalf = 0.70710678118654752440;
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

/// g / d; 0 where g is 0 and d is 0 or NaN.
inline Sym ratio(const Sym& g, const Sym& d) { return g / where(abs(d) > 0, d, where(g == 0, 1, d)); }
/// g * d; 0 where g is 0 and d is infinite or NaN.
inline Sym times(const Sym& g, const Sym& d) { return g * where(isfinite(d), d, where(g == 0, 0, d)); }
/// g where the operand is chosen alone, half of it where both are.
inline Sym share(const Sym& g, const Sym& alone, const Sym& both) { return where(both, 0.5 * g, where(alone, g, 0)); }

/// |x|' is the sign of x, 0 at 0; of complex x, x / |x|.
inline Sym abs_gradient(const Sym& g, const Sym& x, const Sym& out) {
  if (!is_complex(x.dtype())) return g * sign(x);
  const Sym zero = out == 0;
  return cast(where(zero, 0, g / where(zero, 1, out)), Dtype::complex64) * x;
}
inline Sym real_gradient(const Sym& g, const Sym& x) { return cast(g, x.dtype()); }
inline Sym imag_gradient(const Sym& g, const Sym& x) {
  return is_complex(x.dtype()) ? cast(g, Dtype::complex64) * imaginary_unit(x) : kZero;
}

/// y x^(y - 1), and 0 for y = 0 whatever x is.
inline Sym power_base(const Sym& g, const Sym& x, const Sym& y) { return times(g, y * power(x, where(y == 0, 1, y - 1))); }
/// x^y log(x), and 0 at x = 0 (for y > 0, the limit). NaN for negative x, where only whole y have a power.
inline Sym power_exponent(const Sym& g, const Sym& x, const Sym& out) { return times(g, out * log(where(x == 0, 1, x))); }
/// e^x / (e^x + e^y)
inline Sym softmax_of_two(const Sym& x, const Sym& y) { return where(logical_and(isinf(x), x == y), 0.5, sigmoid(x - y)); }

/// A factor x of a product whose other factor is 0 long before: so that it is 0 for infinite x, too.
inline Sym bounded(const Sym& x) { return clip(x, -2000, 2000); }

/// Phi(x) + x phi(x), with the normal distribution's Phi and phi.
inline Sym gelu_slope(const Sym& x) {
  constexpr double kDensity = 0.39894228040143267794;  // 1 / sqrt(2 pi)
  return 0.5 * erf(x * kRootHalf) + 0.5 + bounded(x) * (kDensity * exp(-0.5 * square(x)));
}
/// Not 1 + x - silu(x), which has no digits left for large x.
inline Sym silu_slope(const Sym& x) {
  const Sym s = sigmoid(x);
  return s * (1 + bounded(x) * (1 - s));
}
inline Sym gelu_tanh_slope(const Sym& x) {
  constexpr double kScale = 0.79788456080286535588, kCubic = 0.044715;  // sqrt(2 / pi)
  const Sym square_of_x = minimum(square(x), 400);  // beyond, tanh is 1 in every dtype, and 1 - tanh^2 is 0: so it need not overflow
  const Sym t = tanh(kScale * (x * (1 + kCubic * square_of_x)));
  return 0.5 * (1 + t) + (0.5 * kScale) * bounded(x) * (1 - square(t)) * (1 + (3 * kCubic) * square_of_x);
}
inline Sym mish_slope(const Sym& x) {
  const Sym t = tanh(softplus(x));
  return t + bounded(x) * sigmoid(x) * (1 - square(t));
}
inline Sym hardswish_slope(const Sym& x) { return where(x < -3, 0, where(x > 3, 1, (2 * x + 3) / 6)); }

// clip is minimum(maximum(x, low), high), and shares where these do.
inline Sym clip_high(const Sym& g, const Sym& x, const Sym& low, const Sym& high) {
  const Sym m = maximum(x, low);
  return share(g, high < m, m == high);
}
inline Sym clip_inner(const Sym& g, const Sym& x, const Sym& low, const Sym& high) {
  const Sym m = maximum(x, low);
  return share(g, m < high, m == high);
}
inline Sym clip_x(const Sym& g, const Sym& x, const Sym& low, const Sym& high) {
  return share(clip_inner(g, x, low, high), x > low, x == low);
}
inline Sym clip_low(const Sym& g, const Sym& x, const Sym& low, const Sym& high) {
  return share(clip_inner(g, x, low, high), low > x, x == low);
}

}  // namespace sinter::transforms
