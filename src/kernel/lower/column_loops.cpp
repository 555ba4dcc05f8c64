// The loops of a kernel over rows that are columns of memory.
#include <set>

#include "kernel/lower/rows.h"

namespace sinter::kernel {

using graph::Id;
using ops::Op;

// Kept axes follow the folded one: lanes along the last of them. A task has a chunk of columns, each a row of its own, that it passes
// over in bands of rows, so that it goes through memory in long runs. Between bands and passes what there is one of a column lies in
// scratch memory.
Lowered Rows::over_columns(std::int64_t rows) {
  check(folded_->extent <= kOuterBlock, "lower: columns of several blocks");
  const std::int64_t share = ceil_div(rows * lanes_->extent, kFewTasks * kLeastChunk) * kLeastChunk;
  const std::int64_t width = std::min(share, kChunk), chunks = ceil_div(lanes_->extent, width);
  places_ = nest_.add_walk({{lanes_, 1}});
  const Ref size = nest_.arg(b_, width), all = nest_.arg(b_, lanes_->extent), none = b_.index(0);
  extent_ = nest_.arg(b_, folded_->extent);
  const Ref task = b_.loop(LoopKind::Parallel, none, nest_.arg(b_, rows * chunks));
  auto [row, chunk] = split(b_, task, nest_.arg(b_, chunks));
  nest_.open_rows(b_, outer_, row);
  std::tie(first_column_, last_column_) = block_range(b_, chunk, size, all);
  nest_.start(places_, b_.compute(Op::Subtract, Dtype::int64, none, first_column_));
  column_values({}, first_values_, {});
  for (const Pass& pass : passes_) {
    const std::vector<int> folds = go_over_columns(pass);
    column_values(pass.parts, pass.row_values, folds);
  }
  b_.end();
  Lowered out = finish(b_, nest_, body_, rows * chunks, static_cast<double>(rows * lanes_->extent * folded_->extent) * (body_.cost + 2));
  for (const Buffer& buffer : out.kernel.buffers)
    if (buffer.scratch) out.own_bytes.push_back(width * size_of(buffer.dtype));
  return out;
}

// Over the columns of the chunk, with the row values that these members read.
void Rows::each_column(const std::vector<Id>& members, int unroll, FunctionRef<void(Ref)> body) {
  const std::vector<Ref> before = nest_.position();
  const Ref lane = b_.loop(LoopKind::Vector, first_column_, last_column_, unroll);
  nest_.open(b_, *lanes_, lane, true);
  body_.open_scope();
  body_.preload({folded_});
  std::set<Id> loaded;
  for (Id id : members)
    for (Id u : g_[id].in)
      if (auto it = held_.find(body_.under(u)); it != held_.end() && loaded.insert(it->first).second)
        body_.define(it->first, b_.load(it->second, nest_.index(b_, places_)));
  body(lane);
  body_.close_scope();
  b_.end();
  nest_.return_to(before);
}

int Rows::scratch_place(Dtype t) {
  body_.buffers.push_back({});
  return static_cast<int>(b_.buffer(t, true, true));
}

// Returns where the folds of its reductions lie. Without any, rows go one by one.
std::vector<int> Rows::go_over_columns(const Pass& pass) {
  std::vector<int> places;
  for (const Part& p : pass.parts) places.push_back(scratch_place(p.accumulator));
  double cost = 2.0 * static_cast<double>(places.size());
  for (Id id : pass.members) cost += graph::cost(g_, id);
  if (places.empty()) {
    written_out(pass, places, b_.index(0), 1, body_.unroll());
  } else if (is_light(cost, nest_.reach(*folded_), pass.parts)) {
    const Ref top = written_out(pass, places, b_.index(0), kLightRows, kLightUnroll);
    if (folded_->extent % kLightRows != 0) written_out(pass, places, top, 1, 1);
  } else {
    in_loops(pass, places);
  }
  return places;
}

// Bands of rows that are written out, from row `from` on; returns the row behind them.
Ref Rows::written_out(const Pass& pass, const std::vector<int>& places, Ref from, int height, int unroll) {
  return each_band(b_, nest_, *folded_, from, extent_, height, [&](Ref top, const EachRow& at_row) {
    each_column(pass.members, unroll, [&](Ref lane) {
      const std::vector<Ref> at_column = nest_.position();
      std::vector<Ref> folds = begin_folds(pass, places, top);
      for (const std::vector<Ref>& at : at_row) {
        nest_.return_to(at);
        nest_.open(b_, *lanes_, lane, true);
        body_.open_scope();
        emit_element(pass, folds);
        body_.close_scope();
      }
      nest_.return_to(at_column);
      for (std::size_t i = 0; i < places.size(); ++i) b_.store(places[i], nest_.index(b_, places_), folds[i]);
    });
  });
}

void Rows::in_loops(const Pass& pass, const std::vector<int>& places) {
  const Ref height = nest_.arg(b_, kBand);
  const Ref band = b_.loop(LoopKind::Serial, b_.index(0), nest_.arg(b_, ceil_div(folded_->extent, kBand)));
  auto [top, bottom] = block_range(b_, band, height, extent_);
  each_column(pass.members, body_.unroll(kBandUnroll), [&, top = top, bottom = bottom](Ref) {
    const std::vector<Ref> at_column = nest_.position();
    std::vector<Ref> carries = begin_folds(pass, places, top);
    const Ref row = b_.loop(LoopKind::Serial, top, bottom);
    for (std::size_t i = 0; i < places.size(); ++i) carries[i] = b_.carry(pass.parts[i].accumulator, carries[i]);
    nest_.open(b_, *folded_, row, false);
    std::vector<Ref> folds = carries;
    body_.open_scope();
    emit_element(pass, folds);
    body_.close_scope();
    for (std::size_t i = 0; i < places.size(); ++i) b_.next(carries[i], folds[i]);
    b_.end();
    nest_.return_to(at_column);
    for (std::size_t i = 0; i < places.size(); ++i) b_.store(places[i], nest_.index(b_, places_), carries[i]);
  });
  b_.end();
}

std::vector<Ref> Rows::begin_folds(const Pass& pass, const std::vector<int>& places, Ref top) {
  std::vector<Ref> folds;
  if (places.empty()) return folds;
  const Ref begins = b_.compute(Op::Equal, Dtype::int64, top, b_.index(0));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Part& p = pass.parts[i];
    folds.push_back(b_.compute(Op::Where, p.accumulator, begins, p.identity, b_.load(places[i], nest_.index(b_, places_))));
  }
  return folds;
}

