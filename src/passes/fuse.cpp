#include "passes/fuse.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Group;
using graph::Id;
using graph::Node;
using graph::Partition;
using ops::OpKind;

bool is_reduce(const Node& n) { return ops::info(n.op).kind == OpKind::Reduce; }
// A constant of one element is a kernel argument wherever it is read; it needs memory only as an output or for other readers.
bool is_scalar_constant(const Node& n) { return n.op == ops::Op::Constant && n.attrs.size() == 1; }
// The shape that a node's kernel iterates over.
const Shape& space(const Graph& g, Id id) { return is_reduce(g[id]) ? g[g[id].in[0]].type.shape : g[id].type.shape; }
bool same_space(const Graph& g, Id a, Id b) { return space(g, a) == space(g, b); }
std::vector<std::int64_t> axes(const Node& n) { return {n.attrs.begin() + 1, n.attrs.end()}; }

class Fuser {
 public:
  Fuser(const Graph& g, const FuseOptions& options) : g_(g), options_(options), n_(g.size()), level_(n_, 0), parent_(n_), users_(n_) {
    std::iota(parent_.begin(), parent_.end(), Id{0});
    for (Id id = 0; id < n_; ++id)
      for (Id u : g_[id].in) users_[u].push_back(id);
    is_output_.resize(n_);
    for (Id id : g_.outputs()) is_output_[id] = true;
    argument_.resize(n_);
    for (Id id = 0; id < n_; ++id) argument_[id] = is_scalar_constant(g_[id]) && !is_stored(id);
  }

  Partition run() {
    if (options_.fuse) {
      assign_levels();
      lower_levels_of_uses();
      join();
    }
    return collect();
  }

 private:
  bool is_view(Id id) const { return ops::info(g_[id].op).kind == OpKind::View; }
  bool in_kernel(Id id) const { return graph::is_pointwise(g_[id]) || is_reduce(g_[id]); }
  bool needs_kernel(Id id) const { return in_kernel(id) && !argument_[id]; }
  // Whether a constant of one element is needed in memory: it is an output, or somebody reads it who takes no scalars.
  bool is_stored(Id id) const {
    if (is_output_[id]) return true;
    for (Id u : users_[id]) {
      if (ops::info(g_[u].op).kind == OpKind::Scatter) continue;
      if (!in_kernel(u)) return true;
      for (std::size_t i = 0; i < g_[u].in.size(); ++i)
        if (g_[u].in[i] == id && graph::is_read_elsewhere(g_[u].op, i)) return true;
    }
    return false;
  }

  // The producer can be computed where the consumer's kernel reads it.
  bool can_join(Id producer, Id consumer) const {
    if (!graph::is_pointwise(g_[producer]) || !in_kernel(consumer) || !same_space(g_, producer, consumer)) return false;
    const Node& c = g_[consumer];
    for (std::size_t i = 0; i < c.in.size(); ++i)
      if (c.in[i] == producer && graph::is_read_elsewhere(c.op, i)) return false;
    return true;
  }

  // Nodes of one space and level may share a kernel: every path between two kernels rises in level, so kernels cannot wait for each other.
  void assign_levels() {
    for (Id id = 0; id < n_; ++id)
      for (Id u : g_[id].in) {
        if (argument_[u]) continue;
        level_[id] = std::max(level_[id], level_[u] + (can_join(u, id) ? 0 : 1));
      }
  }
  // A node all of whose uses are later is computed there, as long as they are in one space.
  void lower_levels_of_uses() {
    for (Id id = n_; id-- > 0;) {
      if (!graph::is_pointwise(g_[id]) || is_output_[id] || users_[id].empty()) continue;
      int latest = std::numeric_limits<int>::max();
      for (Id u : users_[id]) latest = can_join(id, u) ? std::min(latest, level_[u]) : -1;
      if (latest > level_[id] && std::all_of(users_[id].begin(), users_[id].end(), [&](Id u) { return can_join(id, u); }))
        level_[id] = latest;
    }
  }

  Id find(Id a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }
  void unite(Id a, Id b) {
    a = find(a), b = find(b);
    if (a == b) return;
    // At most one set of reduced axes a kernel.
    const std::vector<std::int64_t>*x = reduced(a), *y = reduced(b);
    if (x && y && *x != *y) return;
    if (y && !x) reduced_[a] = *y;
    parent_[b] = a;
  }
  const std::vector<std::int64_t>* reduced(Id root) {
    auto it = reduced_.find(root);
    return it == reduced_.end() ? nullptr : &it->second;
  }

  void join() {
    for (Id id = 0; id < n_; ++id)
      if (is_reduce(g_[id])) reduced_[id] = axes(g_[id]);
    // Pointwise nodes with their producers first, so that a reduction which finds others along other axes there stays alone: then no two
    // kernels of one level can wait for each other.
    for (bool reductions : {false, true})
      for (Id id = 0; id < n_; ++id) {
        if (!in_kernel(id) || is_reduce(g_[id]) != reductions) continue;
        for (Id u : g_[id].in)
          if (needs_kernel(u) && can_join(u, id) && level_[u] == level_[id]) unite(u, id);
      }
    // Then kernels that read the same array.
    for (Id id = 0; id < n_; ++id) {
      const std::vector<Id>& users = users_[id];
      if (needs_kernel(id) && graph::is_pointwise(g_[id])) continue;  // its users were joined to it, or wait for it
      if (argument_[id] || g_[id].type.shape.empty()) continue;
      std::map<int, Id> first;  // by level
      for (Id u : users)
        if (in_kernel(u) && space(g_, u) == g_[id].type.shape) {
          auto [it, fresh] = first.emplace(level_[u], u);
          if (!fresh) unite(it->second, u);
        }
    }
  }

