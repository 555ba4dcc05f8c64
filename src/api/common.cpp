#include "api/common.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "ops/elements.h"

namespace sinter::api {
namespace {

std::uint64_t low_bytes(std::uint64_t v, int bytes) { return bytes == 8 ? v : v & ((std::uint64_t{1} << (8 * bytes)) - 1); }

std::uint64_t convert_word(Dtype from, Dtype to, std::uint64_t word) {
  std::uint64_t result = 0;
  ops::convert_elements(from, to, {&word, 1}, {&result, 1});
  return low_bytes(result, size_of(to));
}

std::uint64_t complex_word(double real, double imag) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(real)) | std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(imag))}
                                                                      << 32;
}

// The classes among which a scalar's kind is compared: signed and unsigned integers are one.
int rank(Dtype t) {
  switch (kind(t)) {
    case Kind::Bool: return 0;
    case Kind::Unsigned:
    case Kind::Signed: return 1;
    case Kind::Floating: return 2;
    default: return 3;
  }
}

[[noreturn]] void axis_error(const char* what, int axis, const Shape& shape, int low, int high) {
  if (low > high) throw ShapeError(str(what, ": axis out of range; got ", axis, " for shape ", shape, "; a 0-d array has no axes"));
  throw ShapeError(str(what, ": axis out of range; got ", axis, " for shape ", shape, "; use ", low, " to ", high));
}

}  // namespace

namespace {

std::uint64_t bits_of(const Number& v, Dtype t) {
  const Dtype own = v.dtype();
  if (is_complex(own)) return t == own ? complex_word(v.real(), v.imag()) : convert_word(own, t, complex_word(v.real(), v.imag()));
  if (t == Dtype::float32)
    return std::bit_cast<std::uint32_t>(is_floating(own) || is_signed(own) ? static_cast<float>(v.real())
                                                                           : static_cast<float>(v.integer()));
  if (t == Dtype::float64) return std::bit_cast<std::uint64_t>(v.real());
  if (is_complex(t)) return complex_word(v.real(), 0);
  if (is_floating(own)) return convert_word(Dtype::float64, t, std::bit_cast<std::uint64_t>(v.real()));
  if (is_integer(t)) return low_bytes(v.integer(), size_of(t));
  if (t == Dtype::bool_) return v.integer() != 0;
  return convert_word(is_signed(own) ? Dtype::int64 : Dtype::uint64, t, v.integer());
}

// As `t`, then as `to`.
Dim encode_as(const Number& v, Dtype t, Dtype to) {
  const auto bits = [](std::span<const std::int64_t> in) {
    const auto f = reinterpret_cast<double (*)(std::int64_t)>(in[1]);  // NOLINT: it came from one
    const auto first = static_cast<Dtype>(in[2]), second = static_cast<Dtype>(in[3]);
    const std::uint64_t word = bits_of(Number(Dim(in[0]), f), first);
    return static_cast<std::int64_t>(first == second ? word : convert_word(first, second, word));
  };
  if (base::changes(v.dim())) {
    const auto f = reinterpret_cast<std::int64_t>(v.of_dim());
    return base::apply("bits", bits, {v.dim(), Dim(f), Dim(static_cast<std::int64_t>(t)), Dim(static_cast<std::int64_t>(to))},
                       base::kNoBound, 1);
  }
  const std::uint64_t word = bits_of(v, t);
  return static_cast<std::int64_t>(t == to ? word : convert_word(t, to, word));
}

// Where a whole number lies among the integers of t: -1: below them, 1: above, 0: it is one.
int place_among(const Number& v, Dtype t) {
  const iinfo limits(t);
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (v.dtype() == Dtype::uint64 && v.integer() > kMax) return v.integer() > limits.max ? 1 : 0;
  const Dim d = integer_of(v);
  if (limits.min != std::numeric_limits<std::int64_t>::min() && d < limits.min) return -1;
  return limits.max < kMax && d > static_cast<std::int64_t>(limits.max) ? 1 : 0;
}

}  // namespace

