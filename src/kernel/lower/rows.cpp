// Kernels over rows: passes over each row, and row values between them. A pass folds what the reductions of that pass need, and stores the
// outputs that are known in it; what a later pass needs again it computes again, from data that a row of usual length leaves in a cache.
// Layer: kernel.
#include <map>
#include <set>

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
      passes_ = std::max(passes_, pass + 1);
      if (is_reduction(id)) {
        Part p{id, fold_of(g[id].op), accumulator(g[id])};
        p.identity = b_.constant(p.accumulator, p.fold.identity(p.accumulator));
        parts_[pass].push_back(p);
        body_.cost += 2;
      } else if (is_row_value(id)) {
        row_values_[pass].push_back(id);
      } else if (is_output(id)) {
        store_pass_ = std::min(store_pass_, pass);
      }
    }
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
      kept_.push_back(&nest_.axes[i]);
      rows *= nest_.axes[i].extent;
    }
    extent_ = nest_.arg(b_, lanes_->extent);
    if (lanes_->extent > kInnerBlock) {
      block_ = nest_.arg(b_, kInnerBlock);
      blocks_ = nest_.arg(b_, ceil_div(lanes_->extent, kInnerBlock));
    }
    const Ref count = nest_.arg(b_, rows), row = b_.loop(LoopKind::Parallel, b_.index(0), count);
    const std::vector<Ref> start = nest_.position();
    prefetches_rows_ = lanes_->extent <= (getenv("PFM") ? atoll(getenv("PFM")) : kPrefetchedRow);
    if (prefetches_rows_) {
      nest_.open_rows(b_, kept_, plus(b_, row, b_.index(1)));
      next_row_ = nest_.position();
      nest_.return_to(start);
    }
    nest_.open_rows(b_, kept_, row);
    body_.preload({lanes_});
    body_.emit(row_values_[-1]);
    for (int pass = 0; pass < passes_; ++pass) {
      go_over_row(pass);
      body_.emit(row_values_[pass]);
    }
    for (Id id : group_.outputs)
      if (is_row_value(id) && !is_reduction(id)) body_.store(id);
    for (const Result& r : results) b_.store(r.buffer, nest_.index(b_, r.access), body_.value(r.id));
    b_.end();
    return finish(b_, nest_, body_, rows, static_cast<double>(rows * lanes_->extent) * (body_.cost + 2) * (passes_ + 1) / 2);
  }

 private:
  static constexpr int kNoPass = 1 << 20;
  struct Part {
    Id id;
    Fold fold;
    Dtype accumulator;
    Ref identity = kNone;
  };

  bool is_reduction(Id id) const { return !graph::is_pointwise(g_[id]); }
  bool is_row_value(Id id) const { return row_value_.contains(id); }
  bool is_output(Id id) const { return std::binary_search(group_.outputs.begin(), group_.outputs.end(), id); }
  // One a row by its shape, or computed from such values alone.
  bool is_same_in_row(Id id) const {
    if (is_reduction(id) || g_[id].type.shape != group_.space) return true;
    if (!ops::is_elementwise(g_[id].op) || is_output(id)) return false;
    return std::all_of(g_[id].in.begin(), g_[id].in.end(), [&](Id u) {
      return is_row_value(body_.under(u)) || (g_[u].op == Op::Constant && g_[u].attrs.size() == 1);
    });
  }

  // The pass that computes an element or folds a reduction; of other row values, the one after which they are known.
  int pass_of(Id id) const {
    const bool element = is_reduction(id) || !is_row_value(id);
    int pass = element ? 0 : -1;
    for (Id u : g_[id].in)
      if (auto it = pass_.find(body_.under(u)); it != pass_.end()) pass = std::max(pass, it->second + (element && is_row_value(it->first)));
    return pass;
  }

  // The members that one pass computes at each element, in order.
  std::vector<Id> needed(int pass) const {
    std::map<Id, bool> wanted;
    for (Id id : group_.outputs)
      if (!is_row_value(id) && pass_.at(id) == pass) wanted[id] = true;
    std::vector<Id> list;
    for (std::size_t i = group_.members.size(); i-- > 0;) {
      const Id id = group_.members[i];
      const bool folds = is_reduction(id) && pass_.at(id) == pass;
      if (!folds && (is_row_value(id) || !wanted[id])) continue;
      list.push_back(id);
      for (Id u : g_[id].in) wanted[body_.under(u)] = true;
    }
    return {list.rbegin(), list.rend()};
  }

  void go_over_row(int pass) {
    const std::vector<Id> members = needed(pass);
    std::vector<Part>& parts = parts_[pass];
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
    if (prefetches_rows_ && pass == passes_ - 1) {
      nest_.return_to(next_row_);
      nest_.open(b_, *lanes_, lane, true);
      body_.prefetch_inputs(kept_, *lanes_);
      nest_.return_to(at_row);
    }
    nest_.open(b_, *lanes_, lane, true);
    if (prefetches_rows_ && pass == std::max(0, store_pass_ - 1)) body_.prefetch_outputs();
    body_.emit(members);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& p = parts[i];
      const Ref element = b_.cast(body_.value(g_[p.id].in[0]), p.accumulator);
      b_.next(partials[i], b_.compute(p.fold.op, p.accumulator, partials[i], element));
    }
    for (Id id : members) {
      if (pass > store_pass_)
        for (Id u : g_[id].in) body_.keep_apart(u);
      if (!is_row_value(id) && pass_.at(id) == pass && is_output(id)) body_.store(id);
    }
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
  std::map<int, std::vector<Part>> parts_;     // by pass
  std::map<int, std::vector<Id>> row_values_;  // pointwise ones, by pass; -1: before the first
  int passes_ = 0;
  int store_pass_ = kNoPass;  // the first that stores elements
  const Axis* lanes_ = nullptr;
  std::vector<const Axis*> kept_;
  bool prefetches_rows_ = false;
  std::vector<Ref> next_row_;
  Ref extent_ = kNone, block_ = kNone, blocks_ = kNone;
};

}  // namespace

Lowered lower_rows(const Graph& g, const Group& group, LayoutOf layout_of) { return Rows(g, group, layout_of).run(); }

}  // namespace sinter::kernel
