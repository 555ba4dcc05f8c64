// Reductions along inner and outer axes, with their producers. Layer: kernel.
#include <algorithm>
#include <optional>

#include "kernel/lower/panel.h"
#include "kernel/lower/parts.h"

namespace sinter::kernel {
namespace {

using graph::Graph;
using graph::Group;
using graph::Id;
using ops::Op;

class Reduction {
 public:
  Reduction(const Graph& g, const Group& group, LayoutOf layout_of)
      : g_(g), group_(group), nest_(group.space, group.axes), body_(g, group, layout_of, b_, nest_) {
    b_.kernel.name = name_of(g, group);
    for (Id id : group.members)
      if (!graph::is_pointwise(g[id])) {
        Part p{id, fold_of(g[id].op), accumulator(g[id])};
        p.identity = b_.constant(p.accumulator, p.fold.identity(p.accumulator));
        parts_.push_back(p);
      }
    body_.cost += 2 * static_cast<double>(parts_.size());
  }

  std::vector<Lowered> run() {
    for (Part& p : parts_) p.access = body_.add_result(p.id, p.buffer);
    nest_.form_axes();
    for (const Axis& a : nest_.axes) {
      if (a.reduced)
        folded_.push_back(&a);
      else
        kept_.push_back(&a);
    }
    for (const Axis* a : kept_) kept_count_ *= a->extent;
    if (folded_.empty()) folded_.push_back(&unit_);  // only axes of size 1 are reduced
    bool inner = !nest_.axes.empty() && nest_.axes.back().reduced;
    blocks_ = std::max<std::int64_t>(1, ceil_div(folded_.back()->extent, inner ? kInnerBlock : kOuterBlock));
    Lowered first = inner || kept_.empty() ? fold_inner() : fold_outer();
    std::vector<Lowered> out;
    out.push_back(std::move(first));
    if (blocks_ > 1) {
      for (const Part& p : parts_) out[0].scratch_bytes += blocks_ * kept_count_ * size_of(p.accumulator);
      out.push_back(fold_blocks());
    }
    return out;
  }

 private:
  struct Part {
    Id id;
    Fold fold;
    Dtype accumulator;
    Ref identity = kNone;
    int buffer = 0;
    std::size_t access = 0;
    Ref carry = kNone;
  };

  Ref element(const Part& p) { return b_.cast(body_.value(g_[p.id].in[0]), p.accumulator); }

  // Where a task's results go: the outputs, or its block's row of the scratch memory, [blocks][kept].
  Ref place(const Part& p, Ref block, Ref kept) {
    return blocks_ == 1 ? nest_.index(b_, p.access) : plus(b_, times(b_, block, kept_arg_), kept);
  }
  void store(Part& p, Ref value, Ref block, Ref kept) {
    b_.store(p.buffer, place(p, block, kept), blocks_ == 1 ? b_.cast(value, g_[p.id].type.dtype) : value);
  }
  void begin_arguments() {
    if (blocks_ == 1) return;
    kept_arg_ = nest_.arg(b_, kept_count_);
    for (Part& p : parts_) {  // the same buffer number now means scratch memory
      b_.kernel.buffers[static_cast<std::size_t>(p.buffer)].dtype = p.accumulator;
      body_.buffers[static_cast<std::size_t>(p.buffer)] = {graph::kKeep, blocks_ * kept_count_, false};
    }
  }

  // A serial loop that carries every part; returns its index. `initial` may be the carries of a loop around it.
  Ref open_serial(Ref begin, Ref end) {
    Ref index = b_.loop(LoopKind::Serial, begin, end);
    for (Part& p : parts_) p.carry = b_.carry(p.accumulator, p.carry == kNone ? p.identity : p.carry);
    return index;
  }

