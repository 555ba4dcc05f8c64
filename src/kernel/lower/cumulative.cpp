// Cumulative operations: along the axis one element after the other, so that results depend neither on layouts nor on threads; lanes and
// tasks over the other axes. Layer: kernel.
#include "ops/cumulative.h"

#include <algorithm>

#include "kernel/lower/parts.h"
#include "ops/expand.h"

namespace sinter::kernel {
namespace {

using graph::Id;
using graph::Node;
using ops::Op;

constexpr Dtype i64 = Dtype::int64;
constexpr std::int64_t kLaneColumns = 128;  // of a task: few, for there may be no other axis to share the work along
constexpr std::int64_t kFewLanes = 8;
constexpr int kCheap = 12;  // instructions of a step: up to here single numbers, one after the other in memory, beat lanes far apart
constexpr int kUnroll = 2;

// The axis whose elements stand in lanes: the innermost, if it lies inside the one that is gone along. For a long step any, and one that
// fills the lanes. None: single numbers.
const Axis* lanes_of(const std::vector<const Axis*>& kept, std::size_t along, bool cheap) {
  if (kept.empty()) return nullptr;
  const Axis* best = kept.back();
  if (cheap) return best->dims.back() > along ? best : nullptr;
  if (best->extent >= kFewLanes) return best;
  for (const Axis* a : kept)
    if (a->extent > best->extent) best = a;
  return best;
}

}  // namespace

Lowered lower_cumulative(const graph::Graph& g, const graph::Group& group, Id id, LayoutOf layout_of) {
  const Node& n = g[id];
  const auto axis = static_cast<std::size_t>(n.attrs[0]);
  const bool reverse = n.attrs[1] != 0, recurs = n.op == Op::LinearRecurrence, inclusive = recurs || n.attrs[2] != 0;
  const ops::Cumulation f = ops::cumulation_of(n.op, n.type.dtype);
  Builder b;
  b.kernel.name = name_of(g, group);
  Nest nest(n.type.shape, {n.attrs[0]});
  Body body(g, group, layout_of, b, nest);
  nest.form_axes();

  const Axis* folded = nullptr;
  std::vector<const Axis*> outer;
  for (const Axis& a : nest.axes) {
    if (a.reduced)
      folded = &a;
    else
      outer.push_back(&a);
  }
  const int cost = ops::cost(f.step, f.accumulator);
  const Axis* lanes = lanes_of(outer, axis, cost <= kCheap);
  std::erase(outer, lanes);
  std::int64_t rows = 1;
  for (const Axis* a : outer) rows *= a->extent;
  const std::int64_t extent = lanes ? lanes->extent : Dim(1), blocks = (extent + kLaneColumns - 1) / kLaneColumns,
                     count = n.type.shape[axis];

  const auto op = [&](Op o, Ref x, Ref y) { return b.compute(o, i64, x, y); };
  const Ref zero = b.index(0), tasks = nest.arg(b, rows * blocks), count_arg = nest.arg(b, count);
  const Ref last = reverse ? nest.arg(b, count - 1) : kNone, identity = b.constant(f.accumulator, f.identity);
  const Ref task = b.loop(LoopKind::Parallel, zero, tasks);
  if (lanes) {
    const Ref parts = nest.arg(b, blocks), size = nest.arg(b, kLaneColumns), end = nest.arg(b, extent);
    nest.open_rows(b, outer, op(Op::FloorDivide, task, parts));
    const Ref begin = op(Op::Multiply, op(Op::Remainder, task, parts), size);
    nest.open(b, *lanes, b.loop(LoopKind::Vector, begin, op(Op::Minimum, op(Op::Add, begin, size), end), kUnroll), true);
  } else {
    nest.open_rows(b, outer, task);
  }
  const Ref k = b.loop(LoopKind::Serial, zero, count_arg);
  const Ref total = b.carry(f.accumulator, identity);
  if (folded) nest.open(b, *folded, reverse ? op(Op::Subtract, last, k) : k, false);
  const auto operand = [&](std::size_t i) { return b.cast(body.value(n.in[i]), f.accumulator); };
  const auto combine = [&](Op o, Ref x, Ref y) { return b.compute(o, f.accumulator, x, y); };
  const auto self = std::find(group.members.begin(), group.members.end(), id);
  body.emit({group.members.begin(), self});
  const Ref x = operand(n.in.size() - 1);
  Ref next = combine(f.step, recurs ? combine(Op::Multiply, operand(0), total) : total, x);
  if (recurs) next = b.compute(Op::Where, f.accumulator, op(Op::Equal, k, zero), x, next);
  body.define(id, b.cast(inclusive ? next : total, n.type.dtype));
  body.emit({self + 1, group.members.end()});
  for (Id stored : group.outputs) body.store(stored, body.place_of(stored));
  b.next(total, next);
  b.end();
  if (lanes) b.end();
  b.end();

  return finish(b, nest, body, rows * blocks, (cost + body.cost + 5) * static_cast<double>(n.type.shape.product()));
}

}  // namespace sinter::kernel
