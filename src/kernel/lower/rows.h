// Rows: a kernel over rows, that holds row values between passes over each row (lower_rows). Layer: kernel.
//
// A pass folds what the reductions of that pass need, and stores the outputs that are known in it; what a later pass needs again it
// computes again, from data that a row of usual length leaves in a cache, or, where it costs much, loads from scratch memory or an
// output's, where an earlier pass has kept it.
#pragma once
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernel/lower/panel.h"
#include "kernel/lower/parts.h"

namespace sinter::kernel {

class Rows {
 public:
  Rows(const graph::Graph& g, const graph::Group& group, LayoutOf layout_of);
  Lowered run();

 private:
  using Id = graph::Id;
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

  // ---- what is known before code is written: rows.cpp ----
  bool is_reduction(Id id) const { return !graph::is_pointwise(g_[id]); }
  bool is_row_value(Id id) const { return row_value_.contains(id); }
  bool is_output(Id id) const { return std::binary_search(group_.outputs.begin(), group_.outputs.end(), id); }
  // One a row by its shape, or computed from such values alone.
  bool is_same_in_row(Id id) const {
    if (is_reduction(id) || g_[id].type.shape != group_.space) return true;
    if (!ops::is_elementwise(g_[id].op) || is_output(id)) return false;
    return std::all_of(g_[id].in.begin(), g_[id].in.end(),
                       [&](Id u) { return is_row_value(body_.under(u)) || graph::is_scalar_constant(g_[u]); });
  }

  int pass_of(Id id) const;
  int work_of(Id id) const;
  bool keep(Id id);
  void fill(int number);
  std::size_t asks_for_next() const;
  Body::Place place_of(Id id) const { return scratch_.contains(id) ? scratch_.at(id) : body_.place_of(kept_.at(id)); }
  // Outputs, or values that are kept in an output's memory.
  bool stores(const Pass& pass) const {
    return !pass.outputs.empty() || std::any_of(pass.kept.begin(), pass.kept.end(), [&](Id id) { return !scratch_.contains(id); });
  }
  Dim length_of(bool row) const;
  bool are_columns() const;
  bool can_overlap() const;
  bool overlaps_in(std::size_t pass) const { return overlaps_ && static_cast<int>(pass) == first_.at(passes_.back().loads[0]); }

  // ---- the loops: row_loops.cpp ----
  void open_row(std::int64_t tasks);
  void open_strip_row(Panel& panel, const RowPanel& needed, std::int64_t tasks);
  void go_over_row(std::size_t number);
  std::pair<Ref, Ref> open_aligned(Id output);
  Ref until_line(Id output);
  std::int64_t in_line(Id id) const { return kLineBytes / size_of(g_[id].type.dtype); }
  Ref integer(ops::Op op, Ref x, Ref y) { return b_.compute(op, Dtype::int64, x, y); }
  // The last pass at an element of the row before: computed now, to be stored later.
  struct Result {
    Ref index, value;
  };
  Result of_row_before(Ref lane);
  void store(const Result& r) { b_.store(body_.place_of(passes_.back().outputs[0]).buffer, r.index, r.value); }
  void begin_overlap();
  void finish_overlap();

  // ---- the loops where rows are columns of memory: column_loops.cpp ----
  Lowered over_columns(std::int64_t rows);
  void each_column(const std::vector<Id>& members, int unroll, FunctionRef<void(Ref)> body);
  int scratch_place(Dtype t);
  std::vector<int> go_over_columns(const Pass& pass);
  Ref written_out(const Pass& pass, const std::vector<int>& places, Ref from, int height, int unroll);
  void in_loops(const Pass& pass, const std::vector<int>& places);
  std::vector<Ref> begin_folds(const Pass& pass, const std::vector<int>& places, Ref top);
  void column_values(const std::vector<Part>& parts, const std::vector<Id>& members, const std::vector<int>& folds);
  void emit_element(const Pass& pass, std::vector<Ref>& folds);

  const graph::Graph& g_;
  const graph::Group& group_;
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
  Ref row_ = kNone, ahead_ = kNone, one_ = kNone;
  Ref extent_ = kNone, block_ = kNone, blocks_ = kNone;
  struct Folded {  // a reduction that is an output
    Id id;
    int buffer;
    std::size_t access;
  };
  std::vector<Folded> results_;
  const Axis* folded_ = nullptr;  // where lanes are along a kept axis behind it
  std::size_t places_ = 0;        // then: the access that walks a chunk's scratch memory,
  std::map<Id, int> held_;        // the buffers of row values there,
  std::set<Id> read_later_;       // and the row values that a later loop reads
  Ref first_column_ = kNone, last_column_ = kNone;
};

}  // namespace sinter::kernel
