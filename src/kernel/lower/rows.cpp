// Kernels over rows: passes over each row, and row values between them. A pass folds what the reductions of that pass need, and stores the
// outputs that are known in it; what a later pass needs again it computes again, from data that a row of usual length leaves in a cache,
// or, where it costs much, loads from an output's memory, where an earlier pass has kept it.
// Layer: kernel.
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kernel/lower/panel.h"
#include "kernel/lower/parts.h"

namespace sinter::kernel {
namespace {

using graph::Graph;
using graph::Group;
using graph::Id;
using ops::Op;

class Rows {
 public:
  Rows(const Graph& g, const Group& group, LayoutOf layout_of)
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
  }

  Lowered run() {
    struct Result {
      Id id;
      int buffer;
      std::size_t access;
    };
    std::vector<Result> results;
    for (Id id : group_.outputs)
      if (is_reduction(id)) {
        results.push_back({id, 0, 0});
        results.back().access = body_.add_result(id, results.back().buffer);
      }
    nest_.form_axes();
    check(!nest_.axes.empty() && nest_.axes.back().reduced, "lower: the folded axes of rows are not the last");
    lanes_ = &nest_.axes.back();
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < nest_.axes.size(); ++i) {
      outer_.push_back(&nest_.axes[i]);
      rows *= nest_.axes[i].extent;
    }
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
      if (overlaps_in(pass)) finish_first_line();
      go_over_row(pass);
      body_.emit(passes_[pass].row_values);
    }
    if (overlaps_) {
      for (const auto& [id, carry] : before_) b_.next(carry, body_.value(id));
      const Ref is_last = integer(Op::Equal, plus(b_, row_, b_.index(1)), b_.range(1));
      b_.loop(LoopKind::Serial, b_.index(0), b_.cast(is_last, Dtype::int64));
      go_over_row(last);
      b_.end();
    }
    for (Id id : group_.outputs)
      if (is_row_value(id) && !is_reduction(id)) body_.store(id, body_.place_of(id));
    for (const Result& r : results) b_.store(r.buffer, nest_.index(b_, r.access), body_.value(r.id));
    b_.end();
    if (panel) b_.end();
    Lowered out = finish(b_, nest_, body_, tasks, static_cast<double>(rows * lanes_->extent) * (body_.cost + 2));
    if (panel) out.own_bytes = panel->bytes();
    for (Id id : aside_) out.own_bytes.push_back((ceil_div(lanes_->extent * size_of(g_[id].type.dtype), kLineBytes) + 1) * kLineBytes);
    return out;
  }

 private:
  struct Part {
    Id id;
    Fold fold;
    Dtype accumulator;
    Ref identity = kNone;
  };
  struct Pass {
    std::vector<Part> parts;
    std::vector<Id> members, loads;  // computed at each element; loaded, since an earlier pass has kept them
    std::vector<Id> outputs, kept;   // stored; stored elsewhere for later passes
    std::vector<Id> row_values;      // pointwise ones that are known after it
  };

  void open_row(std::int64_t tasks) {
    std::map<Id, Ref> initial;
    if (overlaps_)
      for (Id id : values_of_last()) initial[id] = b_.constant(g_[id].type.dtype, 0);
    const Ref count = nest_.arg(b_, tasks);
    row_ = b_.loop(LoopKind::Parallel, b_.index(0), count);
    for (auto [id, value] : initial) before_[id] = b_.carry(g_[id].type.dtype, value);
    const std::vector<Ref> start = nest_.position();
    auto position_at = [&](Ref row) {
      nest_.return_to(start);
      nest_.open_rows(b_, outer_, row);
      return nest_.position();
    };
    if (prefetches_rows_) next_row_ = position_at(plus(b_, row_, b_.index(1)));
    if (overlaps_) row_before_ = position_at(integer(Op::Maximum, integer(Op::Subtract, row_, b_.index(1)), b_.range(0)));
    position_at(row_);
  }
  // The rows of a strip, for arrays that lie across them.
  void open_strip_row(Panel& panel, const RowPanel& needed, std::int64_t tasks) {
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

  bool is_reduction(Id id) const { return !graph::is_pointwise(g_[id]); }
  bool is_row_value(Id id) const { return row_value_.contains(id); }
  bool is_output(Id id) const { return std::binary_search(group_.outputs.begin(), group_.outputs.end(), id); }
  // One a row by its shape, or computed from such values alone.
  bool is_same_in_row(Id id) const {
    if (is_reduction(id) || g_[id].type.shape != group_.space) return true;
    if (!ops::is_elementwise(g_[id].op) || is_output(id)) return false;
    return std::all_of(g_[id].in.begin(), g_[id].in.end(), [&](Id u) { return is_row_value(body_.under(u)) || is_constant(u); });
  }
  bool is_constant(Id id) const { return g_[id].op == Op::Constant && g_[id].attrs.size() == 1; }

  // The pass that computes an element or folds a reduction; of other row values, the one after which they are known.
  int pass_of(Id id) const {
    const bool element = is_reduction(id) || !is_row_value(id);
    int pass = element ? 0 : -1;
    for (Id u : g_[id].in)
      if (auto it = pass_.find(body_.under(u)); it != pass_.end()) pass = std::max(pass, it->second + (element && is_row_value(it->first)));
    return pass;
  }

  // Instructions to compute an element from memory and row values.
  int work_of(Id id) const {
    if (is_row_value(id)) return 0;
    int work = graph::cost(g_, id);
    for (Id u : g_[id].in)
      if (auto it = work_.find(body_.under(u)); it != work_.end()) work = std::min(work + it->second, 1 << 20);
    return work;
  }

  // Where an element that an earlier pass has computed can lie until this one: in scratch memory, or, of a long row, in memory that an
  // output takes in the last pass, unless it is computed again.
  bool keep(Id id) {
    if (kept_.contains(id) || scratch_.contains(id)) return true;
    if (work_.at(id) < kKept) return false;
    if (!is_output(id) && length_of(true) <= kPrefetchedRow && length_of(false) >= kManyRows) {
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
  void fill(int number) {
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
  std::size_t asks_for_next() const {
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

  // Opens a loop over two parts of the row: until the output's first whole line, and from there on, since whole lines alone can be stored
  // past the caches. Returns the part's range.
  std::pair<Ref, Ref> open_aligned(Id output) {
    const Ref head = until_line(output), part = b_.loop(LoopKind::Serial, b_.index(0), b_.index(2));
    return {times(b_, part, head), plus(b_, head, times(b_, part, integer(Op::Subtract, extent_, head)))};
  }
  // Elements until the output's first whole line: fewer than a row has.
  Ref until_line(Id output) {
    const Ref line = b_.index(kLineBytes / size_of(g_[output].type.dtype) - 1);
    return integer(Op::BitwiseAnd, integer(Op::Subtract, b_.index(0), nest_.index(b_, body_.place_of(output).access)), line);
  }
  Ref integer(Op op, Ref x, Ref y) { return b_.compute(op, Dtype::int64, x, y); }

  Body::Place place_of(Id id) const { return scratch_.contains(id) ? scratch_.at(id) : body_.place_of(kept_.at(id)); }
  // In an output's memory.
  bool stores(const Pass& pass) const {
    return !pass.outputs.empty() || std::any_of(pass.kept.begin(), pass.kept.end(), [&](Id id) { return !scratch_.contains(id); });
  }
  // Elements of a row, or rows.
  Dim length_of(bool row) const {
    Dim length = 1;
    for (std::size_t d = 0; d < group_.space.size(); ++d)
      if ((std::find(group_.axes.begin(), group_.axes.end(), static_cast<std::int64_t>(d)) != group_.axes.end()) == row)
        length = length * group_.space[d];
    return length;
  }

  // ---- overlapped rows: the last pass of a row within a pass over the next ----
  //
  // Where the last pass reads only what an earlier one has kept, that one reads it, for the row before, as it keeps the next row's: then
  // arithmetic, reads and stores go on at the same time. In its first iteration a run does so with what is no row's, and stores it where
  // the first row's results come next; its last row is finished by itself. For stores of whole lines the last pass is ahead by what a row's
  // first line lacks: at the end of a row it stores something in the line that the next row begins with, which is not yet finished.
  bool can_overlap() const {
    if (passes_.size() < 2 || !prefetches_rows_ || lanes_->extent < kAlignedRow || length_of(false) < kManyRows) return false;
    const Pass& last = passes_.back();
    if (!last.parts.empty() || last.outputs.size() != 1 || last.loads.empty() || !in_rows_of_memory(last.outputs[0])) return false;
    for (Id id : last.loads)
      if (!scratch_.contains(id) || first_.at(id) != first_.at(last.loads[0])) return false;
    for (Id id : last.members)
      for (Id u : g_[id].in)
        if (!pass_.contains(body_.under(u)) && !is_constant(u)) return false;
    return true;
  }
  // Whose row-major memory the rows follow each other in.
  bool in_rows_of_memory(Id output) const { return layout_of_(output).strides == graph::row_major(g_[output].type.shape); }
  bool overlaps_in(std::size_t pass) const { return overlaps_ && static_cast<int>(pass) == first_.at(passes_.back().loads[0]); }

  // The row values that the last pass reads.
  std::set<Id> values_of_last() const {
    std::set<Id> values;
    for (Id id : passes_.back().members)
      for (Id u : g_[id].in)
        if (is_row_value(body_.under(u))) values.insert(body_.under(u));
    return values;
  }

  // The last pass at an element of the row before: computed now, to be stored later.
  struct Result {
    Ref index, value;
  };
  Result of_row_before(Ref lane) {
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
  void store(const Result& r) { b_.store(body_.place_of(passes_.back().outputs[0]).buffer, r.index, r.value); }

  // Of the row before, before a pass over this row overwrites what it had kept. The first row has no line to finish.
  void finish_first_line() {
    const std::vector<Ref> now = nest_.position();
    nest_.return_to(row_before_);
    const Ref is_first = integer(Op::Equal, row_, b_.range(0));
    ahead_ = b_.compute(Op::Where, Dtype::int64, is_first, b_.index(0), until_line(passes_.back().outputs[0]));
    nest_.return_to(now);
    store(of_row_before(b_.loop(LoopKind::Vector, b_.index(0), ahead_)));
    b_.end();
  }

  void go_over_row(std::size_t number) {
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
    stored_ = stored_ || stores(pass);
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

  const Graph& g_;
  const Group& group_;
  LayoutOf layout_of_;
  Builder b_;
  Nest nest_;
  Body body_;
  std::set<Id> row_value_;
  std::map<Id, int> pass_;
  std::map<Id, int> work_;
  std::map<Id, int> first_;  // the first pass that computes an element
  std::map<Id, Id> kept_;    // elements that later passes load, with the output in whose memory they lie
  std::set<Id> holder_;
  std::map<Id, Body::Place> scratch_;  // others, with the scratch memory in which they lie
  std::vector<Id> aside_;              // the same, in the order of their buffers
  std::vector<Id> first_values_;       // row values that wait for no pass
  std::vector<Pass> passes_;
  bool stored_ = false;  // a pass that was written has stored something
  const Axis* lanes_ = nullptr;
  std::vector<const Axis*> outer_;
  bool prefetches_rows_ = false, prefetched_ = false;
  bool overlaps_ = false;
  std::map<Id, Ref> before_;  // row values of the row before, carried
  std::vector<Ref> next_row_, row_before_;
  Ref row_ = kNone, ahead_ = kNone;
  Ref extent_ = kNone, block_ = kNone, blocks_ = kNone;
};

}  // namespace

Lowered lower_rows(const Graph& g, const Group& group, LayoutOf layout_of) { return Rows(g, group, layout_of).run(); }

}  // namespace sinter::kernel
