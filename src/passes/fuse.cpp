#include "passes/fuse.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "passes/row_spaces.h"
#include "passes/scans.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Group;
using graph::Id;
using graph::Node;
using graph::Partition;
using ops::OpKind;

// A kernel that goes over rows reads each row once for every reduction that waits for another, and computes again what it needs again.
constexpr int kMaxPasses = 4;
constexpr int kMaxRepeated = 40;  // instructions: about two exp

bool is_reduce(const Node& n) { return ops::info(n.op).kind == OpKind::Reduce; }
// The shape that a node's kernel iterates over.
const Shape& space(const Graph& g, Id id) { return is_reduce(g[id]) ? g[g[id].in[0]].type.shape : g[id].type.shape; }
bool same_space(const Graph& g, Id a, Id b) { return space(g, a) == space(g, b); }

class Fuser {
 public:
  Fuser(const Graph& g, const FuseOptions& options) : g_(g), options_(options), n_(g.size()), level_(n_, 0), pass_(n_, 0), parent_(n_) {
    std::iota(parent_.begin(), parent_.end(), Id{0});
    users_.resize(n_), reads_.resize(n_), repeated_.resize(n_), is_output_.resize(n_), outside_.resize(n_), argument_.resize(n_);
    for (Id id = 0; id < n_; ++id)
      for (Id u : g_[id].in) users_[u].push_back(id);
    for (Id id : g_.outputs()) is_output_[id] = outside_[id] = true;
    for (Id id = n_; id-- > 0;) {
      if (is_view(id)) {
        outside_[g_[id].in[0]] = outside_[g_[id].in[0]] || outside_[id];
        continue;
      }
      for (std::size_t i = 0; i < g_[id].in.size(); ++i) {
        if (in_kernel(id))
          reads_[graph::under_views(g_, g_[id].in[i])].push_back({id, i});
        else
          outside_[g_[id].in[i]] = true;
      }
    }
    // A constant of one element is a kernel argument wherever it is read; it needs memory only as an output or for other readers.
    for (Id id = 0; id < n_; ++id) argument_[id] = graph::is_scalar_constant(g_[id]) && !is_stored(id);
  }

  Partition run() {
    if (options_.fuse) {
      rows_.emplace(g_);
      assign_levels();
      lower_levels_of_uses();
      join();
    }
    return collect();
  }

 private:
  struct Read {  // a kernel's operation that reads a node, or a view of it
    Id reader;
    std::size_t operand;
  };

  bool is_view(Id id) const { return ops::info(g_[id].op).kind == OpKind::View; }
  bool is_scan(Id id) const { return ops::info(g_[id].op).kind == OpKind::Cumulative; }
  bool in_kernel(Id id) const { return graph::is_in_kernel(g_[id]); }
  bool needs_kernel(Id id) const { return in_kernel(id) && !argument_[id]; }
  int rows_of(Id id) const { return rows_ ? rows_->of(id) : RowSpaces::kNone; }
  bool is_row_value(Id id) const { return rows_of(id) != RowSpaces::kNone; }
  // One a row, computed from others of its kind.
  bool is_row_pointwise(Id id) const { return is_row_value(id) && graph::is_pointwise(g_[id]); }
  // Whether a constant of one element is needed in memory: it is an output, or somebody reads it who takes no scalars.
  bool is_stored(Id id) const {
    if (is_output_[id]) return true;
    for (Id u : users_[id]) {
      if (ops::info(g_[u].op).kind == OpKind::Scatter || is_scan(u)) continue;
      if (!in_kernel(u)) return true;
      for (std::size_t i = 0; i < g_[u].in.size(); ++i)
        if (g_[u].in[i] == id && graph::is_read_elsewhere(g_[u].op, i) && g_[u].op != ops::Op::Pad) return true;
    }
    return false;
  }