  Partition collect() {
    std::map<std::pair<int, Id>, std::vector<Id>> sets;  // by level, then by smallest member: an order in which they can run
    std::vector<Id> smallest(n_, graph::kKeep);
    for (Id id = 0; id < n_; ++id)
      if (needs_kernel(id)) {
        Id root = find(id);
        if (smallest[root] == graph::kKeep) smallest[root] = id;
        // Without fusion, list order is the order; with it, levels are.
        sets[{options_.fuse ? level_[id] : 0, smallest[root]}].push_back(id);
      }
    Partition result;
    for (auto& [key, members] : sets) cut(std::move(members), result);
    if (options_.fuse) explain(result);
    return result;
  }

  // Why an operation and its operand are in different kernels.
  void explain(Partition& result) const {
    constexpr std::size_t kMaxReasons = 100;
    std::vector<std::size_t> group(n_, 0);
    for (std::size_t i = 0; i < result.groups.size(); ++i)
      for (Id id : result.groups[i].members) group[id] = i + 1;
    for (Id id = 0; id < n_; ++id)
      for (std::size_t i = 0; i < g_[id].in.size(); ++i) {
        Id u = g_[id].in[i];
        if (is_view(id)) continue;  // told where a kernel or product reads it
        while (is_view(u)) u = g_[u].in[0];
        if (!group[u] || group[u] == group[id] || result.refused.size() >= kMaxReasons) continue;
        auto label = [&](Id x) { return std::string(ops::info(g_[x].op).name).append(" %").append(std::to_string(x)); };
        result.refused.push_back(label(u) + " -> " + label(id) + ": " + reason(u, id, i));
      }
  }
  const char* reason(Id producer, Id consumer, std::size_t operand) const {
    const Node &p = g_[producer], &c = g_[consumer];
    switch (ops::info(c.op).kind) {
      case OpKind::Call: return "a library product reads it from memory";
      case OpKind::Region: return "a branch or loop reads it from memory";
      case OpKind::Alias: return "it is saved, and read when the work behind it begins again";
      case OpKind::Cumulative: return "it is read one element after the other";
      default: break;
    }
    if (!in_kernel(consumer)) return "it is copied into a larger array";
    if (is_reduce(p)) return "a reduction is complete only after its kernel";
    if (graph::is_read_elsewhere(c.op, operand)) return "it is read at computed places";
    if (is_view(c.in[operand])) return "computing it in the shape of its view would repeat work, or others need it as it is";
    if (!same_space(g_, producer, consumer)) return "shapes differ";
    if (level_[producer] != level_[consumer]) return "another operation needs it earlier";
    if (is_reduce(c)) return "the kernel reduces along other axes";
    return "the kernel would be too long";
  }

  // Long groups are cut in list order; at each cut, within the last quarter, where fewest values cross.
  void cut(std::vector<Id> members, Partition& result) {
    std::size_t begin = 0;
    while (begin < members.size()) {
      std::size_t limit = begin + static_cast<std::size_t>(options_.max_instructions), end = members.size();
      if (end > limit) end = narrowest(members, begin + (limit - begin) * 3 / 4, limit);
      add_group({members.begin() + static_cast<std::ptrdiff_t>(begin), members.begin() + static_cast<std::ptrdiff_t>(end)}, result);
      begin = end;
    }
  }
  std::size_t narrowest(const std::vector<Id>& members, std::size_t from, std::size_t to) const {
    std::size_t best = to;
    long crossing = 0, least = std::numeric_limits<long>::max();
    // Values alive after position p: made at or before p, used after it. Counted over the window alone, which ranks the cuts.
    for (std::size_t p = from; p < to; ++p) {
      const Node& n = g_[members[p]];
      if (!users_[members[p]].empty()) ++crossing;
      for (Id u : n.in)
        if (!users_[u].empty() && users_[u].back() == members[p] && u >= members[from]) --crossing;
      if (crossing <= least) least = crossing, best = p + 1;
    }
    return best;
  }

  void add_group(std::vector<Id> members, Partition& result) {
    Group group;
    for (Id id : members) {
      bool outside = is_output_[id] || is_reduce(g_[id]);
      for (Id u : users_[id])
        if (!outside) outside = !std::binary_search(members.begin(), members.end(), u) || !can_join(id, u);
      if (outside) group.outputs.push_back(id);
    }
    group.members = std::move(members);
    result.groups.push_back(std::move(group));
  }

  const Graph& g_;
  FuseOptions options_;
  Id n_;
  std::vector<int> level_;
  std::vector<Id> parent_;
  std::vector<std::vector<Id>> users_;
  std::vector<char> is_output_;
  std::vector<char> argument_;                       // constants that are kernel arguments wherever they are read
  std::map<Id, std::vector<std::int64_t>> reduced_;  // by root
};

}  // namespace

graph::Partition fuse(const graph::Graph& g, const FuseOptions& options) { return Fuser(g, options).run(); }

}  // namespace sinter::passes
