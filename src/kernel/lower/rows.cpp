// What a kernel over rows does in which pass, and where it keeps what later passes need.
#include "kernel/lower/rows.h"

#include <algorithm>
#include <optional>

namespace sinter::kernel {

using graph::Graph;
using graph::Group;
using graph::Id;
using ops::Op;

Rows::Rows(const Graph& g, const Group& group, LayoutOf layout_of)
    : g_(g), group_(group), layout_of_(layout_of), nest_(group.space, group.axes), body_(g, group, layout_of, b_, nest_) {
  b_.kernel.name = name_of(g, group);
  for (Id id : group.members) {
    if (is_same_in_row(id)) row_value_.insert(id);
    const int pass = pass_of(id);
    pass_[id] = pass;
    work_[id] = work_of(id);
    if (pass >= static_cast<int>(passes_.size())) passes_.resize(static_cast<std::size_t>(pass) + 1);
    if (is_reduction(id)) {
      Part p{id, fold_of(g[id].op), accumulator(g[id])};
      p.identity = b_.constant(p.accumulator, p.fold.identity(p.accumulator));
      passes_[static_cast<std::size_t>(pass)].parts.push_back(p);
      body_.cost += 2;
    } else if (is_row_value(id)) {
      (pass < 0 ? first_values_ : passes_[static_cast<std::size_t>(pass)].row_values).push_back(id);
    }
  }
  for (std::size_t pass = 0; pass < passes_.size(); ++pass) fill(static_cast<int>(pass));
  for (Id id : group.members)
    for (Id u : g[id].in)
      if (const Id value = body_.under(u); is_row_value(value) && (is_reduction(id) || !is_row_value(id) || pass_[id] != pass_[value]))
        read_later_.insert(value);
}

Lowered Rows::run() {
  for (Id id : group_.outputs)
    if (is_reduction(id)) {
      results_.push_back({id, 0, 0});
      results_.back().access = body_.add_result(id, results_.back().buffer);
    }
  nest_.form_axes();
  check(!nest_.axes.empty(), "lower: rows without axes");
  lanes_ = &nest_.axes.back();
  std::int64_t rows = 1;
  for (const Axis& a : nest_.axes) {
    if (&a == lanes_) continue;
    if (a.reduced) {
      check(!folded_ && !lanes_->reduced, "lower: the folded axes of rows are not neighbours");
      folded_ = &a;
      continue;
    }
    outer_.push_back(&a);
    rows *= a.extent;
  }
  if (folded_) return over_columns(rows);
  check(lanes_->reduced, "lower: rows without a folded axis");
  extent_ = nest_.arg(b_, lanes_->extent);
  if (lanes_->extent > kInnerBlock) {
    block_ = nest_.arg(b_, kInnerBlock);
    blocks_ = nest_.arg(b_, ceil_div(lanes_->extent, kInnerBlock));
  }
  prefetches_rows_ = lanes_->extent <= kPrefetchedRow;
  std::int64_t tasks = rows;
  std::optional<Panel> panel;
  const RowPanel needed = row_panel(body_, outer_, *lanes_);
  if (needed.tiled) {
    panel.emplace(b_, nest_, body_, *needed.tiled, *lanes_, needed.height, lanes_->extent);
    tasks = rows / needed.tiled->extent * panel->strips();
  }
  for (Id id : aside_) scratch_[id] = body_.scratch_row(g_[id].type.dtype, *lanes_);
  if (panel) {
    open_strip_row(*panel, needed, tasks);
  } else {
    overlaps_ = can_overlap();
    open_row(tasks);
  }
  body_.preload({lanes_});
  body_.emit(first_values_);
  const std::size_t last = passes_.size() - 1;
  for (std::size_t pass = 0; pass <= last; ++pass) {
    if (pass == last && overlaps_) break;
    if (overlaps_in(pass)) begin_overlap();
    go_over_row(pass);
    body_.emit(passes_[pass].row_values);
  }
  if (overlaps_) finish_overlap();
  for (Id id : group_.outputs)
    if (is_row_value(id) && !is_reduction(id)) body_.store(id, body_.place_of(id));
  for (const Folded& r : results_) b_.store(r.buffer, nest_.index(b_, r.access), body_.value(r.id));
  b_.end();
  if (panel) b_.end();
  Lowered out = finish(b_, nest_, body_, tasks, static_cast<double>(rows * lanes_->extent) * (body_.cost + 2));
  if (panel) out.own_bytes = panel->bytes();
  for (Id id : aside_) out.own_bytes.push_back((ceil_div(lanes_->extent * size_of(g_[id].type.dtype), kLineBytes) + 1) * kLineBytes);
  return out;
}

// The pass that computes an element or folds a reduction; of other row values, the one after which they are known.
int Rows::pass_of(Id id) const {
  const bool element = is_reduction(id) || !is_row_value(id);
  int pass = element ? 0 : -1;
  for (Id u : g_[id].in)
    if (auto it = pass_.find(body_.under(u)); it != pass_.end()) pass = std::max(pass, it->second + (element && is_row_value(it->first)));
  return pass;
}

// Instructions to compute an element from memory and row values.
int Rows::work_of(Id id) const {
  if (is_row_value(id)) return 0;
  int work = graph::cost(g_, id);
  for (Id u : g_[id].in)
    if (auto it = work_.find(body_.under(u)); it != work_.end()) work = std::min(work + it->second, 1 << 20);
  return work;
}

// Where an element that an earlier pass has computed can lie until this one: in scratch memory, or, of a long row, in memory that an
// output takes in the last pass, unless it is computed again.
bool Rows::keep(Id id) {
  if (kept_.contains(id) || scratch_.contains(id)) return true;
  if (work_.at(id) < kKept) return false;
  if (!is_output(id) && !are_columns() && length_of(true) <= kPrefetchedRow && length_of(false) >= kManyRows) {
    scratch_[id] = {};
    aside_.push_back(id);
    passes_[static_cast<std::size_t>(first_.at(id))].kept.push_back(id);
    return true;
  }
  auto is_free = [&](Id output) {
    return !is_row_value(output) && pass_.at(output) + 1 == static_cast<int>(passes_.size()) && !holder_.contains(output) &&
           g_[output].type.dtype == g_[id].type.dtype;
  };
  auto it = is_output(id) ? std::find(group_.outputs.begin(), group_.outputs.end(), id)
                          : std::find_if(group_.outputs.begin(), group_.outputs.end(), is_free);
  if (it == group_.outputs.end()) return false;
  kept_[id] = *it;
  holder_.insert(*it);
  if (!is_output(id)) passes_[static_cast<std::size_t>(first_.at(id))].kept.push_back(id);
  return true;
}

// What the pass computes at each element, or has from earlier ones.
void Rows::fill(int number) {
  Pass& pass = passes_[static_cast<std::size_t>(number)];
  std::set<Id> wanted;
  for (Id id : group_.outputs)
    if (!is_row_value(id) && pass_.at(id) == number) {
      wanted.insert(id);
      pass.outputs.push_back(id);
    }
  for (std::size_t i = group_.members.size(); i-- > 0;) {
    const Id id = group_.members[i];
    const bool folds = is_reduction(id) && pass_.at(id) == number;
    if (!folds && (is_row_value(id) || !wanted.contains(id))) continue;
    if (auto [it, fresh] = first_.emplace(id, number); !fresh && keep(id)) {
      pass.loads.push_back(id);
      continue;
    }
    pass.members.push_back(id);
    for (Id u : g_[id].in) wanted.insert(body_.under(u));
  }
  std::reverse(pass.members.begin(), pass.members.end());
}

// The pass that asks for the next row: that of most work an element; the last of equals. Where several passes store nothing, one of
// them: reads and stores at the same time take longer (layernorm on one thread: 0.96 of the copy, 0.87 otherwise; with one such pass,
// in rmsnorm, it is the other way round, 0.88 and 1.09).
std::size_t Rows::asks_for_next() const {
  const auto quiet = std::count_if(passes_.begin(), passes_.end(), [&](const Pass& pass) { return !stores(pass); });
  std::size_t best = 0;
  int most = 0;
  for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
    if (overlaps_in(pass)) return pass;
    if (quiet > 1 && stores(passes_[pass])) continue;
    int work = 0;
    for (Id id : passes_[pass].members) work += is_reduction(id) ? 0 : graph::cost(g_, id);
    if (work >= most) most = work, best = pass;
  }
  return best;
}

