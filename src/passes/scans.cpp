#include "passes/scans.h"

#include <algorithm>
#include <queue>

#include "passes/operand_walk.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;

constexpr int kMost = 200;       // instructions, and nodes
constexpr int kMostScalar = 12;  // along the innermost axis, where they are single numbers: a step waits for the one before that long

class Scans {
 public:
  Scans(const Graph& g, const std::vector<int>& level, FunctionRef<bool(Id)> may_move, FunctionRef<bool(Id)> is_argument)
      : g_(g), level_(level), may_move_(may_move), is_argument_(is_argument), owner_(g.size(), graph::kKeep) {}

  std::vector<Id> run() {
    for (Id id = 0; id < g_.size(); ++id)
      if (is_scan(id)) owner_[id] = id;
    if (std::all_of(owner_.begin(), owner_.end(), [](Id id) { return id == graph::kKeep; })) return std::move(owner_);
    uses_ = graph::count_uses(g_);
    users_.resize(g_.size());
    for (Id id = 0; id < g_.size(); ++id)
      for (Id u : g_[id].in) users_[u].push_back(id);
    for (Id id : g_.outputs()) outputs_.push_back(id);
    for (Id id = 0; id < g_.size(); ++id)
      if (is_scan(id)) {
        budget_ = is_innermost(g_[id]) ? kMostScalar : kMost;
        take_operands(id);
        take_users(id);
      }
    return std::move(owner_);
  }

 private:
  bool is_scan(Id id) const { return ops::info(g_[id].op).kind == ops::OpKind::Cumulative; }
  bool is_innermost(const Node& n) const {
    for (auto d = static_cast<std::size_t>(n.attrs[0]) + 1; d < n.type.shape.size(); ++d)
      if (n.type.shape[d] != 1) return false;
    return true;
  }
  bool fits(Id id, Id scan) const { return owner_[id] == graph::kKeep && may_move_(id) && g_[id].type.shape == g_[scan].type.shape; }
  bool computed(Id id) const { return graph::is_pointwise(g_[id]) && !is_argument_(id); }

  // What nobody else uses, down to memory.
  void take_operands(Id scan) {
    OperandWalk walk;
    std::vector<Id> taken;
    int cost = 0;
    const std::vector<Id>& operands = g_[scan].in;
    for (Id in : operands) walk.see(in);
    while (!walk.done()) {
      const Id id = walk.next();
      if (is_argument_(id)) continue;
      if (fits(id, scan) && walk.uses(id) == uses_[id] && taken.size() < std::size_t{kMost}) {
        taken.push_back(id);
        cost += graph::cost(g_, id);
        for (std::size_t i = 0; i < g_[id].in.size(); ++i)
          if (!graph::is_read_elsewhere(g_[id].op, i)) walk.see(g_[id].in[i]);
        continue;
      }
      if (std::find(operands.begin(), operands.end(), id) != operands.end() || !computed(id)) continue;
      // What was fused with it would have to be stored.
      for (Id t : taken)
        if (level_[id] == level_[t] && std::find(g_[t].in.begin(), g_[t].in.end(), id) != g_[t].in.end()) return;
    }
    if (cost > budget_) return;
    budget_ -= cost;
    for (Id id : taken) owner_[id] = scan;
  }

  // What is made of the result and of memory that is there before; as long as no more is stored than before.
  void take_users(Id scan) {
    std::priority_queue<Id, std::vector<Id>, std::greater<>> found;
    std::vector<Id> taken{scan};
    int cost = 0;
    auto is_taken = [&](Id id) { return std::binary_search(taken.begin(), taken.end(), id); };
    auto is_there = [&](Id id) {
      const Id in = graph::under_views(g_, id);  // which may have moved to a later level than its views had
      return is_argument_(id) || level_[in] + (g_[in].op != ops::Op::Input) <= level_[scan];
    };
    for (Id u : users_[scan]) found.push(u);
    while (!found.empty()) {
      const Id id = found.top();
      found.pop();
      if (is_taken(id) || !fits(id, scan) || taken.size() >= std::size_t{kMost} || cost + graph::cost(g_, id) > budget_) continue;
      bool joins = true;
      for (std::size_t i = 0; i < g_[id].in.size(); ++i)
        joins = joins && (is_taken(g_[id].in[i]) ? !graph::is_read_elsewhere(g_[id].op, i) : is_there(g_[id].in[i]));
      if (!joins) continue;
      taken.push_back(id);  // ascending
      cost += graph::cost(g_, id);
      for (Id u : users_[id]) found.push(u);
    }
    int read = 0;  // stored because others read them
    for (Id id : taken)
      read +=
          std::find(outputs_.begin(), outputs_.end(), id) == outputs_.end() && !std::all_of(users_[id].begin(), users_[id].end(), is_taken);
    if (read > 1) return;
    for (Id id : taken) owner_[id] = scan;
  }

  const Graph& g_;
  const std::vector<int>& level_;
  FunctionRef<bool(Id)> may_move_, is_argument_;
  std::vector<Id> owner_;
  std::vector<int> uses_;
  std::vector<std::vector<Id>> users_;
  std::vector<Id> outputs_;
  int budget_ = 0;
};

}  // namespace

std::vector<Id> find_scans(const Graph& g, const std::vector<int>& level, FunctionRef<bool(Id)> may_move,
                           FunctionRef<bool(Id)> is_argument) {
  return Scans(g, level, may_move, is_argument).run();
}

}  // namespace sinter::passes
