// The loops of a kernel over rows.
#include <optional>

#include "kernel/lower/rows.h"

namespace sinter::kernel {

using graph::Id;
using ops::Op;

void Rows::open_row(std::int64_t tasks) {
  std::map<Id, Ref> initial;
  if (overlaps_) {
    auto one = [&](Id id) { return b_.constant(g_[id].type.dtype, fold_of(Op::Prod).identity(g_[id].type.dtype)); };
    one_ = one(passes_.back().loads[0]);
    for (Id u : g_[passes_.back().members[0]].in)
      if (is_row_value(body_.under(u))) initial[body_.under(u)] = one(body_.under(u));
  }
  const Ref count = nest_.arg(b_, tasks);
  row_ = b_.loop(LoopKind::Parallel, b_.index(0), count);
  for (auto [id, value] : initial) before_[id] = b_.carry(g_[id].type.dtype, value);
  const std::vector<Ref> start = nest_.position();
  auto position_at = [&](Ref row) {
    nest_.return_to(start);
    nest_.open_rows(b_, outer_, row);
    return nest_.position();
  };
  if (prefetches_rows_) {  // a run's last row asks for itself: what lies behind may be another's
    const Ref last = integer(Op::Subtract, b_.range(1), b_.index(1));
    next_row_ = position_at(integer(Op::Minimum, plus(b_, row_, b_.index(1)), last));
  }
  if (overlaps_) row_before_ = position_at(integer(Op::Maximum, integer(Op::Subtract, row_, b_.index(1)), b_.range(0)));
  position_at(row_);
}

// The rows of a strip, for arrays that lie across them.
void Rows::open_strip_row(Panel& panel, const RowPanel& needed, std::int64_t tasks) {
  std::vector<const Axis*> others;
  for (const Axis* a : outer_)
    if (a != needed.tiled) others.push_back(a);
  const Ref count = nest_.arg(b_, tasks), strips = nest_.arg(b_, panel.strips());
  const Ref task = b_.loop(LoopKind::Parallel, b_.index(0), count);
  auto [row, strip] = split(b_, task, strips);
  nest_.open_rows(b_, others, row);
  panel.open(strip);
  panel.fill(b_.index(0), extent_);
  panel.loop(1, prefetches_rows_ ? &next_row_ : nullptr);
}

// Opens a loop over two parts of the row: until the output's first whole line, and from there on, since whole lines alone can be stored
// past the caches. Returns the part's range.
std::pair<Ref, Ref> Rows::open_aligned(Id output) {
  const Ref head = until_line(output), part = b_.loop(LoopKind::Serial, b_.index(0), b_.index(2));
  return {times(b_, part, head), plus(b_, head, times(b_, part, integer(Op::Subtract, extent_, head)))};
}

// Elements until the output's first whole line: fewer than a row has.
Ref Rows::until_line(Id output) {
  const Ref start = nest_.index(b_, body_.place_of(output).access);
  return integer(Op::BitwiseAnd, integer(Op::Subtract, b_.index(0), start), b_.index(in_line(output) - 1));
}

Rows::Result Rows::of_row_before(Ref lane) {
  const std::vector<Ref> now = nest_.position();
  nest_.return_to(row_before_);
  nest_.open(b_, *lanes_, lane, true);
  std::map<Id, Ref> values;  // of this row
  for (auto [id, carry] : before_) values[id] = body_.define(id, carry);
  const Pass& last = passes_.back();
  body_.open_scope();
  for (Id id : last.loads) body_.load_kept(id, scratch_.at(id));
  body_.emit(last.members);
  const Result result{nest_.index(b_, body_.place_of(last.outputs[0]).access), body_.value(last.outputs[0])};
  body_.close_scope();
  for (auto [id, value] : values) body_.define(id, value);
  nest_.return_to(now);
  return result;
}

// Before the pass: the first row of a run has none before, but ones.
void Rows::begin_overlap() {
  const Id kept = passes_.back().loads[0];
  const std::vector<Ref> now = nest_.position();
  const Ref is_first = integer(Op::Equal, row_, b_.range(0)), zero = b_.index(0);
  const Ref count = b_.compute(Op::Where, Dtype::int64, is_first, plus(b_, extent_, b_.index(in_line(kept))), zero);
  nest_.open(b_, *lanes_, b_.loop(LoopKind::Serial, zero, count), true);
  b_.store(scratch_.at(kept).buffer, nest_.index(b_, scratch_.at(kept).access), one_);
  b_.end();
  nest_.return_to(row_before_);
  ahead_ = b_.compute(Op::Where, Dtype::int64, is_first, zero, until_line(passes_.back().outputs[0]));
  nest_.return_to(now);
}

// After all passes: what the pass over the next row leaves out, or everything, of a run's last row.
void Rows::finish_overlap() {
  const Id output = passes_.back().outputs[0];
  for (const auto& [id, carry] : before_) b_.next(carry, body_.value(id));
  const Ref is_last = integer(Op::Equal, plus(b_, row_, b_.index(1)), b_.range(1));
  const Ref count = b_.compute(Op::Where, Dtype::int64, is_last, extent_, until_line(output));
  const std::vector<Ref> now = nest_.position();
  nest_.open(b_, *lanes_, b_.loop(LoopKind::Vector, b_.index(0), count), true);
  body_.open_scope();
  body_.load_kept(passes_.back().loads[0], scratch_.at(passes_.back().loads[0]));
  body_.emit(passes_.back().members);
  body_.store(output, body_.place_of(output));
  body_.close_scope();
  b_.end();
  nest_.return_to(now);
}

void Rows::go_over_row(std::size_t number) {
  const Pass& pass = passes_[number];
  const std::vector<Part>& parts = pass.parts;
  const std::vector<Ref> at_row = nest_.position();
  Ref begin = b_.index(0), end = extent_;
  std::vector<Ref> blocks, partials;
  if (block_ != kNone && !parts.empty()) {  // blocks of a long row, combined in order
    const Ref block = b_.loop(LoopKind::Serial, b_.index(0), blocks_);
    for (const Part& p : parts) blocks.push_back(b_.carry(p.accumulator, p.identity));
    std::tie(begin, end) = block_range(b_, block, block_, extent_);
  }
  const bool aligns = parts.empty() && !pass.outputs.empty() && lanes_->extent >= kAlignedRow;
  if (aligns) std::tie(begin, end) = open_aligned(pass.outputs.front());
  const Ref lane = b_.loop(LoopKind::Vector, begin, end, parts.empty() ? body_.unroll() : kInnerUnroll, prefetches_rows_ ? 0 : kPrefetch);
  for (const Part& p : parts) partials.push_back(b_.carry(p.accumulator, p.identity));
  auto prefetch = [&](const std::vector<Ref>& row, FunctionRef<void()> ask) {
    nest_.return_to(row);
    nest_.open(b_, *lanes_, lane, true);
    ask();
    nest_.return_to(at_row);
  };
  if (prefetches_rows_ && number == asks_for_next()) prefetch(next_row_, [&] { body_.prefetch_inputs(outer_, *lanes_); });
  const bool before = number + 1 < passes_.size() && stores(passes_[number + 1]);
  if (prefetches_rows_ && !prefetched_ && (overlaps_ ? overlaps_in(number + 1) : stores(pass) || before)) {
    prefetched_ = true;
    prefetch(overlaps_ ? row_before_ : at_row, [&] { body_.prefetch_outputs(); });
  }
  std::optional<Result> late;
  if (overlaps_in(number)) late = of_row_before(plus(b_, lane, ahead_));
  body_.open_scope();
  nest_.open(b_, *lanes_, lane, true);
  for (Id id : pass.loads) body_.load_kept(id, place_of(id));
  body_.emit(pass.members);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& p = parts[i];
    const Ref element = b_.cast(body_.value(g_[p.id].in[0]), p.accumulator);
    b_.next(partials[i], b_.compute(p.fold.op, p.accumulator, partials[i], element));
  }
  if (stored_)
    for (Id id : pass.members)
      for (Id u : g_[id].in) body_.keep_apart(u);
  for (Id id : pass.kept) body_.store(id, place_of(id));
  for (Id id : pass.outputs) body_.store(id, body_.place_of(id));
  if (late) store(*late);
  stored_ = stored_ || late || stores(pass);
  b_.end();
  if (aligns) b_.end();
  body_.close_scope();
  nest_.return_to(at_row);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Ref total = b_.combine(parts[i].fold.op, partials[i]);
    if (!blocks.empty()) b_.next(blocks[i], b_.compute(parts[i].fold.op, parts[i].accumulator, blocks[i], total));
    partials[i] = total;
  }
  if (!blocks.empty()) {
    b_.end();
    partials = blocks;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) body_.define(parts[i].id, b_.cast(partials[i], g_[parts[i].id].type.dtype));
}

}  // namespace sinter::kernel
