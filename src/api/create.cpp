// Creation of arrays. Layer: api.
#include <cmath>
#include <numbers>

#include "api/common.h"

namespace sinter {
namespace {

Array filled(const char* what, const Shape& shape, const Number& v, Dtype t) {
  api::check_sizes(what, shape, t);
  return engine::constant(t, api::encode(v, t), shape);
}

// start + i * step, i < n.
Array ramp(const Number& start, const Number& step, const Dim& n, Dtype t) {
  return engine::make(api::Op::Arange, {api::scalar(start, t), api::scalar(step, t)}, {0}, t, Shape{n});
}

[[noreturn]] void arange_error(const char* wrong, const Number& start, const Number& stop, const Number& step) {
  throw Error(str("arange: ", wrong, "; got start ", start.real(), ", stop ", stop.real(), ", step ", step.real(),
                  "; use real, finite numbers and a step that is not 0"));
}

// Steps from start to stop, rounded up.
Dim count(const Number& start, const Number& stop, const Number& step) {
  if (is_complex(start.dtype()) || is_complex(stop.dtype()) || is_complex(step.dtype()))
    arange_error("an argument is complex", start, stop, step);
  if (!std::isfinite(start.real()) || !std::isfinite(stop.real()) || !std::isfinite(step.real()))
    arange_error("an argument is not finite", start, stop, step);
  if (step.real() == 0) arange_error("the step is 0", start, stop, step);
  if (is_floating(start.dtype()) || is_floating(stop.dtype()) || is_floating(step.dtype())) {
    const double n = std::ceil((stop.real() - start.real()) / step.real());
    if (!(n < 0x1p62)) arange_error("there would be too many elements", start, stop, step);
    return n > 0 ? static_cast<std::int64_t>(n) : 0;
  }
  if (base::changes(start.dim()) || base::changes(stop.dim()) || base::changes(step.dim())) {
    Dim span = api::integer_of(stop) - api::integer_of(start), by = api::integer_of(step);
    if (by < 0) span = -span, by = -by;
    if (by == 1) return span >= 0 ? span : Dim(0);
    return span > 0 ? (span + by - 1) / by : Dim(0);
  }
  auto wide = [](const Number& v) {
    return is_signed(v.dtype()) ? static_cast<__int128>(static_cast<std::int64_t>(v.integer())) : static_cast<__int128>(v.integer());
  };
  __int128 span = wide(stop) - wide(start), by = wide(step);
  if (by < 0) span = -span, by = -by;
  const __int128 n = span <= 0 ? 0 : (span + by - 1) / by;
  if (n >> 62 != 0) arange_error("there would be too many elements", start, stop, step);
  return static_cast<std::int64_t>(n);
}

// int32 or wider for integers: arange(uint8_t(3)) counts as arange(3) does.
Dtype ramp_type(const Number& v) {
  return kind(v.dtype()) == Kind::Bool || size_of(v.dtype()) < 4 ? (is_floating(v.dtype()) ? v.dtype() : Dtype::int32) : v.dtype();
}

// a0 - a1 cos(2 pi i / (n - 1)) + a2 cos(4 pi i / (n - 1)).
Array cosine_window(const char* what, Dim n, double a0, double a1, double a2) {
  if (n == 1) return ones({1});
  api::check_sizes(what, {n}, Dtype::float32);
  const Number turn(n - 1, [](std::int64_t steps) { return 2 * std::numbers::pi / static_cast<double>(steps); });
  const Array angle = multiply(ramp(0, 1, n, Dtype::float32), api::operand(turn));
  const Array window = a0 - a1 * cos(angle);
  return a2 == 0 ? window : window + a2 * cos(2 * angle);
}

}  // namespace

Array zeros(const Shape& shape, Dtype t) { return filled("zeros", shape, 0, t); }
Array ones(const Shape& shape, Dtype t) { return filled("ones", shape, 1, t); }
Array full(const Shape& shape, const Operand& value, std::optional<Dtype> t) {
  if (value.array() == nullptr) return filled("full", shape, value.number(), t.value_or(value.number().dtype()));
  const Array v = api::to_array(value, "full");
  api::check_sizes("full", shape, t.value_or(v.dtype()));
  const Shape both[] = {v.shape(), shape};
  if (!(api::broadcast_shapes("full", both) == shape)) {
    throw ShapeError(
        str("full: the value does not broadcast to the shape; got ", v.shape(), " and ", shape, "; make the value's axes equal or 1"));
  }
  return engine::broadcast(engine::cast(v, t.value_or(v.dtype())), shape);
}
Array zeros_like(const Array& x) { return filled("zeros_like", engine::value_of(x, "zeros_like").shape, 0, x.dtype()); }
Array ones_like(const Array& x) { return filled("ones_like", engine::value_of(x, "ones_like").shape, 1, x.dtype()); }
Array full_like(const Array& x, const Operand& value, std::optional<Dtype> t) {
  return full(engine::value_of(x, "full_like").shape, value, t.value_or(x.dtype()));
}

Array arange(const Number& stop, std::optional<Dtype> t) { return arange(0, stop, 1, t); }
Array arange(const Number& start, const Number& stop, const Number& step, std::optional<Dtype> t) {
  const Dim n = count(start, stop, step);
  const Dtype own = promote_types(promote_types(ramp_type(start), ramp_type(stop)), ramp_type(step));
  if (t == Dtype::bool_) throw DtypeError("arange: the dtype has no numbers; got bool; use an integer or floating dtype");
  if (is_floating(own) && t && is_integer(*t)) return engine::cast(ramp(start, step, n, own), *t);
  return ramp(start, step, n, t.value_or(own));
}

Array linspace(const Number& start, const Number& stop, Dim num, Dtype t) {
  if (num < 0) throw ShapeError(str("linspace: the number of points is negative; got ", num, "; use 0 or more"));
  const Dtype compute = t == Dtype::float64 ? t : Dtype::float32;
  if (num == 1) return filled("linspace", {1}, start, t);
  // Exact at both ends.
  const Array at = ramp(0, 1, num, compute) / api::operand({num - 1, [](std::int64_t n) { return static_cast<double>(n); }});
  return astype((1 - at) * api::scalar(start, compute) + at * api::scalar(stop, compute), t);
}

namespace {

// Column index - row index against k.
struct Grid {
  Array row, column;
  Grid(const char* what, Dim n, Dim m, int k) {
    api::check_sizes(what, {n, m}, Dtype::float64);
    row = expand_dims(ramp(k, 1, n, Dtype::int64), 1);
    column = ramp(0, 1, m, Dtype::int64);
  }
};

Array triangle(const char* what, const Array& x, int k, bool lower) {
  const Shape& s = api::shape_of(x, what);
  if (s.size() < 2) throw ShapeError(str(what, ": the array has fewer than 2 axes; got shape ", s, "; give a matrix"));
  const Grid g(what, s[s.size() - 2], s.back(), lower ? k : k - 1);
  const Array below = g.column <= g.row;
  return lower ? where(below, x, zeros_like(x)) : where(below, zeros_like(x), x);
}

}  // namespace

Array eye(Dim n, std::optional<Dim> m, int k, Dtype t) {
  const Grid g("eye", n, m.value_or(n), k);
  return astype(g.column == g.row, t);
}
Array identity(Dim n, Dtype t) { return eye(n, n, 0, t); }
Array tri(Dim n, std::optional<Dim> m, int k, Dtype t) {
  const Grid g("tri", n, m.value_or(n), k);
  return astype(g.column <= g.row, t);
}
Array tril(const Array& x, int k) { return triangle("tril", x, k, true); }
Array triu(const Array& x, int k) { return triangle("triu", x, k, false); }

std::vector<Array> meshgrid(const std::vector<Array>& x, bool sparse, std::string_view indexing) {
  if (indexing != "xy" && indexing != "ij") throw Error(str("meshgrid: unknown indexing; got \"", indexing, "\"; use \"xy\" or \"ij\""));
  std::vector<Array> result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Shape& s = api::shape_of(x[i], "meshgrid");
    if (s.size() > 1) throw ShapeError(str("meshgrid: an array has more than 1 axis; got shape ", s, "; give vectors"));
    Shape sizes;
    const std::size_t at = indexing == "xy" && i < 2 && x.size() > 1 ? 1 - i : i;
    for (std::size_t k = 0; k < x.size(); ++k) sizes.push_back(k == at ? s.product() : Dim(1));
    result.push_back(api::reshaped(x[i], sizes));
  }
  return sparse ? result : broadcast_arrays(result);
}

Array hamming(Dim n) { return cosine_window("hamming", n, 0.54, 0.46, 0); }
Array hanning(Dim n) { return cosine_window("hanning", n, 0.5, 0.5, 0); }
Array blackman(Dim n) { return cosine_window("blackman", n, 0.42, 0.5, 0.08); }
Array bartlett(Dim n) {
  if (n == 1) return ones({1});
  api::check_sizes("bartlett", {n}, Dtype::float32);
  const Array at = ramp(0, 1, n, Dtype::float32) * api::operand({n - 1, [](std::int64_t steps) { return 2 / static_cast<double>(steps); }});
  return minimum(at, 2 - at);
}

}  // namespace sinter
