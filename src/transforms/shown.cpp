#include "transforms/shown.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/symbols.h"
#include "graph/rebind.h"

namespace sinter::transforms {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;
using Ids = std::span<const Id>;

bool changes(const Node& n) { return base::changes(n.type.shape) || base::changes(n.attrs); }

// An operation, and what its operands are.
using Made = std::pair<Op, std::vector<Id>>;
Made made_of(const Node& n, const std::vector<Id>& of) {
  Made made{n.op, {}};
  for (Id in : n.in) made.second.push_back(of[in]);
  return made;
}

// The nodes of which it matters whether others have the same elements: where several active nodes may be equal, and get cotangents from
// several places, which add up in one order or another; and their operands, which decide. A class is what some sizes may make equal.
std::vector<char> may_be_equal(const Graph& g, Ids outputs, const std::vector<char>& fixed, const std::vector<char>& active) {
  std::vector<Id> first(g.size());  // of its class
  std::vector<std::vector<Id>> classes(g.size());
  std::map<Made, Id> earlier;
  std::map<Op, bool> follows;  // whether one without operands changes: another may then be equal to it
  for (Id id = 0; id < g.size(); ++id)
    if (g[id].in.empty()) follows[g[id].op] |= changes(g[id]);
  for (Id id = 0; id < g.size(); ++id) {
    first[id] = id;
    if (!fixed[id] && (!g[id].in.empty() || follows[g[id].op]))
      first[id] = graph::may_change_nothing(g[id].op) ? first[g[id].in[0]] : earlier.try_emplace(made_of(g[id], first), id).first->second;
    classes[first[id]].push_back(id);
  }
  std::vector<char> matters(g.size(), 0);
  std::vector<Id> next;
  const auto add = [&](Id id) {
    if (classes[first[id]].size() > 1 && !std::exchange(matters[first[id]], 1)) next.push_back(first[id]);
  };
  std::vector<int> places(g.size(), 0);  // by class
  for (Id id : outputs) ++places[first[id]];
  for (Id id = 0; id < g.size(); ++id)
    for (Id in : g[id].in) places[first[in]] += active[id] && first[in] != first[id];
  // Two cotangents add up in any order; and before or behind a view that changes nothing, for its rule then changes no bit. What repeats
  // elements is none: what it gets is added up first.
  const auto moves = [&](Id id) { return graph::may_change_nothing(g[id].op) && g[id].op != Op::Broadcast; };
  for (Id id = 0; id < g.size(); ++id) {
    const std::vector<Id>& all = classes[id];
    if (places[id] < 2 || (places[id] == 2 && std::all_of(all.begin() + 1, all.end(), moves))) continue;
    if (std::count_if(all.begin(), all.end(), [&](Id of) { return active[of]; }) > 1) add(id);
  }
  while (!next.empty()) {
    const Id at = next.back();
    next.pop_back();
    for (Id id : classes[at])
      for (Id in : g[id].in) add(in);
  }
  for (Id id = 0; id < g.size(); ++id) matters[id] = matters[first[id]];
  return matters;
}

// Whether graphs are the same but for sizes; and with them, for the sizes of now.
bool alike(const Graph& x, const Graph& y) {
  if (x.size() != y.size() || x.outputs() != y.outputs()) return false;
  for (Id id = 0; id < x.size(); ++id) {
    const Node &a = x[id], &b = y[id];
    if (a.op != b.op || a.in != b.in || a.type.dtype != b.type.dtype || a.type.shape.size() != b.type.shape.size() ||
        a.attrs.size() != b.attrs.size() || a.bodies.size() != b.bodies.size())
      return false;
    for (std::size_t i = 0; i < a.bodies.size(); ++i)  // as deep as the user's code nests
      if (!alike(*a.bodies[i], *b.bodies[i])) return false;
  }
  return true;
}
bool equal_sizes(const Graph& x, const Graph& y) {
  for (Id id = 0; id < x.size(); ++id) {
    if (!(x[id].type == y[id].type) || !(x[id].attrs == y[id].attrs)) return false;
    for (std::size_t i = 0; i < x[id].bodies.size(); ++i)
      if (!equal_sizes(*x[id].bodies[i], *y[id].bodies[i])) return false;
  }
  return true;
}
// Without views that change nothing, for the sizes of now.
Graph bare(const Graph& g) {
  Graph out;
  std::vector<Id> copies;
  for (Id id = 0; id < g.size(); ++id) {
    Node n = g[id];
    for (Id& in : n.in) in = copies[in];
    for (graph::Body& b : n.bodies) b = bare(*b);  // as deep as the user's code nests
    copies.push_back(graph::changes_nothing(g, g[id]) ? n.in[0] : out.add(std::move(n)));
  }
  std::vector<Id> outputs;
  for (Id id : g.outputs()) outputs.push_back(copies[id]);
  out.set_outputs(std::move(outputs));
  return graph::rewrite(out, [](Graph&, const Node&) { return graph::kKeep; });  // without what they alone read
}
bool equal_bodies(const std::vector<graph::Body>& x, const std::vector<graph::Body>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const graph::Body& a, const graph::Body& b) {
    const Graph mine = bare(*a), other = bare(*b);
    return alike(mine, other) && equal_sizes(mine, other);
  });
}

}  // namespace