// What there is one of a column once a pass has folded `parts`: what is read later is held, outputs are stored.
void Rows::column_values(const std::vector<Part>& parts, const std::vector<Id>& members, const std::vector<int>& folds) {
  if (parts.empty() && members.empty()) return;
  std::vector<Id> all = members;
  for (const Part& p : parts) all.push_back(p.id);
  std::map<Id, int> fresh;
  for (Id id : all)
    if (read_later_.contains(id)) fresh[id] = scratch_place(g_[id].type.dtype);
  each_column(members, 1, [&](Ref) {
    for (std::size_t i = 0; i < folds.size(); ++i)
      body_.define(parts[i].id, b_.cast(b_.load(folds[i], nest_.index(b_, places_)), g_[parts[i].id].type.dtype));
    body_.emit(members);
    for (auto [id, buffer] : fresh) b_.store(buffer, nest_.index(b_, places_), body_.value(id));
    for (Id id : members)
      if (is_output(id)) body_.store(id, body_.place_of(id));
    for (const Folded& r : results_)
      if (std::find(all.begin(), all.end(), r.id) != all.end()) b_.store(r.buffer, nest_.index(b_, r.access), body_.value(r.id));
  });
  held_.merge(fresh);
}

// What a pass does at one element. `folds`: so far, and with it.
void Rows::emit_element(const Pass& pass, std::vector<Ref>& folds) {
  for (Id id : pass.loads) body_.load_kept(id, place_of(id));
  body_.emit(pass.members);
  for (std::size_t i = 0; i < folds.size(); ++i) {
    const Part& p = pass.parts[i];
    const Ref element = b_.cast(body_.value(g_[p.id].in[0]), p.accumulator);
    folds[i] = b_.compute(p.fold.op, p.accumulator, folds[i], element);
  }
  if (stored_)
    for (Id id : pass.members)
      for (Id u : g_[id].in) body_.keep_apart(u);
  for (Id id : pass.kept) body_.store(id, place_of(id));
  for (Id id : pass.outputs) body_.store(id, body_.place_of(id));
  stored_ = stored_ || stores(pass);
}

}  // namespace sinter::kernel