// Elements of a row, or rows.
Dim Rows::length_of(bool row) const {
  Dim length = 1;
  for (std::size_t d = 0; d < group_.space.size(); ++d)
    if ((std::find(group_.axes.begin(), group_.axes.end(), static_cast<std::int64_t>(d)) != group_.axes.end()) == row)
      length = length * group_.space[d];
  return length;
}

// Kept axes follow folded ones.
bool Rows::are_columns() const {
  for (std::size_t d = group_.space.size(); d-- > 0;)
    if (group_.space[d] != 1) return std::find(group_.axes.begin(), group_.axes.end(), static_cast<std::int64_t>(d)) == group_.axes.end();
  return false;
}

// ---- overlapped rows: the last pass of a row within a pass over the next ----
//
// Where the last pass is one operation on what an earlier pass has kept, that pass does it, for the row before, while it keeps the next
// row's: so arithmetic, reads and stores go on at the same time (softmax on one thread: 1.03 of the copy, 0.85 otherwise; of rows of
// 50257 elements 0.77 and 0.73). The first row of a run has none before: ones stand for it, and what comes of them lies where the first
// row's results will. A run's last row is finished by itself.
// For stores of whole lines the operation is ahead by what the row before lacks of a line at its start: at its end it stores a little
// (of ones) in the line with which this row begins, whose own results come later.
bool Rows::can_overlap() const {
  auto follow_each_other = [&](Id output) { return layout_of_(output).strides == graph::row_major(g_[output].type.shape); };
  if (passes_.size() < 2 || !prefetches_rows_ || lanes_->extent < kAlignedRow || length_of(false) < kManyRows) return false;
  const Pass& last = passes_.back();
  if (!last.parts.empty() || last.outputs.size() != 1 || last.members.size() != 1 || !follow_each_other(last.outputs[0])) return false;
  const std::vector<Id>& in = g_[last.members[0]].in;
  return last.loads.size() == 1 && scratch_.contains(last.loads[0]) &&
         std::all_of(in.begin(), in.end(), [&](Id u) { return pass_.contains(body_.under(u)) || graph::is_scalar_constant(g_[u]); });
}

Lowered lower_rows(const Graph& g, const Group& group, LayoutOf layout_of) { return Rows(g, group, layout_of).run(); }

}  // namespace sinter::kernel
