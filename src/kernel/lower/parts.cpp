#include "kernel/lower/parts.h"

#include <cstring>
#include <limits>

#include "base/symbols.h"
#include "kernel/lower/roll.h"

namespace sinter::kernel {

using graph::Graph;
using graph::Group;
using graph::Id;
using graph::Node;
using ops::Op;

namespace {

template <class T>
std::uint64_t bits_of(T v) {
  std::uint64_t b = 0;
  std::memcpy(&b, &v, sizeof v);
  return b;
}
// The value of `integers(signed)` for integers, `real` for floats.
std::uint64_t number_bits(Dtype t, double real, std::int64_t integer) {
  switch (t) {
    case Dtype::float32: return bits_of(static_cast<float>(real));
    case Dtype::float64: return bits_of(real);
    case Dtype::float16: return real == 0 ? 0 : real == 1 ? 0x3C00 : real > 0 ? 0x7C00 : 0xFC00;
    case Dtype::bfloat16: return real == 0 ? 0 : real == 1 ? 0x3F80 : real > 0 ? 0x7F80 : 0xFF80;
    case Dtype::complex64: return bits_of(static_cast<float>(real));
    default: return bits_of(integer) & (size_of(t) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(t))) - 1);
  }
}
constexpr double kInfinity = std::numeric_limits<double>::infinity();
std::int64_t lowest(Dtype t) { return is_signed(t) ? static_cast<std::int64_t>(~std::uint64_t{0} << (8 * size_of(t) - 1)) : 0; }
std::int64_t highest(Dtype t) { return t == Dtype::bool_ ? 1 : is_signed(t) ? ~lowest(t) : -1; }

}  // namespace

std::string name_of(const Graph& g, const Group& group) {
  std::string name;
  for (Id id : group.members) {
    if (g[id].op == Op::Constant && group.members.size() > 1) continue;
    if (name.size() > 60) return name.append("_etc");
    if (!name.empty()) name += '_';
    name += ops::info(g[id].op).name;
  }
  return name;
}

Lowered finish(Builder& b, Nest& nest, Body& body, const Dim& tasks, double work) {
  Lowered out;
  out.kernel = std::move(b.kernel);
  out.buffers = std::move(body.buffers);
  out.integers = std::move(nest.integers);
  for (std::int64_t count : roll(out.kernel)) out.integers.push_back(count);
  out.scalars = std::move(body.scalars);
  if (!nest.axes.empty()) out.across = body.left_across(nest.axes.back());
  out.tasks = tasks;
  out.work = work;
  return out;
}

std::pair<Ref, Ref> split(Builder& b, Ref task, Ref blocks) {
  return {b.compute(Op::FloorDivide, Dtype::int64, task, blocks), b.compute(Op::Remainder, Dtype::int64, task, blocks)};
}
std::pair<Ref, Ref> block_range(Builder& b, Ref block, Ref size, Ref extent) {
  Ref begin = times(b, block, size);
  return {begin, b.compute(Op::Minimum, Dtype::int64, plus(b, begin, size), extent)};
}

Ref each_band(Builder& b, Nest& nest, const Axis& axis, Ref from, Ref end, int height, FunctionRef<void(Ref top, const EachRow&)> band) {
  const Ref rows = b.index(height), left = b.compute(Op::Subtract, Dtype::int64, end, from);
  const Ref bands = height == 1 ? left : b.compute(Op::FloorDivide, Dtype::int64, left, rows);
  const Ref number = b.loop(LoopKind::Serial, b.index(0), bands), top = plus(b, from, times(b, number, rows));
  band(top, nest.positions(b, axis, top, height));
  b.end();
  return plus(b, from, times(b, bands, rows));
}

Fold fold_of(Op op) {
  switch (op) {
    case Op::Sum: return {Op::Add, [](Dtype t) { return number_bits(t, 0, 0); }};
    case Op::Prod: return {Op::Multiply, [](Dtype t) { return number_bits(t, 1, 1); }};
    case Op::Max: return {Op::Maximum, [](Dtype t) { return number_bits(t, -kInfinity, lowest(t)); }};
    case Op::Min: return {Op::Minimum, [](Dtype t) { return number_bits(t, kInfinity, highest(t)); }};
    case Op::All: return {Op::LogicalAnd, [](Dtype t) { return number_bits(t, 1, 1); }};
    case Op::Any: return {Op::LogicalOr, [](Dtype t) { return number_bits(t, 0, 0); }};
    default: throw InternalError("internal: lower: not a reduction");
  }
}
Dtype accumulator(const Node& n) {
  Dtype t = static_cast<Dtype>(base::peek(n.attrs[0]));
  return is_half(t) && n.op != Op::Max && n.op != Op::Min ? Dtype::float32 : t;
}

}  // namespace sinter::kernel
