// ScatterAdd and PutAlong: lanes and tasks over the axes that indices do not move along; along the axis one update after the other, so that
// the order of a sum is that of the updates, and the last one stays, whatever the number of threads. Layer: kernel.
#include "kernel/lower/nest.h"

namespace sinter::kernel {
namespace {

using graph::Id;
using graph::Node;
using ops::Op;

constexpr Dtype i64 = Dtype::int64;
constexpr std::int64_t kColumns = 128;  // of a task: few, for there may be no other axis to share the work along
constexpr int kUnroll = 2;

// What changes nothing when added: -0, for floats.
std::uint64_t nothing(Dtype t) {
  if (is_complex(t)) return 0x8000000080000000;
  return is_floating(t) ? std::uint64_t{1} << (8 * size_of(t) - 1) : 0;
}

// A signed index counts from the end when negative. `inside` says whether it is on the axis; the position returned always is.
Ref position(Builder& b, Ref index, Dtype t, Ref size, Ref last, Ref& inside) {
  auto op = [&](Op o, Ref x, Ref y) { return b.compute(o, i64, x, y); };
  if (t == Dtype::uint64) index = b.compute(Op::Minimum, t, index, b.constant(t, std::uint64_t{1} << 62));  // or it turns negative
  Ref i = b.cast(index, i64), zero = b.index(0);
  if (is_signed(t)) i = b.compute(Op::Where, i64, op(Op::Less, i, zero), op(Op::Add, i, size), i);
  const Ref at = op(Op::Minimum, op(Op::Maximum, i, zero), last);
  inside = op(Op::Equal, i, at);
  return at;
}

}  // namespace

Lowered lower_scatter(const graph::Graph& g, Id id, LayoutOf layout_of) {
  const Node& n = g[id];
  const Id indices = n.in[1], updates = n.in[2];
  const auto axis = static_cast<std::size_t>(n.attrs[0]);
  const Shape& space = g[updates].type.shape;
  const std::int64_t size = n.type.shape[axis], count = space[axis];
  Builder b;
  b.kernel.name = ops::info(n.op).name;
  Nest nest(space, {n.attrs[0]});

  Lowered out;
  auto read = [&](Id of) {
    out.buffers.push_back({of, g[of].type.shape.product(), false});
    // A literal lies in no memory: it is a scalar.
    return static_cast<int>(b.buffer(g[of].type.dtype, of == id));
  };
  const bool literal_index = graph::is_scalar_constant(g[indices]), literal_update = graph::is_scalar_constant(g[updates]);
  const int result_buffer = read(id), index_buffer = literal_index ? -1 : read(indices),
            update_buffer = literal_update ? -1 : read(updates);
  auto scalar = [&](Id of) {
    out.scalars.push_back(of);
    return b.scalar(g[of].type.dtype);
  };
  const Ref index_scalar = literal_index ? scalar(indices) : kNone, update_scalar = literal_update ? scalar(updates) : kNone;
  graph::Strides strides = layout_of(id).strides;
  const std::int64_t stride = strides[axis];
  strides[axis] = 0;
  const std::size_t to = nest.add(std::move(strides));
  const std::size_t index_walk = literal_index ? 0 : nest.add(layout_of(indices).strides);
  const std::size_t update_walk = literal_update ? 0 : nest.add(layout_of(updates).strides);
  nest.form_axes();

  const Axis unit;
  const Axis* folded = nullptr;
  std::vector<const Axis*> kept;
  for (const Axis& a : nest.axes) {
    if (a.reduced)
      folded = &a;
    else
      kept.push_back(&a);
  }
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < kept.size(); ++i) rows *= kept[i]->extent;
  const Axis& lanes = kept.empty() ? unit : *kept.back();
  const std::vector<const Axis*> outer(kept.begin(), kept.empty() ? kept.begin() : kept.end() - 1);
  const std::int64_t blocks = (lanes.extent + kColumns - 1) / kColumns;

  const Ref zero = b.index(0), extent = nest.arg(b, lanes.extent), block = nest.arg(b, kColumns), tasks = nest.arg(b, rows * blocks);
  const Ref updates_arg = nest.arg(b, count), size_arg = nest.arg(b, size), last = nest.arg(b, size - 1), stride_arg = nest.arg(b, stride);
  const Ref drop = n.op == Op::PutAlong ? kNone : b.constant(n.type.dtype, nothing(n.type.dtype));
  const Ref task = b.loop(LoopKind::Parallel, zero, tasks);
  if (!kept.empty()) {
    const Ref parts = nest.arg(b, blocks);
    nest.open_rows(b, outer, b.compute(Op::FloorDivide, i64, task, parts));
    const Ref begin = b.compute(Op::Multiply, i64, b.compute(Op::Remainder, i64, task, parts), block);
    const Ref end = b.compute(Op::Minimum, i64, b.compute(Op::Add, i64, begin, block), extent);
    nest.open(b, lanes, b.loop(LoopKind::Vector, begin, end, kUnroll), true);
  }
  const Ref k = b.loop(LoopKind::Serial, zero, updates_arg);
  if (folded) nest.open(b, *folded, k, false);
  Ref inside = kNone;
  const Ref index = literal_index ? index_scalar : b.load(index_buffer, nest.index(b, index_walk));
  const Ref at = position(b, index, g[indices].type.dtype, size_arg, last, inside);
  const Ref place = b.compute(Op::Add, i64, nest.index(b, to), b.compute(Op::Multiply, i64, at, stride_arg));
  const Ref update = literal_update ? update_scalar : b.load(update_buffer, nest.index(b, update_walk));
  const Ref old = b.load(result_buffer, place);
  const Ref value = n.op == Op::PutAlong ? b.compute(Op::Where, n.type.dtype, inside, update, old)
                                         : b.compute(Op::Add, n.type.dtype, old, b.compute(Op::Where, n.type.dtype, inside, update, drop));
  b.store(result_buffer, place, value);
  b.end();
  if (!kept.empty()) b.end();
  b.end();

  out.kernel = std::move(b.kernel);
  out.integers = std::move(nest.integers);
  out.tasks = rows * blocks;
  out.work = 12.0 * static_cast<double>(space.product());
  return out;
}

}  // namespace sinter::kernel