Dim encode(const Number& v, Dtype t) { return encode_as(v, t, t); }

Array scalar(const Number& v, Dtype t) { return engine::constant(t, encode(v, t)); }

Array to_array(const Operand& o, const char* what) {
  if (o.array() == nullptr) return scalar(o.number());
  engine::operand_of(*o.array(), what);
  return *o.array();
}

void convert(const void* source, Dtype from, void* target, Dtype to, std::int64_t n) {
  const std::size_t in = static_cast<std::size_t>(size_of(from)), out = static_cast<std::size_t>(size_of(to));
  if (n > 0 && from == to && from != Dtype::bool_) std::memcpy(target, source, static_cast<std::size_t>(n) * in);
  if (from == to && from != Dtype::bool_) return;
  std::array<std::uint64_t, 256> words{}, results{};
  for (std::int64_t i = 0; i < n;) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::int64_t>(n - i, 256));
    const char* s = static_cast<const char*>(source) + static_cast<std::size_t>(i) * in;
    char* t = static_cast<char*>(target) + static_cast<std::size_t>(i) * out;
    for (std::size_t k = 0; k < count; ++k) {
      words[k] = 0;
      std::memcpy(&words[k], s + k * in, in);
    }
    if (from == to) {  // bool: any byte but 0 is true
      for (std::size_t k = 0; k < count; ++k) results[k] = words[k] != 0;
    } else {
      ops::convert_elements(from, to, {words.data(), count}, {results.data(), count});
    }
    for (std::size_t k = 0; k < count; ++k) std::memcpy(t + k * out, &results[k], out);
    i += static_cast<std::int64_t>(count);
  }
}

std::vector<Dtype> operand_types(const char* what, std::span<const Operand* const> operands) {
  std::optional<Dtype> arrays;
  for (const Operand* o : operands) {
    if (o->array() == nullptr) continue;
    const Dtype own = engine::operand_of(*o->array(), what).dtype;
    arrays = arrays ? promote_types(*arrays, own) : own;
  }
  std::vector<Dtype> types;
  for (const Operand* o : operands) {
    const Dtype own = o->array() != nullptr ? o->array()->dtype() : o->number().dtype();
    const bool weak = o->array() == nullptr && arrays && rank(own) <= rank(*arrays);
    types.push_back(weak ? *arrays : own);
  }
  return types;
}

Array elementwise(Op op, std::initializer_list<const Operand*> operands, const char* what) {
  if (!what) what = ops::info(op).name.data();
  const std::span<const Operand* const> all(operands.begin(), operands.size());
  const Shape* one = nullptr;
  bool same = true, one_array = false;
  for (const Operand* o : all) {
    if (o->array() == nullptr) continue;
    one_array = true;
    const Shape& s = shape_of(*o->array(), what);
    if (s.empty()) continue;
    if (one) same = same && base::same(*one, s);
    one = &s;
  }
  std::vector<Shape> shapes;  // all that have axes: a message lists them, whether or not it is certain that two are the same
  if (!same)
    for (const Operand* o : all)
      if (o->array() && o->array()->ndim() > 0) shapes.push_back(o->array()->shape());
  const Shape shape = !one ? Shape() : same ? *one : broadcast_shapes(what, shapes);

  // The condition of `where` does not take part in promotion.
  const std::size_t first = ops::info(op).rule == ops::Rule::Where ? 1 : 0;
  std::vector<Dtype> types = operand_types(what, all.subspan(first));
  if (first == 1) types.insert(types.begin(), Dtype::bool_);
  const ops::ElementwiseType t = ops::elementwise_type(op, types);

  // A weak integer that the arrays' dtype does not hold. All elements compare with it as 0 and 1 do; an operation that chooses among its
  // operands (clip, maximum, minimum) takes the nearest that the dtype holds; elsewhere it wraps.
  const ops::OpInfo& facts = ops::info(op);
  const bool compares = facts.rule == ops::Rule::Compare || facts.rule == ops::Rule::Equal;
  const bool chooses = facts.rule == ops::Rule::Any && (facts.traits & ops::kExact) != 0;
  auto beyond = [&](std::size_t i) {
    const bool may = all[i]->array() == nullptr && is_integer(types[i]) && is_integer(all[i]->number().dtype());
    return may && one_array ? place_among(all[i]->number(), types[i]) : 0;
  };
  if (compares)
    for (std::size_t i = 0; i < 2; ++i)
      if (const int side = beyond(i); side != 0) {
        Operand pair[] = {side < 0 ? 1 : 0, side < 0 ? 1 : 0};
        pair[i] = side < 0 ? 0 : 1;
        return engine::broadcast(elementwise(op, {&pair[0], &pair[1]}), shape);
      }

  std::vector<Array> in;
  in.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Dtype compute = i < first ? Dtype::bool_ : t.compute;
    if (const Array* a = all[i]->array()) {
      const Array x = engine::cast(*a, compute);
      in.push_back(x.ndim() == 0 ? x : engine::broadcast(x, shape));
      continue;
    }
    Number number = all[i]->number();
    if (const int side = chooses ? beyond(i) : 0; side != 0) number = side < 0 ? Number(iinfo(types[i]).min) : Number(iinfo(types[i]).max);
    // A weak integer wraps at the arrays' width before it becomes floating.
    in.push_back(engine::constant(compute, encode_as(number, types[i], compute)));
  }
  return engine::make(op, std::move(in), {}, t.result, shape);
}

