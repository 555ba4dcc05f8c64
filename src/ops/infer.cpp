#include "ops/infer.h"

#include <algorithm>

#include "base/symbols.h"
#include "ops/convolution.h"

namespace sinter::ops {
namespace {

using Shapes = std::span<const Shape>;

// InternalError that names the operation: "internal: slice: ...".
void require(bool ok, Op op, const char* rule) {
  if (!ok) [[unlikely]]
    throw InternalError(str("internal: ", info(op).name, ": ", rule));
}

Shape shape_of(Ints sizes) {
  Shape s;
  for (std::int64_t d : sizes) s.push_back(d);
  return s;
}

bool all_non_negative(Ints v) {
  return std::all_of(v.begin(), v.end(), [](std::int64_t d) { return d >= 0; });
}
bool is_axis(std::int64_t a, const Shape& s) { return a >= 0 && a < static_cast<std::int64_t>(s.size()); }

Shape elementwise(Op op, Shapes in) {
  Shape result;
  for (const Shape& s : in) {
    if (s.empty()) continue;
    require(result.empty() || result == s, op, "operands of different shapes");
    result = s;
  }
  return result;
}

Shape reshape(Op op, const Shape& x, Ints shape) {
  const Shape result = shape_of(shape);
  require(all_non_negative(shape) && result.product() == x.product(), op, "the number of elements changes");
  return result;
}

Shape transpose(Op op, const Shape& x, Ints axes) {
  require(axes.size() == x.size(), op, "one axis for each axis of the operand");
  Shape result;
  std::vector<bool> seen(x.size());
  for (std::int64_t a : axes) {
    require(is_axis(a, x) && !seen[static_cast<std::size_t>(a)], op, "the axes are not a permutation");
    seen[static_cast<std::size_t>(a)] = true;
    result.push_back(x[static_cast<std::size_t>(a)]);
  }
  return result;
}

Shape broadcast(Op op, const Shape& x, Ints shape) {
  require(shape.size() >= x.size() && all_non_negative(shape), op, "fewer axes than the operand");
  const std::size_t extra = shape.size() - x.size();
  for (std::size_t i = 0; i < x.size(); ++i)
    require(x[i] == 1 || x[i] == shape[extra + i], op, "an axis of the operand is neither 1 nor that of the shape");
  return shape_of(shape);
}

Shape slice(Op op, const Shape& x, const Attrs& attrs) {
  const std::size_t n = x.size();
  require(attrs.size() == 3 * n, op, "start, size and step for each axis");
  Shape result;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t start = attrs[i], size = attrs[n + i], step = attrs[2 * n + i], last = start + (size - 1) * step;
    require(size >= 0, op, "a negative size");
    require(size == 0 || (start >= 0 && start < x[i] && last >= 0 && last < x[i]), op, "beyond the operand");
    result.push_back(size);
  }
  return result;
}

Shape as_strided(Op op, const Shape& x, const Attrs& attrs) {
  require(attrs.size() % 2 == 1, op, "shape, strides and offset");
  const std::size_t n = attrs.size() / 2;
  const Shape result = shape_of({attrs.data(), n});
  require(all_non_negative({attrs.data(), n}), op, "a negative size");
  std::int64_t low = attrs.back(), high = low;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t extent = (attrs[i] - 1) * attrs[n + i];
    (extent < 0 ? low : high) += extent;
  }
  require(result.product() == 0 || (low >= 0 && high < x.product()), op, "beyond the operand");
  return result;
}

Shape concatenate(Op op, Shapes in, std::int64_t axis) {
  require(!in.empty() && is_axis(axis, in[0]), op, "no operand, or no such axis");
  Shape result = in[0];
  for (const Shape& s : in.subspan(1)) {
    require(s.size() == result.size(), op, "operands with different numbers of axes");
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (static_cast<std::int64_t>(i) == axis)
        result[i] += s[i];
      else
        require(s[i] == result[i], op, "operands differ in another axis");
    }
  }
  return result;
}

Shape pad(Op op, Shapes in, const Attrs& attrs) {
  const std::size_t n = in[0].size();
  require(attrs.size() == 2 * n && all_non_negative(attrs), op, "low and high, not negative, for each axis");
  Shape result = in[0];
  for (std::size_t i = 0; i < n; ++i) result[i] += attrs[i] + attrs[n + i];
  require(in[1].empty() || in[1] == result, op, "the value is neither 0-d nor of the result's shape");
  return result;
}

