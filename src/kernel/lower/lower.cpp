#include "kernel/lower/lower.h"

#include <algorithm>

#include "kernel/lower/panel.h"
#include "kernel/lower/parts.h"

namespace sinter::kernel {
namespace {

using graph::Graph;
using graph::Group;
using graph::Id;
using ops::Op;

// Of (row, block), the next one of `blocks` blocks a row.
std::pair<Ref, Ref> following(Builder& b, Ref row, Ref block, Ref blocks) {
  const Ref one = b.index(1), next = plus(b, block, one), ends = b.compute(Op::Equal, Dtype::int64, next, blocks);
  return {b.compute(Op::Where, Dtype::int64, ends, plus(b, row, one), row), b.compute(Op::Where, Dtype::int64, ends, b.index(0), next)};
}

// Some arrays lie along another axis than the lanes.
Lowered lower_panels(Builder& b, Nest& nest, Body& body, const Axis& tiled) {
  const Axis& lanes = nest.axes.back();
  std::vector<const Axis*> outer;
  std::int64_t rows = 1;
  for (const Axis& a : nest.axes)
    if (&a != &lanes && &a != &tiled) {
      outer.push_back(&a);
      rows *= a.extent;
    }
  const std::int64_t columns = ceil_div(lanes.extent, kPanelColumns);
  std::int64_t height = kPanelColumns;
  while (height > kTile && (height > panel_height(kPanelColumns, body.across_bytes(tiled, lanes), kPanelBytes) || height > tiled.extent))
    height /= 2;
  Panel panel(b, nest, body, tiled, lanes, height, kPanelColumns, true);
  Ref extent = nest.arg(b, lanes.extent), size = b.index(kPanelColumns);
  Ref task = b.loop(LoopKind::Parallel, b.index(0), nest.arg(b, rows * panel.strips() * columns));
  // Strip after strip of the same columns: their lines follow each other.
  const Ref strips = nest.arg(b, panel.strips());
  auto [line, strip] = split(b, task, strips);
  auto [next_line, next_strip] = following(b, line, strip, strips);
  Ref row = kNone, column = line, next_row = kNone, next_column = next_line;
  if (!outer.empty()) {
    const Ref columns_of_row = nest.arg(b, columns);
    std::tie(row, column) = split(b, line, columns_of_row);
    std::tie(next_row, next_column) = split(b, next_line, columns_of_row);
  }
  const std::vector<Ref> start = nest.position();
  nest.open_rows(b, outer, next_row);
  const Panel::Later next{nest.position(), panel.top_of(next_strip), times(b, next_column, size)};
  nest.return_to(start);
  nest.open_rows(b, outer, row);
  auto [first, last] = block_range(b, column, size, extent);
  panel.open(strip);
  panel.fill(first, last, &next);
  body.preload({&lanes, &tiled});
  std::vector<Ref> ahead;
  const Ref strip_row = panel.loop(kRowsAhead, &ahead);
  panel.ask(next, strip_row);
  const std::vector<Ref> at_row = nest.position();
  body.preload({&lanes});
  Ref lane = b.loop(LoopKind::Vector, first, last, body.unroll(kPanelUnroll));
  nest.return_to(ahead);
  nest.open(b, lanes, lane, true);
  body.prefetch_inputs({&tiled}, lanes);
  nest.return_to(at_row);
  nest.open(b, lanes, lane, true);
  body.emit();
  b.end();
  b.end();
  b.end();
  Lowered out =
      finish(b, nest, body, rows * panel.strips() * columns, (body.cost + 6) * static_cast<double>(rows * tiled.extent * lanes.extent));
  out.own_bytes = panel.bytes();
  return out;
}

Lowered lower_pointwise(const Graph& g, const Group& group, LayoutOf layout_of) {
  Builder b;
  b.kernel.name = name_of(g, group);
  Nest nest(group.space, group.axes);
  Body body(g, group, layout_of, b, nest);
  nest.form_axes();
  Axis inner = nest.axes.empty() ? Axis{} : nest.axes.back();
  std::vector<const Axis*> outer;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < nest.axes.size(); ++i) {
    outer.push_back(&nest.axes[i]);
    rows *= nest.axes[i].extent;
  }
  if (!outer.empty())
    if (const Axis* tiled = body.tiled_axis(outer, nest.axes.back())) return lower_panels(b, nest, body, *tiled);
  std::int64_t block = rows == 1 ? kPointwiseBlock : 4 * kPointwiseBlock, blocks = ceil_div(inner.extent, block);
  Ref extent = nest.arg(b, inner.extent), size = nest.arg(b, block), tasks = nest.arg(b, rows * blocks);
  Ref task = b.loop(LoopKind::Parallel, b.index(0), tasks);
  Ref place = task;
  if (!outer.empty()) {
    auto [row, part] = split(b, task, nest.arg(b, blocks));
    nest.open_rows(b, outer, row);
    place = part;
  }
  auto [begin, end] = block_range(b, place, size, extent);
  body.preload({&inner});
  Ref lane = b.loop(LoopKind::Vector, begin, end, body.pointwise_unroll(), kPrefetch);
  nest.open(b, inner, lane, true);
  body.emit();
  b.end();
  b.end();
  return finish(b, nest, body, rows * blocks, (body.cost + 2) * static_cast<double>(rows * inner.extent));
}

}  // namespace

std::vector<Lowered> lower(const Graph& g, const Group& group, LayoutOf layout_of) {
  for (Id id : group.members)
    if (ops::info(g[id].op).kind == ops::OpKind::Cumulative) {
      std::vector<Lowered> one;
      one.push_back(lower_cumulative(g, group, id, layout_of));
      return one;
    }
  // Members of other shapes than the space, or that read a reduction of it, are computed row by row.
  bool reduces = false, rows = false;
  for (Id id : group.members) {
    const bool reduction = !graph::is_pointwise(g[id]);
    reduces = reduces || reduction;
    if (group.axes.empty()) continue;
    rows = rows || (!reduction && g[id].type.shape != group.space);
    for (Id u : g[id].in) {
      const Id made = graph::under_views(g, u);
      rows = rows || (!graph::is_pointwise(g[made]) && std::binary_search(group.members.begin(), group.members.end(), made));
    }
  }
  if (reduces && !rows) return lower_reduction(g, group, layout_of);
  std::vector<Lowered> out;
  out.push_back(rows ? lower_rows(g, group, layout_of) : lower_pointwise(g, group, layout_of));
  return out;
}

}  // namespace sinter::kernel