  // The innermost axis is reduced: lanes along it, partials combined at the end of each block.
  Lowered fold_inner() {
    begin_arguments();
    const Axis& lanes = *folded_.back();
    if (blocks_ == 1 && folded_.size() == 1)
      if (RowPanel p = row_panel(body_, kept_, lanes); p.tiled) return fold_panels(lanes, p);
    Ref extent = nest_.arg(b_, lanes.extent), size = nest_.arg(b_, kInnerBlock), tasks = nest_.arg(b_, kept_count_ * blocks_);
    Ref task = b_.loop(LoopKind::Parallel, b_.index(0), tasks);
    Ref row = task, block = kNone, begin = b_.index(0), end = extent;
    if (blocks_ > 1) {
      std::tie(row, block) = split(b_, task, nest_.arg(b_, blocks_));
      std::tie(begin, end) = block_range(b_, block, size, extent);
    }
    nest_.open_rows(b_, kept_, row);
    std::vector<std::vector<Ref>> outer;  // carries of the serial loops over the other reduced axes
    std::vector<Ref> at_row = nest_.position();
    for (std::size_t i = 0; i + 1 < folded_.size(); ++i) {
      Ref index = open_serial(b_.index(0), nest_.arg(b_, folded_[i]->extent));
      outer.push_back({});
      for (Part& p : parts_) outer.back().push_back(p.carry);
      nest_.open(b_, *folded_[i], index, false);
    }
    const std::vector<Ref> totals = fold_row(lanes, begin, end);
    for (std::size_t level = outer.size(); level-- > 0;) {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        Ref next = level + 1 == outer.size() ? b_.compute(parts_[i].fold.op, parts_[i].accumulator, outer[level][i], totals[i])
                                             : outer[level + 1][i];
        b_.next(outer[level][i], next);
      }
      b_.end();
    }
    nest_.return_to(at_row);
    for (std::size_t i = 0; i < parts_.size(); ++i) store(parts_[i], outer.empty() ? totals[i] : outer[0][i], block, row);
    b_.end();
    return finish(b_, nest_, body_, kept_count_ * blocks_, work());
  }

  std::vector<Ref> fold_row(const Axis& lanes, Ref begin, Ref end) {
    body_.preload({&lanes});
    Ref lane = b_.loop(LoopKind::Vector, begin, end, kInnerUnroll, kPrefetch);
    std::vector<Ref> partials, totals;
    for (Part& p : parts_) partials.push_back(b_.carry(p.accumulator, p.identity));
    nest_.open(b_, lanes, lane, true);
    body_.emit();
    for (std::size_t i = 0; i < parts_.size(); ++i)
      b_.next(partials[i], b_.compute(parts_[i].fold.op, parts_[i].accumulator, partials[i], element(parts_[i])));
    b_.end();
    for (std::size_t i = 0; i < parts_.size(); ++i) totals.push_back(b_.combine(parts_[i].fold.op, partials[i]));
    return totals;
  }

  // Rows in strips, for arrays that lie across them.
  Lowered fold_panels(const Axis& lanes, const RowPanel& needed) {
    std::vector<const Axis*> outer;
    for (const Axis* a : kept_)
      if (a != needed.tiled) outer.push_back(a);
    const std::int64_t others = kept_count_ / needed.tiled->extent;
    Panel panel(b_, nest_, body_, *needed.tiled, lanes, needed.height, lanes.extent);
    const Ref extent = nest_.arg(b_, lanes.extent), none = b_.index(0), strips = nest_.arg(b_, panel.strips());
    const Ref task = b_.loop(LoopKind::Parallel, none, nest_.arg(b_, others * panel.strips()));
    auto [row, strip] = split(b_, task, strips);
    nest_.open_rows(b_, outer, row);
    panel.open(strip);
    panel.fill(none, extent);
    panel.loop();
    const std::vector<Ref> at_row = nest_.position();
    const std::vector<Ref> totals = fold_row(lanes, none, extent);
    nest_.return_to(at_row);
    for (std::size_t i = 0; i < parts_.size(); ++i) store(parts_[i], totals[i], kNone, kNone);
    b_.end();
    b_.end();
    Lowered out = finish(b_, nest_, body_, others * panel.strips(), work());
    out.own_bytes = panel.bytes();
    return out;
  }

