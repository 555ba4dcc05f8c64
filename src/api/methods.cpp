// Array's members that repeat a function. Layer: api.
#include "sinter/functions.h"

namespace sinter {

Array Array::sum(const Axes& axes, bool keepdims) const { return sinter::sum(*this, axes, keepdims); }
Array Array::prod(const Axes& axes, bool keepdims) const { return sinter::prod(*this, axes, keepdims); }
Array Array::mean(const Axes& axes, bool keepdims) const { return sinter::mean(*this, axes, keepdims); }
Array Array::var(const Axes& axes, bool keepdims, int ddof) const { return sinter::var(*this, axes, keepdims, ddof); }
Array Array::std(const Axes& axes, bool keepdims, int ddof) const { return sinter::std(*this, axes, keepdims, ddof); }
Array Array::max(const Axes& axes, bool keepdims) const { return sinter::max(*this, axes, keepdims); }
Array Array::min(const Axes& axes, bool keepdims) const { return sinter::min(*this, axes, keepdims); }
Array Array::all(const Axes& axes, bool keepdims) const { return sinter::all(*this, axes, keepdims); }
Array Array::any(const Axes& axes, bool keepdims) const { return sinter::any(*this, axes, keepdims); }
Array Array::argmax(std::optional<Axis> axis, bool keepdims) const { return sinter::argmax(*this, axis, keepdims); }
Array Array::argmin(std::optional<Axis> axis, bool keepdims) const { return sinter::argmin(*this, axis, keepdims); }
Array Array::cumsum(std::optional<Axis> axis, bool reverse, bool inclusive) const {
  return sinter::cumsum(*this, axis, reverse, inclusive);
}
Array Array::cumprod(std::optional<Axis> axis, bool reverse, bool inclusive) const {
  return sinter::cumprod(*this, axis, reverse, inclusive);
}
Array Array::cummax(std::optional<Axis> axis, bool reverse, bool inclusive) const {
  return sinter::cummax(*this, axis, reverse, inclusive);
}
Array Array::cummin(std::optional<Axis> axis, bool reverse, bool inclusive) const {
  return sinter::cummin(*this, axis, reverse, inclusive);
}
Array Array::logcumsumexp(std::optional<Axis> axis, bool reverse, bool inclusive) const {
  return sinter::logcumsumexp(*this, axis, reverse, inclusive);
}
Array Array::sort(std::optional<Axis> axis) const { return sinter::sort(*this, axis); }
Array Array::argsort(std::optional<Axis> axis) const { return sinter::argsort(*this, axis); }
Array Array::astype(Dtype t) const { return sinter::astype(*this, t); }
Array Array::reshape(const Shape& shape) const { return sinter::reshape(*this, shape); }
Array Array::flatten(Axis start_axis, Axis end_axis) const { return sinter::flatten(*this, start_axis, end_axis); }
Array Array::squeeze(const Axes& axes) const { return sinter::squeeze(*this, axes); }
Array Array::expand_dims(const Axes& axes) const { return sinter::expand_dims(*this, axes); }
Array Array::transpose(const Axes& axes) const { return sinter::transpose(*this, axes); }
Array Array::swapaxes(Axis a, Axis b) const { return sinter::swapaxes(*this, a, b); }
Array Array::moveaxis(Axis source, Axis destination) const { return sinter::moveaxis(*this, source, destination); }
Array Array::T() const { return sinter::transpose(*this); }

}  // namespace sinter
