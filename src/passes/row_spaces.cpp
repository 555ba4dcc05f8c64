#include "passes/row_spaces.h"

#include <algorithm>

#include "graph/layout.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::OpKind;

// A row is one thread's work: a few long ones are better folded in blocks, each kernel by all threads.
constexpr std::int64_t kManyRows = 16;
constexpr std::int64_t kShortRow = 16384;  // elements: some 10 us
// Along axes that others follow, rows are columns of memory, of which some hundreds are passed over at once: they are to stay in a cache.
constexpr std::int64_t kLongColumn = 1024;
constexpr std::int64_t kFewColumns = 16;  // lanes would be idle

bool is_reduce(const Node& n) { return ops::info(n.op).kind == OpKind::Reduce; }
bool has(const std::vector<std::int64_t>& axes, std::size_t d) {
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end();
}

}  // namespace

std::vector<std::int64_t> folded_axes(const Graph& g, const Node& reduction) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i < reduction.attrs.size(); ++i)
    if (g[reduction.in[0]].type.shape[static_cast<std::size_t>(reduction.attrs[i])] != 1) axes.push_back(reduction.attrs[i]);
  return axes;
}

RowSpaces::RowSpaces(const Graph& g) : g_(g) {
  for (Id id = 0; id < g.size(); ++id)
    if (is_reduce(g[id])) add_space(g[id]);
  if (spaces_.empty()) return;
  of_.assign(g.size(), kNone);
  find_computed();
  find_read_only();
}

// The first reduction of a shape along neighbouring axes says what the rows are.
void RowSpaces::add_space(const Node& reduction) {
  const Shape& shape = g_[reduction.in[0]].type.shape;
  if (find(shape) != kNone) return;
  Space s{shape, folded_axes(g_, reduction), {}};
  Dim rows = 1, length = 1, behind = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (has(s.axes, d)) {
      if (behind > 1) return;
      length *= shape[d];
    } else {
      if (length > 1) behind *= shape[d];
      rows *= shape[d];
      s.rows.push_back(shape[d]);
    }
  }
  if (length < 2 || rows == 0) return;
  if (behind > 1 ? length > kLongColumn || behind < kFewColumns : rows < kManyRows && length > kShortRow) return;
  spaces_.push_back(std::move(s));
}

int RowSpaces::find(const Shape& shape) const {
  for (std::size_t i = 0; i < spaces_.size(); ++i)
    if (spaces_[i].shape == shape) return static_cast<int>(i);
  return kNone;
}

bool RowSpaces::is_one_a_row(Id id, int index) const { return graph::without_units(g_[id].type.shape) == space(index).rows; }

bool RowSpaces::follows_rows(Id operand, int index) const {
  std::vector<Id> views;
  Id id = operand;
  for (; ops::info(g_[id].op).kind == OpKind::View; id = g_[id].in[0]) views.push_back(id);
  graph::Layout layout{0, graph::row_major(g_[id].type.shape)};
  while (!views.empty()) {
    const Node& v = g_[views.back()];
    auto next = graph::view_layout(v.op, v.attrs, v.type.shape, g_[v.in[0]].type.shape, layout);
    if (!next) return false;
    layout = *std::move(next);
    views.pop_back();
  }
  const Space& s = space(index);
  const Shape& shape = g_[operand].type.shape;
  const bool whole = shape == s.shape;
  if (layout.offset != 0 || (!whole && graph::without_units(shape) != s.rows)) return false;
  Dim stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    const bool folded = whole && has(s.axes, d);
    if (layout.strides[d] != (folded ? Dim(0) : stride)) return false;
    if (!folded) stride *= shape[d];
  }
  return true;
}

// From the reductions on.
void RowSpaces::find_computed() {
  for (Id id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    if (is_reduce(n)) {
      const int index = find(g_[n.in[0]].type.shape);
      if (index != kNone && space(index).axes == folded_axes(g_, n)) of_[id] = index;
      continue;
    }
    if (!graph::is_pointwise(n)) continue;
    for (std::size_t i = 0; i < n.in.size() && of_[id] == kNone; ++i) {
      if (graph::is_read_elsewhere(n.op, i)) continue;
      const int index = of_[graph::under_views(g_, n.in[i])];
      if (index != kNone && is_one_a_row(id, index) && follows_rows(n.in[i], index)) of_[id] = index;
    }
  }
}

// What nothing reads but row values, and the rows' elements.
void RowSpaces::find_read_only() {
  constexpr int kUnread = -2;
  std::vector<int> read(g_.size(), kUnread);  // the one space in which a node, or views of it, are read
  for (Id id : g_.outputs()) read[id] = kNone;
  auto note = [&](Id id, int index) { read[id] = read[id] == kUnread || read[id] == index ? index : kNone; };
  for (Id id = g_.size(); id-- > 0;) {
    const Node& n = g_[id];
    if (ops::info(n.op).kind == OpKind::View) {
      if (read[id] != kUnread) note(n.in[0], read[id]);
      continue;
    }
    if (read[id] >= 0 && of_[id] == kNone && graph::is_pointwise(n) && n.op != ops::Op::Constant && is_one_a_row(id, read[id]))
      of_[id] = read[id];
    int reader = kNone;
    if (is_reduce(n)) reader = find(g_[n.in[0]].type.shape);
    if (graph::is_pointwise(n)) reader = of_[id] == kNone ? find(n.type.shape) : of_[id];
    for (std::size_t i = 0; i < n.in.size(); ++i) {
      const bool follows = reader != kNone && !graph::is_read_elsewhere(n.op, i) && follows_rows(n.in[i], reader);
      note(n.in[i], follows ? reader : kNone);
    }
  }
}

}  // namespace sinter::passes