Shape take(Op op, const Shape& x, const Shape& indices, std::int64_t axis) {
  require(is_axis(axis, x), op, "no such axis");
  const auto a = static_cast<std::size_t>(axis);
  require(x[a] > 0 || indices.product() == 0 || x.product() == 0, op, "an index into an empty axis");
  Shape result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i != a)
      result.push_back(x[i]);
    else
      for (const Dim& d : indices) result.push_back(d);
  }
  return result;
}

Shape take_along(Op op, const Shape& x, const Shape& indices, std::int64_t axis) {
  require(is_axis(axis, x) && indices.size() == x.size(), op, "no such axis, or indices with another number of axes");
  for (std::size_t i = 0; i < x.size(); ++i)
    require(static_cast<std::int64_t>(i) == axis || indices[i] == x[i], op, "indices differ in another axis");
  return indices;
}

Shape scatter(Op op, Shapes in, std::int64_t axis) {
  require(in[1] == in[2], op, "indices and updates of different shapes");
  take_along(op, in[0], in[1], axis);
  return in[0];
}

Shape cumulative(Op op, Shapes in, const Attrs& attrs) {
  require(!attrs.empty() && is_axis(attrs[0], in[0]), op, "no such axis");
  for (std::size_t i = 1; i < attrs.size(); ++i) require(attrs[i] == 0 || attrs[i] == 1, op, "a flag is neither 0 nor 1");
  return elementwise(op, in);
}

Shape reduce(Op op, const Shape& x, const Attrs& attrs) {
  require(!attrs.empty(), op, "no dtype");
  const Ints axes = reduced_axes(attrs);
  for (std::size_t i = 0; i < axes.size(); ++i)
    require(is_axis(axes[i], x) && (i == 0 || axes[i] > axes[i - 1]), op, "axes are not ascending, or not the operand's");
  Shape result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!is_reduced(attrs, i)) result.push_back(x[i]);
  }
  return result;
}

Shape matmul(Op op, const Shape& a, const Shape& b) {
  const std::size_t n = a.size();
  require(n >= 2 && b.size() == n, op, "operands need the same number of axes, two at least");
  for (std::size_t i = 0; i + 2 < n; ++i) require(a[i] == b[i], op, "batch axes differ");
  require(a[n - 1] == b[n - 2], op, "inner dimensions differ");
  Shape result = a;
  result[n - 1] = b[n - 1];
  return result;
}

Shape solve(Op op, const Shape& a, const Shape& b) {
  const std::size_t n = a.size();
  require(n >= 2 && b.size() == n, op, "operands need the same number of axes, two at least");
  for (std::size_t i = 0; i + 1 < n; ++i) require(a[i] == b[i], op, "batch axes or rows differ");
  require(a[n - 1] == a[n - 2], op, "the matrix is not square");
  return b;
}

}  // namespace

std::optional<Shape> infer_shape(Op op, Shapes in, const Attrs& attrs) {
  const OpInfo& facts = info(op);
  require(facts.operands < 0 || in.size() == static_cast<std::size_t>(facts.operands), op, "the number of operands is wrong");
  switch (op) {
    case Op::Input:
    case Op::Constant: return {};
    case Op::Arange: require(in[0].empty() && in[1].empty(), op, "operands are not 0-d"); return {};
    case Op::RandomBits: require(!in[0].empty() && in[0].back() == 2, op, "a key is not two words"); return {};
    case Op::Cast: return in[0];
    case Op::Copy:
      if (in[0].empty()) return {};
      return in[0];
    case Op::Reshape: return reshape(op, in[0], attrs);
    case Op::Transpose: return transpose(op, in[0], attrs);
    case Op::Broadcast: return broadcast(op, in[0], attrs);
    case Op::Slice: return slice(op, in[0], attrs);
    case Op::AsStrided: return as_strided(op, in[0], attrs);
    case Op::Concatenate: return concatenate(op, in, attrs.at(0));
    case Op::Pad: return pad(op, in, attrs);
    case Op::Take: return take(op, in[0], in[1], attrs.at(0));
    case Op::TakeAlong: return take_along(op, in[0], in[1], attrs.at(0));
    case Op::ScatterAdd:
    case Op::PutAlong: return scatter(op, in, attrs.at(0));
    case Op::Matmul: return matmul(op, in[0], in[1]);
    case Op::Solve: return solve(op, in[0], in[1]);
    case Op::ArgSort: require(is_axis(attrs.at(0), in[0]), op, "no such axis"); return in[0];
    case Op::Conv:
    case Op::ConvInput:
    case Op::ConvWeight: return convolution_of(op, attrs, in).shape(result_role(op));
    case Op::AddMM: {
      Shape result = matmul(op, in[1], in[2]);
      require(in[0] == result, op, "operand 0 has not the product's shape");
      return result;
    }
    case Op::Get: return {};
    case Op::Barrier: return in[0];
    default: break;
  }
  if (has_bodies(op)) return Shape{0};
  if (facts.kind == OpKind::Cumulative) return cumulative(op, in, attrs);
  return facts.kind == OpKind::Reduce ? reduce(op, in[0], attrs) : elementwise(op, in);
}