std::vector<Id> shown_by(const Graph& g, Ids outputs, Ids wrt, const std::vector<char>& active) {
  std::vector<Id> shown(g.size());
  std::iota(shown.begin(), shown.end(), Id{0});
  if (std::none_of(shown.begin(), shown.end(), [&](Id id) { return changes(g[id]); })) return shown;
  std::vector<char> fixed(g.size(), 0);  // nothing else is shown by it
  for (Id id : wrt) fixed[id] = 1;
  for (Id id = 0; id < g.size(); ++id) fixed[id] |= g[id].op == Op::Input;
  const std::vector<char> matters = may_be_equal(g, outputs, fixed, active);
  std::map<Made, Distinct> earlier;
  for (Id id = 0; id < g.size(); ++id) {
    if (fixed[id] || !matters[id]) continue;
    const Node& n = g[id];
    shown[id] = graph::changes_nothing(g, n) ? shown[n.in[0]] : earlier[made_of(n, shown)].equal_to(n, id);
  }
  return shown;
}

Id Distinct::equal_to(const Node& n, Id id) {
  Dims dims{static_cast<std::int64_t>(n.type.dtype), static_cast<std::int64_t>(n.type.shape.size())};
  dims.insert(dims.end(), n.type.shape.begin(), n.type.shape.end());
  const ops::Attrs attrs = graph::meaning(n);
  dims.insert(dims.end(), attrs.begin(), attrs.end());
  std::vector<bool> changes;
  std::vector<std::int64_t> numbers;
  for (const Dim& d : dims) {
    changes.push_back(base::changes(d));
    if (!changes.back()) numbers.push_back(base::peek(d));
  }
  const auto equal = [&](const Known& k) { return ++comparisons_, k.dims == dims && equal_bodies(k.bodies, n.bodies); };
  const auto differs = [](const Dim& x, const Dim& y) { return !base::changes(x) && !base::changes(y) && x != y; };
  std::vector<Known>& near = known_[changes][numbers];
  if (const auto at = std::find_if(near.begin(), near.end(), equal); at != near.end()) return at->id;
  for (const auto& [places, by_numbers] : known_) {
    if (places == changes || places.size() != changes.size()) continue;
    for (const auto& [ignored, others] : by_numbers)
      for (const Known& k : others)
        if (std::equal(dims.begin(), dims.end(), k.dims.begin(), std::not_fn(differs)) && equal(k)) return k.id;
  }
  near.push_back({id, std::move(dims), n.bodies});
  return id;
}

}  // namespace sinter::transforms
