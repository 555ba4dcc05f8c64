// Kernels over rows: passes over each row, and row values between them. A pass folds what the reductions of that pass need, and stores the
// outputs that are known in it; what a later pass needs again it computes again, from data that a row of usual length leaves in a cache,
// or, where it costs much, loads from an output's memory, where an earlier pass has kept it.
// Layer: kernel.
#include <map>
#include <optional>
#include <set>

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
      : g_(g), group_(group), nest_(group.space, group.axes), body_(g, group, layout_of, b_, nest_) {
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
    if (const RowPanel needed = row_panel(body_, outer_, *lanes_); needed.tiled) {
      panel.emplace(b_, nest_, body_, *needed.tiled, *lanes_, needed.height, lanes_->extent);
      tasks = rows / needed.tiled->extent * panel->strips();
      open_strip_row(*panel, needed, tasks);
    } else {
      open_row(tasks);
    }
    body_.preload({lanes_});
    body_.emit(first_values_);
    for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
      go_over_row(pass);
      body_.emit(passes_[pass].row_values);
    }
    for (Id id : group_.outputs)
      if (is_row_value(id) && !is_reduction(id)) body_.store(id, id);
    for (const Result& r : results) b_.store(r.buffer, nest_.index(b_, r.access), body_.value(r.id));
    b_.end();
    if (panel) b_.end();
    Lowered out = finish(b_, nest_, body_, tasks, static_cast<double>(rows * lanes_->extent) * (body_.cost + 2));
    if (panel) out.own_bytes = panel->bytes();
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
    std::vector<Id> outputs, kept;   // stored; stored in other outputs' memory for later passes
    std::vector<Id> row_values;      // pointwise ones that are known after it
    bool stores() const { return !outputs.empty() || !kept.empty(); }
  };

  void open_row(std::int64_t tasks) {
    const Ref count = nest_.arg(b_, tasks), row = b_.loop(LoopKind::Parallel, b_.index(0), count);
    const std::vector<Ref> start = nest_.position();
    if (prefetches_rows_) {
      nest_.open_rows(b_, outer_, plus(b_, row, b_.index(1)));
      next_row_ = nest_.position();
      nest_.return_to(start);
    }
    nest_.open_rows(b_, outer_, row);
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
    return std::all_of(g_[id].in.begin(), g_[id].in.end(),
                       [&](Id u) { return is_row_value(body_.under(u)) || (g_[u].op == Op::Constant && g_[u].attrs.size() == 1); });
  }

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

  // Where an element that an earlier pass has computed can lie until this one: in memory that an output takes in the last pass.
  bool keep(Id id) {
    if (kept_.contains(id)) return true;
    if (work_.at(id) < kKept) return false;
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

  // The pass of most work an element; the last of equals.
  std::size_t heaviest() const {
    std::size_t best = 0;
    int most = 0;
    for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
      int work = 0;
      for (Id id : passes_[pass].members) work += is_reduction(id) ? 0 : graph::cost(g_, id);
      if (work >= most) most = work, best = pass;
    }
    return best;
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
    const Ref lane = b_.loop(LoopKind::Vector, begin, end, parts.empty() ? body_.unroll() : kInnerUnroll, prefetches_rows_ ? 0 : kPrefetch);
    for (const Part& p : parts) partials.push_back(b_.carry(p.accumulator, p.identity));
    body_.open_scope();
    if (prefetches_rows_ && number == heaviest()) {
      nest_.return_to(next_row_);
      nest_.open(b_, *lanes_, lane, true);
      body_.prefetch_inputs(outer_, *lanes_);
      nest_.return_to(at_row);
    }
    nest_.open(b_, *lanes_, lane, true);
    const bool before = number + 1 < passes_.size() && passes_[number + 1].stores();
    if (prefetches_rows_ && !prefetched_ && (pass.stores() || before)) prefetched_ = true, body_.prefetch_outputs();
    for (Id id : pass.loads) body_.load_kept(id, kept_.at(id));
    body_.emit(pass.members);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& p = parts[i];
      const Ref element = b_.cast(body_.value(g_[p.id].in[0]), p.accumulator);
      b_.next(partials[i], b_.compute(p.fold.op, p.accumulator, partials[i], element));
    }
    if (stored_)
      for (Id id : pass.members)
        for (Id u : g_[id].in) body_.keep_apart(u);
    for (Id id : pass.kept) body_.store(id, kept_.at(id));
    for (Id id : pass.outputs) body_.store(id, id);
    stored_ = stored_ || pass.stores();
    b_.end();
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
  Builder b_;
  Nest nest_;
  Body body_;
  std::set<Id> row_value_;
  std::map<Id, int> pass_;
  std::map<Id, int> work_;
  std::map<Id, int> first_;  // the first pass that computes an element
  std::map<Id, Id> kept_;    // elements that later passes load, with the output in whose memory they lie
  std::set<Id> holder_;
  std::vector<Id> first_values_;  // row values that wait for no pass
  std::vector<Pass> passes_;
  bool stored_ = false;  // a pass that was written has stored something
  const Axis* lanes_ = nullptr;
  std::vector<const Axis*> outer_;
  bool prefetches_rows_ = false, prefetched_ = false;
  std::vector<Ref> next_row_;
  Ref extent_ = kNone, block_ = kNone, blocks_ = kNone;
};

}  // namespace

Lowered lower_rows(const Graph& g, const Group& group, LayoutOf layout_of) { return Rows(g, group, layout_of).run(); }

}  // namespace sinter::kernel