  // The innermost axis is kept: lanes along it, each folding its own column in order.
  Lowered fold_outer() {
    const bool in_place =
        blocks_ > 1 || std::all_of(parts_.begin(), parts_.end(), [&](const Part& p) { return p.accumulator == g_[p.id].type.dtype; });
    const bool bands = folded_.size() == 1 && folded_[0]->extent >= 2 * kBand && in_place;
    begin_arguments();
    const Axis& lanes = *kept_.back();
    std::vector<const Axis*> rows(kept_.begin(), kept_.end() - 1);
    std::int64_t row_count = lanes.extent == 0 ? Dim(0) : kept_count_ / lanes.extent, columns = ceil_div(lanes.extent, kColumns);
    Ref extent = nest_.arg(b_, lanes.extent), size = nest_.arg(b_, kColumns), parts = nest_.arg(b_, columns);
    Ref tasks = nest_.arg(b_, row_count * columns * blocks_);
    Ref task = b_.loop(LoopKind::Parallel, b_.index(0), tasks);
    Ref block = kNone, begin = b_.index(0), end = nest_.arg(b_, folded_.back()->extent);
    if (blocks_ > 1) {
      std::tie(task, block) = split(b_, task, nest_.arg(b_, blocks_));
      std::tie(begin, end) = block_range(b_, block, nest_.arg(b_, kOuterBlock), end);
    }
    auto [row, column] = split(b_, task, parts);
    nest_.open_rows(b_, rows, row);
    auto [first, last] = block_range(b_, column, size, extent);
    if (bands) {
      const Ref part = blocks_ == 1 ? kNone : plus(b_, times(b_, block, kept_arg_), times(b_, row, extent));
      fold_bands({lanes, first, last, part}, begin, end);
      b_.end();
      Lowered out = finish(b_, nest_, body_, row_count * columns * blocks_, work());
      out.own_bytes = own_bytes_;
      return out;
    }
    Ref lane = b_.loop(LoopKind::Vector, first, last, body_.unroll(), 0);
    nest_.open(b_, lanes, lane, true);
    body_.preload(folded_);
    std::vector<Ref> at_column = nest_.position();
    std::vector<std::vector<Ref>> carries;
    for (std::size_t i = 0; i < folded_.size(); ++i) {
      bool innermost = i + 1 == folded_.size();
      Ref index = open_serial(innermost ? begin : b_.index(0), innermost ? end : nest_.arg(b_, folded_[i]->extent));
      carries.push_back({});
      for (Part& p : parts_) carries.back().push_back(p.carry);
      nest_.open(b_, *folded_[i], index, false);
    }
    body_.emit();
    for (std::size_t level = carries.size(); level-- > 0;) {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        Part& p = parts_[i];
        b_.next(carries[level][i],
                level + 1 == carries.size() ? b_.compute(p.fold.op, p.accumulator, p.carry, element(p)) : carries[level + 1][i]);
      }
      b_.end();
    }
    nest_.return_to(at_column);
    Ref kept = plus(b_, times(b_, row, extent), lane);
    for (std::size_t i = 0; i < parts_.size(); ++i) store(parts_[i], carries[0][i], block, kept);
    b_.end();
    b_.end();
    return finish(b_, nest_, body_, row_count * columns * blocks_, work());
  }