int axis_of(const char* what, int axis, const Shape& shape) {
  const int n = static_cast<int>(shape.size());
  if (axis < -n || axis >= n) axis_error(what, axis, shape, -n, n - 1);
  return axis < 0 ? axis + n : axis;
}

int place_of(const char* what, int axis, const Shape& shape) {
  const int n = static_cast<int>(shape.size());
  if (axis < -n - 1 || axis > n) axis_error(what, axis, shape, -n - 1, n);
  return axis < 0 ? axis + n + 1 : axis;
}

std::vector<int> axes_of(const char* what, const Axes& axes, const Shape& shape) {
  std::vector<int> result;
  if (axes.all()) {
    for (int i = 0; i < static_cast<int>(shape.size()); ++i) result.push_back(i);
    return result;
  }
  for (int a : axes.list()) result.push_back(axis_of(what, a, shape));
  std::sort(result.begin(), result.end());
  const auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end())
    throw ShapeError(str(what, ": an axis is given twice; got axis ", *twice, " for shape ", shape, "; give each axis once"));
  return result;
}

void check_sizes(const char* what, const Shape& shape, Dtype t) {
  std::int64_t bytes = size_of(t);
  bool fits = true, empty = false;
  for (const Dim& size : shape) {
    const std::int64_t d = base::peek(size);
    if (size < 0) throw ShapeError(str(what, ": a size is negative; got ", shape, "; use sizes of 0 or more"));
    empty |= d == 0;
    fits &= d == 0 || !__builtin_mul_overflow(bytes, d, &bytes);
  }
  if (!fits && !empty) throw ShapeError(str(what, ": the array would have more than 2^63 bytes; got ", shape, "; use smaller sizes"));
}

Shape fill_size(const char* what, const Shape& shape, Dim n, const Shape& before) {
  Shape result = shape;
  int unknown = -1;
  Dim known = 1;
  bool fits = true;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim& d = shape[i];
    std::int64_t product = 0;
    if (d == -1 && unknown < 0) {
      unknown = static_cast<int>(i);
    } else if (d < 0) {
      throw ShapeError(str(what, d == -1 ? ": more than one size is -1; got " : ": a size is negative; got ", shape,
                           "; use sizes of 0 or more, and -1 once at most"));
    } else {
      fits &= !__builtin_mul_overflow(base::peek(known), base::peek(d), &product);
      known = fits ? known * d : known;
    }
  }
  if (unknown >= 0 && known != 0 && n % known == 0) {
    result[static_cast<std::size_t>(unknown)] = n / known;
    known = n;
  }
  if (!fits || known != n || (unknown >= 0 && result[static_cast<std::size_t>(unknown)] < 0)) {
    throw ShapeError(str(what, ": the number of elements does not fit; got ", before, " to ", shape, "; the sizes' product must be ", n));
  }
  return result;
}

