// The elementwise functions, all by one reading of the table; the operators; composites of them. Layer: api.
#include <cmath>
#include <limits>

#include "api/common.h"

namespace sinter {

#define OP1(Name, function, ...) \
  Array function(const Operand& x) { return api::elementwise(ops::Op::Name, {&x}); }
#define OP2(Name, function, ...) \
  Array function(const Operand& x, const Operand& y) { return api::elementwise(ops::Op::Name, {&x, &y}); }
#define OP3(Name, function, ...) \
  Array function(const Operand& x, const Operand& y, const Operand& z) { return api::elementwise(ops::Op::Name, {&x, &y, &z}); }
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3

#define BINARY(op, function) \
  Array operator op(const Operand& a, const Operand& b) { return function(a, b); }
BINARY(+, add)
BINARY(-, subtract)
BINARY(*, multiply)
BINARY(/, divide)
BINARY(%, remainder)
BINARY(==, equal)
BINARY(!=, not_equal)
BINARY(<, less)
BINARY(>, greater)
BINARY(<=, less_equal)
BINARY(>=, greater_equal)
BINARY(&, bitwise_and)
BINARY(|, bitwise_or)
BINARY(^, bitwise_xor)
BINARY(<<, left_shift)
BINARY(>>, right_shift)
#undef BINARY
Array operator-(const Array& a) { return negative(a); }
Array operator~(const Array& a) { return bitwise_invert(a); }
Array operator!(const Array& a) { return logical_not(a); }
Array Array::both(const Array& b) const { return logical_and(*this, b); }
Array Array::either(const Array& b) const { return logical_or(*this, b); }

Array astype(const Operand& x, Dtype t) {
  if (x.array() == nullptr) return api::scalar(x.number(), t);
  engine::operand_of(*x.array(), "astype");
  return engine::cast(*x.array(), t);
}

namespace {

// x to multiples of `unit`, halves to the even multiple, in integers alone: a float would not hold all of them.
Array round_integers(const Array& x, int digits) {
  const iinfo limits(x.dtype());
  std::uint64_t unit = 1;
  for (int i = 0; i < digits; ++i) {
    if (unit > limits.max / 10) return zeros_like(x);
    unit *= 10;
  }
  const Array q = floor_divide(x, unit), r = remainder(x, unit), rest = unit - r;
  const Array up = greater(r, rest) || (equal(r, rest) && equal(bitwise_and(q, 1), 1));
  return multiply(add(q, astype(up, x.dtype())), unit);
}

}  // namespace

Array round(const Operand& operand, int decimals) {
  const Array x = api::to_array(operand, "round");
  if (decimals == 0) return round(x);
  if (is_integer(x.dtype())) return decimals > 0 ? x : round_integers(x, -decimals);
  const double unit = std::pow(10.0, std::abs(decimals));
  return decimals > 0 ? round(x * unit) / unit : round(x / unit) * unit;
}

std::vector<Array> divmod(const Operand& x, const Operand& y) { return {floor_divide(x, y), remainder(x, y)}; }

Array clip(const Operand& x, std::nullopt_t, const Operand& high) { return api::elementwise(ops::Op::Minimum, {&x, &high}, "clip"); }
Array clip(const Operand& x, const Operand& low, std::nullopt_t) { return api::elementwise(ops::Op::Maximum, {&x, &low}, "clip"); }
Array elu(const Operand& x) { return elu(x, 1); }
Array leaky_relu(const Operand& x) { return leaky_relu(x, 0.01); }

Array nan_to_num(const Operand& operand, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  const Array x = api::to_array(operand, "nan_to_num");
  if (is_complex(x.dtype())) throw DtypeError("nan_to_num: takes real numbers; got complex64; use it on real() and imag()");
  if (!is_floating(x.dtype())) return x;
  const finfo limits(x.dtype());
  return where(isnan(x), nan, where(isposinf(x), posinf.value_or(limits.max), where(isneginf(x), neginf.value_or(limits.min), x)));
}

Array isclose(const Operand& a, const Operand& b, double rtol, double atol, bool equal_nan) {
  // Integers are compared as float64, for unsigned differences would wrap.
  const Operand* const operands[] = {&a, &b};
  const std::vector<Dtype> types = api::operand_types("isclose", operands);
  const Dtype t = promote_types(types[0], types[1]);
  const Dtype compute = is_floating(t) || is_complex(t) ? t : Dtype::float64;
  const Array x = astype(a, compute), y = astype(b, compute);
  Array close = less_equal(abs(x - y), atol + rtol * abs(y)) && isfinite(y);
  close = close || equal(x, y);
  return equal_nan ? close || (isnan(x) && isnan(y)) : close;
}

Array allclose(const Operand& a, const Operand& b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, rtol, atol, equal_nan));
}

Array array_equal(const Operand& a, const Operand& b, bool equal_nan) {
  const Array x = api::to_array(a, "array_equal"), y = api::to_array(b, "array_equal");
  if (!(x.shape() == y.shape())) return api::scalar(false);
  const Dtype t = result_type({a, b});
  const bool nans = equal_nan && (is_floating(t) || is_complex(t));
  const Array same = equal(a, b);
  return all(nans ? same || (isnan(x) && isnan(y)) : same);
}

}  // namespace sinter
