// Sorting: one operation gives positions, and the rest reads at them. Layer: api.
#include "api/common.h"

namespace sinter {
namespace {

struct Line {
  Array x;
  int axis;
};
Line line(const char* what, const Array& x, std::optional<Axis> axis) {
  const Shape& s = api::shape_of(x, what);
  api::require_order(what, x);
  const Line l = axis ? Line{x, api::axis_of(what, *axis, s)} : Line{api::reshaped(x, {x.size()}), 0};
  if (const Dim n = l.x.shape(l.axis); n > std::int64_t{0xffffffff})
    throw ShapeError(str(what, ": the axis is too long: positions are uint32; got ", n, " elements; sort parts"));
  return l;
}
Array positions(const Line& l) {
  if (api::is_empty(l.x.shape())) return zeros(l.x.shape(), uint32);
  return engine::make(api::Op::ArgSort, {l.x}, {l.axis}, uint32, l.x.shape());
}

}  // namespace

Array sort(const Array& x, std::optional<Axis> axis) {
  const Line l = line("sort", x, axis);
  return api::is_empty(l.x.shape()) ? l.x : take_along_axis(l.x, positions(l), l.axis);
}
Array argsort(const Array& x, std::optional<Axis> axis) { return positions(line("argsort", x, axis)); }

}  // namespace sinter