  // The operand's producer, under its views, can be computed where the consumer's kernel reads it.
  bool can_join(Id consumer, std::size_t operand) const {
    const Id read = g_[consumer].in[operand], producer = graph::under_views(g_, read);
    if (!in_kernel(producer) || !in_kernel(consumer) || graph::is_read_elsewhere(g_[consumer].op, operand)) return false;
    const int rows = rows_of(producer);
    if (rows == RowSpaces::kNone)
      return read == producer && !is_reduce(g_[producer]) && !is_row_pointwise(consumer) && same_space(g_, producer, consumer);
    if (is_row_pointwise(consumer) ? rows_of(consumer) != rows : space(g_, consumer) != rows_->space(rows).shape) return false;
    return rows_->follows_rows(read, rows);
  }

  // The first level at which memory has the node: a view's level is that of what it shows.
  int ready(Id id) const { return level_[id] + !(is_view(id) || g_[id].op == ops::Op::Input); }
  // Nodes of one space and level may share a kernel: every path between two kernels rises in level, so kernels cannot wait for each other.
  void assign_levels() {
    for (Id id = 0; id < n_; ++id) {
      for (std::size_t i = 0; i < g_[id].in.size(); ++i) {
        const Id u = g_[id].in[i];
        if (argument_[u]) continue;
        const bool joins = can_join(id, i);
        level_[id] = std::max(level_[id], joins ? level_[graph::under_views(g_, u)] : ready(u));
      }
      if (in_kernel(id) && !assign_pass(id)) {
        ++level_[id];
        assign_pass(id);
      }
    }
  }
  // In which pass over its row a kernel computes the node first; of a row value, after which pass it is known. False if the kernel had to
  // make too many passes, or to repeat too much work.
  bool assign_pass(Id id) {
    const bool row = is_row_pointwise(id);
    int pass = row ? -1 : 0, work = 0;
    auto for_operands = [&](auto&& f) {
      for (std::size_t i = 0; i < g_[id].in.size(); ++i) {
        const Id u = graph::under_views(g_, g_[id].in[i]);
        if (!argument_[u] && level_[u] == level_[id] && can_join(id, i)) f(u);
      }
    };
    for_operands([&](Id u) { pass = std::max(pass, pass_[u] + (is_row_value(u) && !row)); });
    bool fits = pass < kMaxPasses;
    if (!row) {
      work = is_reduce(g_[id]) ? 0 : graph::cost(g_, id);
      for_operands([&](Id u) {
        if (is_row_value(u)) return;
        if (pass_[u] < pass && repeated_[u] > kMaxRepeated) fits = false;
        work = std::min(work + repeated_[u], 1 << 20);
      });
    }
    pass_[id] = pass;
    repeated_[id] = work;
    return fits;
  }
  // A node all of whose uses are later is computed there, as long as they are in one space, and not twice if it is much work.
  void lower_levels_of_uses() {
    std::vector<std::pair<int, int>> used(n_);  // the first and last pass in which its kernel computes a node
    for (Id id = n_; id-- > 0;) {
      used[id] = {pass_[id], pass_[id]};
      if (!graph::is_pointwise(g_[id]) || reads_[id].empty()) continue;
      int latest = std::numeric_limits<int>::max();
      bool all = !outside_[id];
      for (const Read& r : reads_[id]) {
        all = all && can_join(r.reader, r.operand);
        latest = std::min(latest, level_[r.reader]);
      }
      const int level = all ? std::max(level_[id], latest) : level_[id];
      std::pair<int, int> span{std::numeric_limits<int>::max(), 0};
      for (const Read& r : reads_[id])
        if (level_[r.reader] == level && can_join(r.reader, r.operand))
          span = {std::min(span.first, used[r.reader].first), std::max(span.second, used[r.reader].second)};
      if (level > level_[id]) {
        if (span.first < span.second && repeated_[id] > kMaxRepeated) continue;
        level_[id] = level;
        pass_[id] = is_row_pointwise(id) ? -1 : 0;
        used[id] = span;
      } else {
        used[id].second = std::max(used[id].second, span.second);
      }
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
    for (Id id = 0; id < n_; ++id) {
      if (is_reduce(g_[id])) reduced_[id] = folded_axes(g_, g_[id]);
      if (is_row_pointwise(id)) reduced_[id] = rows_->space(rows_of(id)).axes;
    }
    // Reductions that nothing is joined to come last, so that one which finds others along other axes there stays alone: then no two
    // kernels of one level can wait for each other.
    for (bool last : {false, true})
      for (Id id = 0; id < n_; ++id) {
        if (!in_kernel(id) || (is_reduce(g_[id]) && !is_row_value(id)) != last) continue;
        for (std::size_t i = 0; i < g_[id].in.size(); ++i) {
          const Id u = graph::under_views(g_, g_[id].in[i]);
          if (needs_kernel(u) && level_[u] == level_[id] && can_join(id, i)) unite(u, id);
        }
      }
    // Then kernels that read the same array.
    for (Id id = 0; id < n_; ++id) {
      const std::vector<Id>& users = users_[id];
      if (needs_kernel(id) && graph::is_pointwise(g_[id])) continue;  // its users were joined to it, or wait for it
      if (argument_[id] || g_[id].type.shape.empty()) continue;
      std::map<std::pair<int, int>, Id> first;  // by level, and the space whose row values read it
      for (Id u : users)
        if (in_kernel(u) && space(g_, u) == g_[id].type.shape) {
          auto [it, fresh] = first.emplace(std::pair{level_[u], is_row_pointwise(u) ? rows_of(u) : RowSpaces::kNone}, u);
          if (!fresh) unite(it->second, u);
        }
    }
  }

  Partition collect() {
    std::map<std::pair<int, Id>, std::vector<Id>> sets;  // by level, then by smallest member: an order in which they can run
    std::vector<Id> smallest(n_, graph::kKeep);
    std::map<Id, std::vector<Id>> scans;
    const std::vector<Id> scan_of = find_scans(
        g_, level_, [&](Id id) { return options_.fuse && needs_kernel(id) && graph::is_pointwise(g_[id]) && !is_row_value(id); },
        [&](Id id) { return argument_[id] != 0; });
    for (Id id = 0; id < n_; ++id)
      if (scan_of[id] != graph::kKeep) {
        scans[scan_of[id]].push_back(id);
      } else if (needs_kernel(id)) {
        Id root = find(id);
        if (smallest[root] == graph::kKeep) smallest[root] = id;
        // Without fusion, list order is the order; with it, levels are.
        sets[{options_.fuse ? level_[id] : 0, smallest[root]}].push_back(id);
      }
    Partition result;
    for (auto& [key, members] : sets) {
      if (members.size() > static_cast<std::size_t>(options_.max_instructions))
        for (auto& [pass, part] : by_pass(members)) cut(std::move(part), result);
      else
        add_group(std::move(members), result);
    }
    for (auto& [scan, members] : scans) add_scan(scan, std::move(members), result);
    if (options_.fuse) explain(result);
    return result;
  }
  // A kernel over rows that is too long: each pass, and the row values after it, as kernels of their own.
  std::map<int, std::vector<Id>> by_pass(const std::vector<Id>& members) const {
    std::map<int, std::vector<Id>> parts;
    for (Id id : members) parts[2 * pass_[id] + is_row_pointwise(id)].push_back(id);
    return parts;
  }

  // Why an operation and its operand are in different kernels.
  void explain(Partition& result) const {
    constexpr std::size_t kMaxReasons = 100;
    std::vector<std::size_t> group(n_, 0);
    for (std::size_t i = 0; i < result.groups.size(); ++i)
      for (Id id : result.groups[i].members) group[id] = i + 1;
    for (Id id = 0; id < n_; ++id)
      for (std::size_t i = 0; i < g_[id].in.size(); ++i) {
        if (is_view(id)) continue;  // told where a kernel or product reads it
        Id u = graph::under_views(g_, g_[id].in[i]);
        if (!group[u] || group[u] == group[id] || result.refused.size() >= kMaxReasons) continue;
        auto label = [&](Id x) { return std::string(ops::info(g_[x].op).name).append(" %").append(std::to_string(x)); };
        result.refused.push_back(label(u) + " -> " + label(id) + ": " + reason(u, id, i));
      }
  }
  const char* reason(Id producer, Id consumer, std::size_t operand) const {
    const Node &p = g_[producer], &c = g_[consumer];
    switch (ops::info(c.op).kind) {
      case OpKind::Call: return "a routine of a library reads it from memory";
      case OpKind::Region: return "a branch or loop reads it from memory";
      case OpKind::Alias: return "it is saved, and read when the work behind it begins again";
      case OpKind::Cumulative: return "others need it, or it is too much work for steps that wait for each other";
      default: break;
    }
    if (is_scan(producer)) return "its elements are made one after the other, and it is read in another way, or with what comes later";
    if (!in_kernel(consumer))
      return graph::is_pointwise(p) && c.in[operand] == producer && !is_output_[producer] && users_[producer].size() == 1
                 ? "it is computed in its part of a larger array"
                 : "it is copied into a larger array";
    if (c.op == ops::Op::RandomBits || operand > 0 || !graph::is_read_elsewhere(c.op, operand)) {
      if (graph::is_read_elsewhere(c.op, operand)) return "it tells where to read";
    } else {
      return "it is read at other places; others need it, or to compute it there would repeat too much work";
    }
    const bool joins = can_join(consumer, operand);
    if (is_reduce(p) && !is_row_value(producer)) return "the reduction's rows are few, far apart and long, or along axes apart";
    if (is_row_value(producer) && !joins) return "it is read in other rows than its own";
    if (is_view(c.in[operand]) && !joins) return "computing it in the shape of its view would repeat work, or others need it as it is";
    if (!joins) return "shapes differ";
    if (level_[producer] != level_[consumer])
      return is_row_value(producer) || rows_of(consumer) != RowSpaces::kNone || pass_[producer] > 0
                 ? "the kernel would pass over its rows too often, or repeat too much work"
                 : "another operation needs it earlier";
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
    const Shape* whole = nullptr;
    int rows = RowSpaces::kNone;
    for (Id id : members) {
      bool stored = outside_[id] || (is_reduce(g_[id]) && reads_[id].empty());
      for (const Read& r : reads_[id])
        if (!stored) stored = !std::binary_search(members.begin(), members.end(), r.reader) || !can_join(r.reader, r.operand);
      if (stored) group.outputs.push_back(id);
      if (is_row_pointwise(id))
        rows = rows_of(id);
      else
        whole = &space(g_, id);
      if (is_reduce(g_[id])) group.axes = folded_axes(g_, g_[id]);
    }
    if (whole) {
      group.space = *whole;
      if (rows != RowSpaces::kNone) group.axes = rows_->space(rows).axes;
    } else {
      group.space = rows_->space(rows).rows;
    }
    group.members = std::move(members);
    result.groups.push_back(std::move(group));
  }

  void add_scan(Id scan, std::vector<Id> members, Partition& result) const {
    Group group{std::move(members), {}, g_[scan].type.shape, {}};
    auto is_member = [&](Id id) { return std::binary_search(group.members.begin(), group.members.end(), id); };
    for (Id id : group.members)
      if (is_output_[id] || !std::all_of(users_[id].begin(), users_[id].end(), is_member)) group.outputs.push_back(id);
    if (group.outputs.empty()) group.outputs.push_back(scan);
    result.groups.push_back(std::move(group));
  }

  const Graph& g_;
  FuseOptions options_;
  std::optional<RowSpaces> rows_;  // none without fusion
  Id n_;
  std::vector<int> level_;
  std::vector<int> pass_;
  std::vector<Id> parent_;
  std::vector<std::vector<Id>> users_;
  std::vector<std::vector<Read>> reads_;
  std::vector<int> repeated_;  // instructions to compute the node again in another pass
  std::vector<char> is_output_;
  std::vector<char> outside_;                        // it, or a view of it, is an output, or read by what is no kernel
  std::vector<char> argument_;                       // constants that are kernel arguments wherever they are read
  std::map<Id, std::vector<std::int64_t>> reduced_;  // by root
};

}  // namespace

graph::Partition fuse(const graph::Graph& g, const FuseOptions& options) { return Fuser(g, options).run(); }

}  // namespace sinter::passes