std::optional<Dtype> infer_dtype(Op op, std::span<const Dtype> in, const Attrs& attrs) {
  if (is_elementwise(op)) {
    const ElementwiseType t = elementwise_type(op, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      require(in[i] == (info(op).rule == Rule::Where && i == 0 ? Dtype::bool_ : t.compute), op, "an operand has not the compute dtype");
    }
    return t.result;
  }
  auto attribute_dtype = [&] {
    require(!attrs.empty() && attrs[0] >= 0 && attrs[0] < kDtypeCount, op, "there is no such dtype");
    return static_cast<Dtype>(base::peek(attrs[0]));
  };
  auto same = [&](std::size_t from = 0) {
    for (std::size_t i = from; i < in.size(); ++i) require(in[i] == in[from], op, "operands of different dtypes");
    return in[from];
  };
  switch (op) {
    case Op::Input:
    case Op::Constant: return {};
    case Op::Cast:
    case Op::Sum:
    case Op::Prod: return attribute_dtype();
    case Op::RandomBits: {
      const std::int64_t width = attrs.at(0);
      require(in[0] == Dtype::uint32, op, "the key is not uint32");
      require(width == 1 || width == 2 || width == 4 || width == 8, op, "the width is not 1, 2, 4 or 8");
      return width == 1 ? Dtype::uint8 : width == 2 ? Dtype::uint16 : width == 4 ? Dtype::uint32 : Dtype::uint64;
    }
    case Op::Take:
    case Op::TakeAlong: require(is_integer(in[1]), op, "indices are not integers"); return in[0];
    case Op::ScatterAdd:
    case Op::PutAlong:
      require(is_integer(in[1]), op, "indices are not integers");
      require(in[2] == in[0], op, "updates have not the operand's dtype");
      return in[0];
    case Op::Max:
    case Op::Min: require(attribute_dtype() == in[0], op, "the dtype is not the operand's"); return in[0];
    case Op::All:
    case Op::Any: require(attribute_dtype() == Dtype::bool_, op, "the dtype is not bool"); return Dtype::bool_;
    case Op::ArgMax:
    case Op::ArgMin: require(is_integer(attribute_dtype()), op, "the dtype is not an integer"); return attribute_dtype();
    case Op::ArgSort: require(!is_complex(in[0]), op, "complex numbers have no order"); return Dtype::uint32;
    case Op::Get: return {};
    case Op::Barrier: return in[0];
    default: break;
  }
  if (has_bodies(op)) return Dtype::bool_;
  require(!in.empty(), op, "no operand");
  return same();
}

AttributeName take_attribute_name(std::string_view& names) {
  const std::size_t end = std::min(names.find(' '), names.size());
  std::string_view name = names.substr(0, end);
  names.remove_prefix(std::min(end + 1, names.size()));
  const char last = name.back();
  if (last != '*' && last != '+') return {name, 1};
  name.remove_suffix(1);
  return {name, last};
}

bool for_each_attribute(Op op, Ints attrs, std::size_t axes, FunctionRef<void(const Attribute&)> f) {
  for (std::string_view names = info(op).attributes; !names.empty();) {
    const AttributeName a = take_attribute_name(names);
    const std::size_t count = a.count == '*' ? axes : a.count == '+' ? attrs.size() : 1;
    if (count > attrs.size()) return false;
    f({a.name, attrs.first(count)});
    attrs = attrs.subspan(count);
  }
  return attrs.empty();
}

}  // namespace sinter::ops