Shape broadcast_shapes(const char* what, std::span<const Shape> shapes) {
  std::size_t n = 0;
  for (const Shape& s : shapes) n = std::max(n, s.size());
  // A number 1 is asked for first: so sizes that change are compared where they meet each other alone.
  const auto is_one = [](const Dim& d) { return !base::changes(d) && d == 1; };
  Shape result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(1);
  for (const Shape& s : shapes) {
    for (std::size_t i = 0; i < s.size(); ++i) {
      Dim& d = result[n - s.size() + i];
      if (is_one(s[i])) continue;
      if (is_one(d)) {
        d = s[i];
        continue;
      }
      if (s[i] == d || s[i] == 1) continue;
      if (d == 1) {
        d = s[i];
        continue;
      }
      std::string list;
      for (std::size_t k = 0; k < shapes.size(); ++k) list += str(k == 0 ? "" : k + 1 < shapes.size() ? ", " : " and ", shapes[k]);
      throw ShapeError(str(what, ": shapes cannot be broadcast; got ", list, "; make the axes equal or 1"));
    }
  }
  check_sizes(what, result, Dtype::float64);  // whatever the dtype: 2^60 elements fit no memory
  return result;
}

bool is_empty(const Shape& s) {
  return std::any_of(s.begin(), s.end(), [](const Dim& d) { return d == 0; });
}
ops::Attrs ints(const Shape& s) { return {s.begin(), s.end()}; }

Array reshaped(const Array& x, const Shape& shape) {
  if (base::same(x.shape(), shape)) return x;
  return engine::make(Op::Reshape, {x}, ints(shape), x.dtype(), shape);
}

Array transposed(const Array& x, const std::vector<int>& axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  Shape shape;
  for (int a : axes) shape.push_back(x.shape()[static_cast<std::size_t>(a)]);
  return engine::make(Op::Transpose, {x}, {axes.begin(), axes.end()}, x.dtype(), shape);
}

Array sliced(const Array& x, const Shape& start, const Shape& size, const Shape& step) {
  bool whole = base::same(size, x.shape());
  for (std::size_t i = 0; i < step.size(); ++i) whole = whole && (base::same(step[i], 1) || base::same(size[i], 0));
  if (whole) return x;
  ops::Attrs attrs = ints(start);
  for (const Dim& d : size) attrs.push_back(d);
  attrs.insert(attrs.end(), step.begin(), step.end());
  return engine::make(Op::Slice, {x}, std::move(attrs), x.dtype(), size);
}

Array sliced(const Array& x, int axis, Dim start, Dim size) {
  const auto a = static_cast<std::size_t>(axis);
  Shape starts(std::vector<Dim>(x.shape().size(), 0)), steps(std::vector<Dim>(x.shape().size(), 1));
  Shape sizes = x.shape();
  starts[a] = start;
  sizes[a] = size;
  return sliced(x, starts, sizes, steps);
}

Shape without_axes(const Shape& shape, const std::vector<int>& axes, bool keepdims) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool folded = std::binary_search(axes.begin(), axes.end(), static_cast<int>(i));
    if (!folded)
      result.push_back(shape[i]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

Dtype accumulating(Dtype t) {
  if (t == Dtype::bool_ || t == Dtype::int8 || t == Dtype::int16) return Dtype::int32;
  if (t == Dtype::uint8 || t == Dtype::uint16) return Dtype::uint32;
  return t;
}

void require_real(const char* what, const Array& x) {
  engine::operand_of(x, what);
  if (is_complex(x.dtype())) throw DtypeError(str(what, ": does not take complex64; got complex64; take its real() or imag() first"));
}
void require_order(const char* what, const Array& x) {
  engine::operand_of(x, what);
  if (is_complex(x.dtype())) throw DtypeError(str(what, ": complex numbers have no order; got complex64; take its real() or imag() first"));
}

}  // namespace sinter::api
