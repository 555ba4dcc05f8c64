#include "passes/scores.h"

#include <algorithm>

#include "base/symbols.h"

namespace sinter::passes {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;
using ops::OpKind;

namespace {

constexpr std::int64_t kLeast = 5;        // of each size: products of fewer rows or columns are kernels of ours
constexpr std::size_t kMostNodes = 1000;  // of a site

bool is_reduce(const Node& n) { return ops::info(n.op).kind == OpKind::Reduce; }
bool is_applied(const Node& n) { return ops::is_elementwise(n.op) || n.op == Op::Cast; }

// Whether the node is a member, given the scores' shape.
bool is_member(const Graph& g, const Node& n, const Shape& scores) {
  const Rows at = rows_of(scores, n.type.shape);
  if (at == Rows::Other || graph::is_scalar_constant(n)) return false;
  if (is_applied(n)) return true;
  const Rows from = n.in.empty() ? Rows::Other : rows_of(scores, g[n.in[0]].type.shape);
  if (at == Rows::Scores) return n.op == Op::Matmul || (n.op == Op::Broadcast && from == Rows::Columns);
  if (n.op == Op::Reshape) return from == Rows::Columns || from == Rows::Flat;
  return is_reduce(n) && from == Rows::Scores && n.attrs.size() == 2 && n.attrs[1] == static_cast<std::int64_t>(scores.size()) - 1;
}

// Whether a size is worth a library's product, and smaller than that of the scores' rows.
bool is_narrow(const Dim& size, const Shape& scores) { return size >= kLeast && size < scores.back(); }
// What an exit's other operand has beside the axis that is added up.
const Dim& width_of(const Graph& g, const ScoreSite::Exit& e) {
  const Shape& out = g[e.id].type.shape;
  return out[out.size() - (e.operand == 0 ? 1 : 2)];
}

// What reads scores to fold them, though no exit needs it: a sum by which the exit is divided, say.
void add_folds(const Graph& g, const std::vector<std::vector<Id>>& readers, ScoreSite& site) {
  for (std::size_t before = 0; before != site.members.size();) {
    before = site.members.size();
    std::vector<Id> made, more;  // those that are computed from an entry
    for (Id id : site.members) {
      const Node& n = g[id];
      const bool reads = std::any_of(n.in.begin(), n.in.end(), [&](Id in) { return std::binary_search(made.begin(), made.end(), in); });
      if (n.op != Op::Matmul && !reads) continue;
      made.push_back(id);
      if (rows_of(site.shape, n.type.shape) != Rows::Scores) continue;
      for (Id reader : readers[id])
        if (g[reader].op != Op::Matmul && is_member(g, g[reader], site.shape)) more.push_back(reader);
    }
    more.insert(more.end(), made.begin(), made.end());
    site.members = members_for(g, site.shape, std::move(more));
    if (site.members.size() > kMostNodes) return;
  }
}

// As an exit: the site of its scores, if they are such. `readers`: by node.
bool find_site(const Graph& g, const std::vector<std::vector<Id>>& readers, const ScoreSite::Exit& e, ScoreSite& site) {
  const Shape& s = g[scores_of(g, e)].type.shape;
  if (s.size() < 2 || base::changes(s) || base::changes(g[e.id].type.shape)) return false;
  if (s[s.size() - 2] < kLeast || s.back() < kLeast || !is_narrow(width_of(g, e), s)) return false;
  site.shape = s;
  site.exits = {e};
  site.members = members_for(g, s, {scores_of(g, e)});
  add_folds(g, readers, site);
  if (site.members.size() > kMostNodes) return false;
  bool made = false, folded = false;
  for (Id id : site.members) {
    folded = folded || is_reduce(g[id]);
    if (g[id].op != Op::Matmul) continue;
    made = true;
    if (!is_narrow(g[g[id].in[0]].type.shape.back(), s)) return false;
  }
  return made && folded;
}

bool share_an_entry(const Graph& g, const ScoreSite& a, const ScoreSite& b) {
  return std::any_of(a.members.begin(), a.members.end(),
                     [&](Id id) { return g[id].op == Op::Matmul && std::binary_search(b.members.begin(), b.members.end(), id); });
}

}  // namespace

Rows rows_of(const Shape& scores, const Shape& shape) {
  const std::size_t rank = scores.size();
  const std::span<const Dim> rows(scores.begin(), rank - 1);
  if (shape.size() != rank && shape.size() != rank - 1) return Rows::Other;
  if (!base::same(std::span<const Dim>(shape.begin(), rank - 1), rows)) return Rows::Other;
  if (shape.size() == rank - 1) return Rows::Flat;
  return base::same(shape.back(), scores.back()) ? Rows::Scores : base::same(shape.back(), Dim(1)) ? Rows::Columns : Rows::Other;
}

bool is_swap(const Node& n) {
  if (n.op != Op::Transpose || n.attrs.size() < 2) return false;
  const auto rank = static_cast<std::int64_t>(n.attrs.size());
  for (std::int64_t i = 0; i < rank; ++i)
    if (n.attrs[static_cast<std::size_t>(i)] != (i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i)) return false;
  return true;
}

Id scores_of(const Graph& g, const ScoreSite::Exit& e) {
  const Id id = g[e.id].in[e.operand];
  return e.transposed ? g[id].in[0] : id;
}

std::vector<Id> members_for(const Graph& g, const Shape& scores, std::vector<Id> nodes) {
  std::vector<Id> members, next = std::move(nodes);
  while (!next.empty() && members.size() <= kMostNodes) {
    const Id id = next.back();
    next.pop_back();
    const auto at = std::lower_bound(members.begin(), members.end(), id);
    if ((at != members.end() && *at == id) || !is_member(g, g[id], scores)) continue;
    members.insert(at, id);
    if (g[id].op != Op::Matmul) next.insert(next.end(), g[id].in.begin(), g[id].in.end());
  }
  return members;
}

std::vector<ScoreSite> find_scores(const Graph& g) {
  std::vector<ScoreSite> sites;
  std::vector<std::vector<Id>> readers(g.size());
  for (Id id = 0; id < g.size(); ++id)
    for (Id in : g[id].in) readers[in].push_back(id);
  for (Id id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Matmul) continue;
    for (std::size_t operand = 0; operand < 2; ++operand) {
      ScoreSite found;
      if (!find_site(g, readers, {id, operand, is_swap(g[g[id].in[operand]])}, found)) continue;
      // One with those whose entries it shares.
      for (ScoreSite& s : sites) {
        if (!base::same(s.shape, found.shape) || !share_an_entry(g, s, found)) continue;
        std::vector<Id> both;
        std::set_union(s.members.begin(), s.members.end(), found.members.begin(), found.members.end(), std::back_inserter(both));
        found.members = std::move(both);
        found.exits.insert(found.exits.begin(), s.exits.begin(), s.exits.end());
        s.exits.clear();
      }
      std::erase_if(sites, [](const ScoreSite& s) { return s.exits.empty(); });
      sites.push_back(std::move(found));
    }
  }
  for (ScoreSite& s : sites) std::sort(s.exits.begin(), s.exits.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return sites;
}

}  // namespace sinter::passes
