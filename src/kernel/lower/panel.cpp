#include "kernel/lower/panel.h"

#include "kernel/lower/parts.h"

namespace sinter::kernel {

using ops::Op;

namespace {

// Between the rows of a panel, so that their columns do not fall on one place of the first-level cache.
constexpr std::int64_t kApart = 16;
// Bytes between the panels of two threads: a processor that has seen a few squares of 16 rows asks for the next ones by itself, also beyond
// the panel's end. Side by side, two threads take each other's lines away and 1.4 times as long where memory gives 85 GB/s.
constexpr std::int64_t kBesides = 44 << 10;

std::int64_t pitch_of(std::int64_t width) { return ceil_div(width, kTile) * kTile + kApart; }

}  // namespace

std::int64_t panel_height(std::int64_t width, std::int64_t bytes, std::int64_t memory) {
  return memory / (pitch_of(width) * bytes) / kTile * kTile;
}

RowPanel row_panel(const Body& body, const std::vector<const Axis*>& kept, const Axis& lanes) {
  const Axis* tiled = body.tiled_axis(kept, lanes);
  if (!tiled) return {};
  const std::int64_t bytes = body.across_bytes(*tiled, lanes);
  std::int64_t rows = 1, height = panel_height(lanes.extent, bytes, kRowPanelBytes);
  for (const Axis* a : kept)
    if (a != tiled) rows *= a->extent;
  if (height == 0 || rows * ceil_div(tiled->extent, height) < kFewTasks)
    height = std::min<std::int64_t>(panel_height(lanes.extent, bytes, kMostPanelBytes), kTile);
  return {height == 0 ? nullptr : tiled, height};
}

Panel::Panel(Builder& b, Nest& nest, Body& body, const Axis& tiled, const Axis& lanes, std::int64_t height, std::int64_t width, bool fixed)
    : b_(b),
      nest_(nest),
      tiled_(tiled),
      lanes_(lanes),
      strips_(ceil_div(tiled.extent, height)),
      rows_(height),
      width_(width),
      fixed_(fixed) {
  const std::int64_t pitch = pitch_of(width);
  const std::size_t panels = nest.add_walk({{&tiled, pitch}, {&lanes, 1}});
  arrays_ = body.read_across(tiled, lanes, panels);
  for (const Body::Across& a : arrays_) {
    accesses_.push_back(a.access);
    bytes_.push_back(height * pitch * size_of(b.kernel.buffers[static_cast<std::size_t>(a.panel)].dtype));
  }
  accesses_.push_back(panels);
  if (fixed) bytes_.back() += kBesides;
  auto size = [&](std::int64_t n) { return fixed ? b.index(n) : nest.arg(b, n); };
  count_ = nest.arg(b, tiled.extent), height_ = size(height), pitch_ = size(pitch);
}

void Panel::open(Ref strip) {
  auto [top, bottom] = block_range(b_, strip, height_, count_);
  open(top, bottom);
}
void Panel::open(Ref top, Ref bottom) {
  top_ = top, bottom_ = bottom;
  // The last strip may read from earlier on than where it computes, so that it reads a whole tile, or as many rows as all others.
  base_ = minimum(top_, b_.compute(Op::Subtract, Dtype::int64, count_, fixed_ ? height_ : b_.index(kTile)));
  read_ = fixed_ ? height_ : b_.compute(Op::Subtract, Dtype::int64, bottom_, base_);
}

void Panel::fill(Ref first, Ref last, const Later* later) {
  // Row `base`, column `first` is the panel's first element.
  const Ref origin = plus(b_, times(b_, base_, pitch_), first);
  nest_.start(accesses_.back(), b_.compute(Op::Subtract, Dtype::int64, b_.index(0), origin));
  const std::vector<Ref> at_strip = nest_.position();
  nest_.open(b_, tiled_, base_, false, accesses_);
  const std::vector<Ref> at_base = nest_.position();
  const Ref lane = b_.loop(LoopKind::Vector, first, last);
  std::vector<Ref> asked(arrays_.size(), kNone);
  if (later) {
    nest_.return_to(later->position);
    nest_.open(b_, tiled_, later->top, false, accesses_);
    nest_.open(b_, lanes_, plus(b_, lane, b_.compute(Op::Subtract, Dtype::int64, later->first, first)), true, accesses_);
    for (std::size_t i = 0; i < arrays_.size(); ++i) asked[i] = nest_.index(b_, arrays_[i].access);
    nest_.return_to(at_base);
  }
  nest_.open(b_, lanes_, lane, true, accesses_);
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    b_.tile(arrays_[i].buffer, nest_.index(b_, arrays_[i].access), arrays_[i].panel, nest_.index(b_, accesses_.back()), pitch_, read_,
            asked[i]);
  b_.end();
  nest_.return_to(at_strip);
}

void Panel::ask(const Later& later, Ref row) {
  const std::vector<Ref> at_row = nest_.position();
  const Ref number = b_.compute(Op::Subtract, Dtype::int64, row, top_);
  // Tiles ask for the even columns.
  const Ref odd = b_.compute(Op::BitwiseOr, Dtype::int64, times(b_, number, b_.index(share())), b_.index(1));
  const Ref column = plus(b_, later.first, odd);
  const Ref line = b_.loop(LoopKind::Vector, b_.index(0), b_.index(rows_), static_cast<int>(std::min<std::int64_t>(rows_ / kTile, 4)));
  for (std::int64_t n = 0; n < share(); n += 2) {
    nest_.return_to(later.position);
    nest_.open(b_, lanes_, plus(b_, column, b_.index(n)), false, accesses_);
    nest_.open(b_, tiled_, plus(b_, later.top, line), true, accesses_);
    for (const Body::Across& a : arrays_) b_.prefetch(a.buffer, nest_.index(b_, a.access), true);
  }
  b_.end();
  nest_.return_to(at_row);
}

Ref Panel::loop(std::int64_t rows_ahead, std::vector<Ref>* ahead) {
  const Ref row = b_.loop(LoopKind::Serial, top_, bottom_);
  if (ahead) {
    const std::vector<Ref> at_strip = nest_.position();
    nest_.open(b_, tiled_, plus(b_, row, b_.index(rows_ahead)), false);
    *ahead = nest_.position();
    nest_.return_to(at_strip);
  }
  nest_.open(b_, tiled_, row, false);
  return row;
}

}  // namespace sinter::kernel
