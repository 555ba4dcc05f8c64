// Array's members: construction from data, facts, looking at elements. Those that repeat a function are in methods.cpp. Layer: api.
#include "sinter/array.h"

#include <limits>
#include <mutex>

#include "api/common.h"
#include "base/fork_mutex.h"
#include "engine/trace.h"

namespace sinter {

using engine::value_of;

Number::Number(const Dim& d, double (*f)(std::int64_t)) : dtype_(f ? Dtype::float32 : Dtype::int32), dim_(d), of_dim_(f) {
  const std::int64_t n = base::peek(d);
  real_ = f ? f(n) : static_cast<double>(n);
  integer_ = f ? 0 : static_cast<std::uint64_t>(n);
  if (!f && (d > std::numeric_limits<std::int32_t>::max() || d < std::numeric_limits<std::int32_t>::min())) dtype_ = Dtype::int64;
}

double Number::half_value(std::uint16_t bits, Dtype t) noexcept {
  float v = 0;
  api::convert(&bits, t, &v, Dtype::float32, 1);
  return v;
}

Array::Array(const Number& v, std::optional<Dtype> t) : Array(api::scalar(v, t.value_or(v.dtype()))) {}

Array::Array(const void* data, Dtype from, const Shape& shape, std::optional<Dtype> t, bool literal) {
  const Dtype to = t ? *t : literal && from == Dtype::float64 ? Dtype::float32 : from;
  api::check_sizes("Array", shape, to);
  const std::int64_t n = shape.product();
  runtime::BufferRef buffer = runtime::allocate(static_cast<std::size_t>(n * size_of(to)));
  api::convert(data, from, buffer.data(), to, n);
  *this = engine::make_ready(std::move(buffer), {0, graph::row_major(shape)}, to, shape);
}

Array::Array(std::shared_ptr<void> owner, Dtype t, const Shape& shape) {
  api::check_sizes("Array", shape, t);
  void* data = owner.get();
  const std::size_t bytes = static_cast<std::size_t>(static_cast<std::int64_t>(shape.product()) * size_of(t));
  runtime::BufferRef buffer = runtime::adopt(data, bytes, [owner = std::move(owner)](void*) mutable { owner.reset(); });
  *this = engine::make_ready(std::move(buffer), {0, graph::row_major(shape)}, t, shape);
}

const Shape& Array::sized(const Shape& shape, std::size_t n) {
  api::check_sizes("Array", shape, Dtype::uint8);
  if (shape.product() != n)
    throw ShapeError(str("Array: the number of elements does not fit the shape; got ", n, " for ", shape, "; give ", shape.product()));
  return shape;
}

const Shape& Array::shape() const { return value_of(*this, "shape").shape; }
Dim Array::shape(Axis axis) const {
  const Shape& s = shape();
  return s[static_cast<std::size_t>(api::axis_of("shape", axis, s))];
}
int Array::ndim() const { return static_cast<int>(value_of(*this, "ndim").shape.size()); }
Dim Array::size() const { return value_of(*this, "size").shape.product(); }
Dtype Array::dtype() const { return value_of(*this, "dtype").dtype; }
std::int64_t Array::nbytes() const { return size() * static_cast<std::int64_t>(size_of(dtype())); }

const Array& Array::eval() const {
  value_of(*this, "eval");
  engine::evaluate({this, 1});
  return *this;
}

namespace {

const char* first_element(const Array& evaluated) {
  const detail::Value& v = *evaluated.get();
  return static_cast<const char*>(v.buffer.data()) + v.layout.offset * size_of(v.dtype);
}

}  // namespace

void Array::copy_out(void* out, Dtype t, const char* what) const {
  const detail::Value& v = value_of(*this, what);
  const std::int64_t n = v.shape.product();
  const bool one = what == std::string_view("item");
  if (one && n != 1) throw ShapeError(str("item: the array has not exactly one element; got shape ", v.shape, "; use to_vector<T>()"));
  engine::evaluate({this, 1}, what);
  if (n == 0) return;
  const Array rows = one ? *this : engine::contiguous(*this);
  api::convert(first_element(rows), v.dtype, out, t, n);
}

namespace {
ForkMutex& rows_lock() {  // guards `rows` of every value
  static ForkMutex& lock = *new ForkMutex(LockRank::Leaf);
  return lock;
}
[[maybe_unused]] const auto& made_at_load = rows_lock();  // see ForkMutex
}  // namespace

const void* Array::elements(Dtype t) const {
  detail::Value& v = value_of(*this, "data");
  if (v.dtype != t)
    throw DtypeError(str("data: the type is not the array's; got ", t, " for ", v.dtype, "; use data of its type, or astype first"));
  engine::evaluate({this, 1}, "data");
  const Array rows = engine::contiguous(*this);
  if (rows.get() == value_) return first_element(rows);
  std::lock_guard lock(rows_lock());
  if (!v.rows.valid()) v.rows = rows;
  return first_element(v.rows);
}

Array::operator bool() const {
  const detail::Value& v = value_of(*this, "bool");
  if (v.shape.product() != 1) {
    throw ShapeError(
        str("bool: an array without exactly one element is neither true nor false; got shape ", v.shape, "; use all() or any()"));
  }
  engine::evaluate({this, 1}, "bool");
  bool result = false;
  api::convert(first_element(*this), v.dtype, &result, Dtype::bool_, 1);
  return result;
}

}  // namespace sinter