  // Bands of rows, each over all columns of the task, so that memory is read in long runs. Between bands a column's fold lies where its
  // result goes: at `part` of the scratch memory and its own place, if there are blocks.
  struct Columns {
    const Axis& lanes;
    Ref first, last, part;
  };
  void fold_bands(const Columns& columns, Ref first_row, Ref last_row) {
    const Axis* tiled = body_.tiled_axis({folded_[0]}, columns.lanes);
    if (!tiled && is_light(body_.cost, nest_.reach(*folded_[0]), parts_)) {
      Ref top = fold_light_bands(columns, first_row, first_row, last_row, kLightRows);
      if (folded_[0]->extent % kLightRows != 0) fold_light_bands(columns, first_row, top, last_row, 1);
      return;
    }
    std::optional<Panel> panel;
    std::int64_t band_height = kBand;
    if (tiled) {
      const std::int64_t width = std::min<std::int64_t>(columns.lanes.extent, kColumns);
      band_height = std::max<std::int64_t>(panel_height(width, body_.across_bytes(*tiled, columns.lanes), kRowPanelBytes), kTile);
      panel.emplace(b_, nest_, body_, *tiled, columns.lanes, band_height, width);
      own_bytes_ = panel->bytes();
    }
    const Ref height = nest_.arg(b_, band_height), end = plus(b_, last_row, nest_.arg(b_, band_height - 1));
    const Ref bands = b_.compute(Op::FloorDivide, Dtype::int64, b_.compute(Op::Subtract, Dtype::int64, end, first_row), height);
    const Ref band = b_.loop(LoopKind::Serial, b_.index(0), bands);
    const Ref top = plus(b_, first_row, times(b_, band, height));
    const Ref bottom = b_.compute(Op::Minimum, Dtype::int64, plus(b_, top, height), last_row);
    if (panel) {
      panel->open(top, bottom);
      panel->fill(columns.first, columns.last);
    }
    over_columns(columns, b_.compute(Op::Equal, Dtype::int64, top, first_row), body_.unroll(kBandUnroll), [&](Ref) {
      nest_.open(b_, *folded_[0], open_serial(top, bottom), false);
      std::vector<Ref> carries;
      for (const Part& p : parts_) carries.push_back(p.carry);
      fold_element();
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        b_.next(carries[i], parts_[i].carry);
        parts_[i].carry = carries[i];
      }
      b_.end();
    });
    b_.end();
  }
  // Bands of rows that are written out, from row `from` on; returns the row behind them.
  Ref fold_light_bands(const Columns& columns, Ref first_row, Ref from, Ref last_row, int height) {
    return each_band(b_, nest_, *folded_[0], from, last_row, height, [&](Ref top, const EachRow& at_row) {
      const Ref begins = b_.compute(Op::Equal, Dtype::int64, top, first_row);
      over_columns(columns, begins, height == 1 ? 1 : kLightUnroll, [&](Ref lane) {
        for (const std::vector<Ref>& at : at_row) {
          nest_.return_to(at);
          nest_.open(b_, columns.lanes, lane, true);
          fold_element();
        }
      });
    });
  }
  // `fold` goes over the rows of a band, from the carries that it finds: at the first band (`begins`) the identity.
  void over_columns(const Columns& columns, Ref begins, int unroll, FunctionRef<void(Ref)> fold) {
    const std::vector<Ref> at_band = nest_.position();
    const Ref lane = b_.loop(LoopKind::Vector, columns.first, columns.last, unroll);
    nest_.open(b_, columns.lanes, lane, true);
    body_.open_scope();
    body_.preload(folded_);
    std::vector<Ref> places;
    for (Part& p : parts_) {
      places.push_back(columns.part == kNone ? nest_.index(b_, p.access) : plus(b_, columns.part, lane));
      p.carry = b_.compute(Op::Where, p.accumulator, begins, p.identity, b_.load(p.buffer, places.back()));
    }
    fold(lane);
    for (std::size_t i = 0; i < parts_.size(); ++i) b_.store(parts_[i].buffer, places[i], parts_[i].carry);
    body_.close_scope();
    b_.end();
    nest_.return_to(at_band);
  }
  void fold_element() {
    body_.open_scope();
    body_.emit();
    for (Part& p : parts_) p.carry = b_.compute(p.fold.op, p.accumulator, p.carry, element(p));
    body_.close_scope();
  }

  // The second kernel of a long reduction: folds the blocks of the scratch memory in order.
  Lowered fold_blocks() {
    Builder b;
    b.kernel.name = name_of(g_, group_) + "_blocks";
    Lowered out;
    auto arg = [&](std::int64_t v) {
      out.integers.push_back(v);
      return b.arg();
    };
    std::int64_t tasks = ceil_div(kept_count_, kColumns);
    Ref kept = arg(kept_count_), size = arg(kColumns), count = arg(tasks), blocks = arg(blocks_);
    std::vector<int> in, result;
    std::vector<Ref> identity;
    for (const Part& p : parts_) {
      in.push_back(static_cast<int>(b.buffer(p.accumulator, false)));
      result.push_back(static_cast<int>(b.buffer(g_[p.id].type.dtype, true)));
      out.buffers.push_back({graph::kKeep, blocks_ * kept_count_, false});
      out.buffers.push_back({p.id, kept_count_, false});
      identity.push_back(b.constant(p.accumulator, p.fold.identity(p.accumulator)));
    }
    Ref task = b.loop(LoopKind::Parallel, b.index(0), count);
    auto [first, last] = block_range(b, task, size, kept);
    Ref lane = b.loop(LoopKind::Vector, first, last);
    Ref block = b.loop(LoopKind::Serial, b.index(0), blocks);
    std::vector<Ref> carry;
    for (std::size_t i = 0; i < parts_.size(); ++i) carry.push_back(b.carry(parts_[i].accumulator, identity[i]));
    Ref place = plus(b, times(b, block, kept), lane);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      b.next(carry[i], b.compute(parts_[i].fold.op, parts_[i].accumulator, carry[i], b.load(in[i], place)));
    b.end();
    for (std::size_t i = 0; i < parts_.size(); ++i) b.store(result[i], lane, b.cast(carry[i], g_[parts_[i].id].type.dtype));
    b.end();
    b.end();
    out.kernel = std::move(b.kernel);
    out.tasks = tasks;
    out.work = static_cast<double>(kept_count_ * blocks_);
    return out;
  }

  double work() const {
    double n = static_cast<double>(kept_count_);
    for (const Axis* a : folded_) n *= static_cast<double>(a->extent);
    return n * (body_.cost + 2);
  }

  const Graph& g_;
  const Group& group_;
  Builder b_;
  Nest nest_;
  Body body_;
  std::vector<Part> parts_;
  std::vector<const Axis*> kept_, folded_;
  Axis unit_{1, true, {}};
  std::int64_t kept_count_ = 1, blocks_ = 1;
  std::vector<std::int64_t> own_bytes_;
  Ref kept_arg_ = kNone;
};

}  // namespace

std::vector<Lowered> lower_reduction(const Graph& g, const Group& group, LayoutOf layout_of) {
  return Reduction(g, group, layout_of).run();
}

}  // namespace sinter::kernel
