// Shrinking: parts of a program are left out, or made simpler, as long as something is wrong with it. Each candidate runs in a process of
// its own, made by fork(): so a crash is an answer, and what the library keeps is as it was when the fault was found.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "fuzz/program.h"

namespace sinter::fuzz {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

using Clock = std::chrono::steady_clock;
constexpr rlim_t kHangsAfter = 20;  // seconds of computing; or of waiting, ten times as many

// Calls f on every function of the program, bodies before what holds them.
void for_each_function(Function& f, FunctionRef<void(Function&)> visit) {
  for (Step& s : f.steps)
    for (Function& body : s.bodies) for_each_function(body, visit);
  visit(f);
}

void replace(Function& function, int from, int to) {
  for_each_function(function, [&](Function& f) {
    for (Step& s : f.steps) std::replace(s.in.begin(), s.in.end(), from, to);
    std::replace(f.results.begin(), f.results.end(), from, to);
  });
}

int next_id(Program& p) {
  int last = -1;
  for (const Leaf& l : p.leaves) last = std::max(last, l.id);
  for_each_function(p.function, [&](Function& f) {
    for (int id : f.parameters) last = std::max(last, id);
    for (const Step& s : f.steps) last = std::max(last, s.id);
  });
  return last + 1;
}

// The graph with what its outputs need, and the slots of the inputs that stay.
Graph without_unused(const Graph& g, std::vector<std::size_t>& slots) {
  std::vector<char> needed(g.size(), 0);
  for (Id id : g.outputs()) needed[id] = 1;
  for (Id id = g.size(); id-- > 0;)
    if (needed[id])
      for (Id u : g[id].in) needed[u] = 1;
  Graph next;
  std::vector<Id> ids(g.size());
  std::vector<std::pair<std::int64_t, Id>> inputs;
  for (Id id = 0; id < g.size(); ++id)
    if (needed[id] && g[id].op == Op::Input) inputs.emplace_back(std::int64_t{g[id].attrs[0]}, id);
  std::sort(inputs.begin(), inputs.end());
  for (const auto& [slot, id] : inputs) {
    ids[id] = next.add({Op::Input, {}, {static_cast<std::int64_t>(slots.size())}, g[id].type});
    slots.push_back(static_cast<std::size_t>(slot));
  }
  for (Id id = 0; id < g.size(); ++id) {
    if (!needed[id] || g[id].op == Op::Input) continue;
    Node n = g[id];
    for (Id& u : n.in) u = ids[u];
    ids[id] = next.add(std::move(n));
  }
  std::vector<Id> outputs;
  for (Id id : g.outputs()) outputs.push_back(ids[id]);
  next.set_outputs(outputs);
  return next;
}

// What runs graph number `which`.
Step* step_of(Program& p, std::size_t which) {
  Step* found = nullptr;
  for_each_function(p.function, [&](Function& f) {
    for (Step& s : f.steps)
      if (s.name == "graph" && s.numbers == std::vector{static_cast<std::int64_t>(which)}) found = &s;
  });
  return found;
}
// Puts the graph in place of number `which`; its inputs are the old ones by slot, and one more.
void put_graph(Program& p, std::size_t which, Graph g, const graph::Type* added) {
  Step* s = step_of(p, which);
  if (added) {
    Leaf l;
    l.id = next_id(p);
    l.dtype = added->dtype;
    for (const Dim& n : added->shape) l.dims.push_back(static_cast<int>(std::int64_t{n}));
    l.special = true;
    p.leaves.push_back(l);
    s->in.push_back(l.id);
  }
  std::vector<std::size_t> slots;
  p.graphs[which] = without_unused(g, slots);
  std::vector<int> in;
  for (std::size_t slot : slots) in.push_back(s->in[slot]);
  s->in = std::move(in);
}
std::size_t input_count(const Graph& g) {
  std::size_t n = 0;
  for (Id id = 0; id < g.size(); ++id) n += g[id].op == Op::Input ? 1 : 0;
  return n;
}
// The graph with node `cut` replaced: by another of its type, or (kKeep) by a new input.
Graph replaced(const Graph& g, Id cut, Id by) {
  Graph next;
  std::vector<Id> ids(g.size());
  for (Id id = 0; id < g.size(); ++id) {
    Node n = g[id];
    for (Id& u : n.in) u = ids[u];
    if (id == cut)
      ids[id] = by == graph::kKeep ? next.add({Op::Input, {}, {static_cast<std::int64_t>(input_count(g))}, n.type}) : ids[by];
    else
      ids[id] = next.add(std::move(n));
  }
  std::vector<Id> outputs;
  for (Id id : g.outputs()) outputs.push_back(ids[id]);
  next.set_outputs(outputs);
  return next;
}

bool uses(Program& p, int id) {
  bool found = std::any_of(p.leaves.begin(), p.leaves.end(), [&](const Leaf& l) { return l.same == id; });
  const auto has = [&](const std::vector<int>& ids) { return std::find(ids.begin(), ids.end(), id) != ids.end(); };
  for_each_function(p.function, [&](Function& f) {
    found = found || has(f.results) || std::any_of(f.steps.begin(), f.steps.end(), [&](const Step& s) { return has(s.in); });
  });
  return found;
}

// Drops arrays and graphs that nothing uses; a state array stays, for steps reach it by its place.
void drop_unused(Program& p) {
  std::vector<Graph> graphs;
  for_each_function(p.function, [&](Function& f) {
    for (Step& s : f.steps) {
      if (s.name != "graph") continue;
      graphs.push_back(p.graphs.at(static_cast<std::size_t>(s.numbers.at(0))));
      s.numbers = {static_cast<std::int64_t>(graphs.size()) - 1};
    }
  });
  p.graphs = std::move(graphs);
  for (std::size_t i = p.leaves.size(); i-- > 0;)
    if (p.leaves[i].role != Role::state && !uses(p, p.leaves[i].id)) p.leaves.erase(p.leaves.begin() + static_cast<std::ptrdiff_t>(i));
}

class Shrinker {
 public:
  Shrinker(Program p, FunctionRef<std::string(const Program&)> wrong, double seconds)
      : best_(std::move(p)), wrong_(wrong), end_(Clock::now() + std::chrono::milliseconds(static_cast<int>(seconds * 1000))) {}

  Program run() {
    sort_ = sort_of(wrong_(best_));
    if (sort_ == Sort::nothing) return best_;
    drop_unused(best_);
    for (bool smaller = true; smaller && Clock::now() < end_;) {
      smaller = false;
      // Large parts first; each as often as it helps.
      for (auto pass : {&Shrinker::ways, &Shrinker::calls, &Shrinker::results, &Shrinker::steps, &Shrinker::graphs, &Shrinker::leaves,
                        &Shrinker::numbers})
        while ((this->*pass)()) smaller = true;
    }
    return best_;
  }

 private:
  // Keeps the program after `change` if something is wrong with it as well.
  bool attempt(FunctionRef<void(Program&)> change) {
    if (Clock::now() > end_) return false;
    Program next = best_;
    change(next);
    drop_unused(next);
    const std::string text = print(next);
    if (!tried_.insert(text).second || sort_of(wrong_(next)) != sort_) return false;
    best_ = std::move(next);
    return true;
  }

  bool ways() {
    for (std::size_t i = 0; best_.ways.size() > 1 && i < best_.ways.size(); ++i)
      if (attempt([&](Program& p) { p.ways = {best_.ways[i]}; })) return true;
    return best_.wrap != 0 && attempt([](Program& p) { p.wrap = 0; });
  }
  bool calls() {
    for (std::size_t i = best_.calls.size(); best_.calls.size() > 1 && i-- > 0;)
      if (attempt([&](Program& p) { p.calls.erase(p.calls.begin() + static_cast<std::ptrdiff_t>(i)); })) return true;
    return false;
  }
  bool results() {
    for (std::size_t i = best_.function.results.size(); best_.function.results.size() > 1 && i-- > 0;)
      if (attempt([&](Program& p) { p.function.results.erase(p.function.results.begin() + static_cast<std::ptrdiff_t>(i)); })) return true;
    return false;
  }
  // A step goes, and what used it uses an operand of it, or an array of the program, instead.
  bool steps() {
    std::vector<std::pair<int, std::vector<int>>> all;
    for_each_function(best_.function, [&](Function& f) {
      for (const Step& s : f.steps) {
        all.emplace_back(s.id, s.in);
        for (const Function& body : s.bodies) all.back().second.insert(all.back().second.end(), body.results.begin(), body.results.end());
      }
    });
    std::reverse(all.begin(), all.end());
    for (auto& [id, others] : all) {
      for (const Leaf& l : best_.leaves) others.push_back(l.id);
      for (int other : others)
        if (attempt([&](Program& p) {
              for_each_function(p.function, [&](Function& f) { std::erase_if(f.steps, [&](const Step& s) { return s.id == id; }); });
              replace(p.function, id, other);
            }))
          return true;
    }
    return false;
  }
  bool graphs() {
    for (std::size_t which = 0; which < best_.graphs.size(); ++which) {
      if (!step_of(best_, which)) continue;
      const Graph g = best_.graphs[which];
      for (std::size_t i = 0; g.outputs().size() > 1 && i < g.outputs().size(); ++i)
        if (attempt([&](Program& p) {
              Graph one = g;
              one.set_outputs({g.outputs()[i]});
              put_graph(p, which, std::move(one), nullptr);
            }))
          return true;
      for (Id id = g.size(); id-- > 0;) {
        const Node& n = g[id];
        if (n.op == Op::Input) continue;
        for (Id other = 0; other < id; ++other)
          if (g[other].type == n.type && !ops::has_bodies(g[other].op) && !ops::has_bodies(n.op) &&
              attempt([&](Program& p) { put_graph(p, which, replaced(g, id, other), nullptr); }))
            return true;
        if (n.op != Op::Constant && !ops::has_bodies(n.op) &&
            attempt([&](Program& p) { put_graph(p, which, replaced(g, id, graph::kKeep), &n.type); }))
          return true;
      }
    }
    return false;
  }
  template <class T>
  bool set(T Leaf::* member, std::size_t at, T value) {
    return best_.leaves[at].*member != value && attempt([&](Program& p) { p.leaves[at].*member = value; });
  }
  bool leaves() {
    for (std::size_t i = 0; i < best_.leaves.size(); ++i) {
      if (!uses(best_, best_.leaves[i].id) &&
          attempt([&](Program& p) { p.leaves.erase(p.leaves.begin() + static_cast<std::ptrdiff_t>(i)); }))
        return true;
      if (set(&Leaf::same, i, -1) || set(&Leaf::role, i, Role::argument) || set(&Leaf::memory, i, tests::Memory::plain) ||
          set(&Leaf::special, i, false) || set(&Leaf::dtype, i, Dtype::float32))
        return true;
      const std::vector<int> dims = best_.leaves[i].dims;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        std::vector<int> less = dims;
        less.erase(less.begin() + static_cast<std::ptrdiff_t>(d));
        if (set(&Leaf::dims, i, less)) return true;
        for (int n : {1, 2, 3})
          if (n < dims[d] || dims[d] < 0) {
            less = dims;
            less[d] = n;
            if (set(&Leaf::dims, i, less)) return true;
          }
      }
    }
    return false;
  }
  bool numbers() {
    for (std::size_t i = 0; i < best_.calls.size(); ++i) {
      const Call c = best_.calls[i];
      if ((c.fail && attempt([&](Program& p) { p.calls[i].fail = false; })) ||
          (c.hold && attempt([&](Program& p) { p.calls[i].hold = false; })) ||
          (c.move && attempt([&](Program& p) { p.calls[i].move = false; })) ||
          (c.number != 0 && attempt([&](Program& p) { p.calls[i].number = 0; })))
        return true;
      for (std::size_t d = 0; d < 2; ++d)
        for (std::int64_t n : {1, 2, 3})
          if (n < c.sizes[d] && attempt([&](Program& p) { p.calls[i].sizes[d] = n; })) return true;
    }
    std::vector<int> with_numbers;
    for_each_function(best_.function, [&](Function& f) {
      for (const Step& s : f.steps)
        if (s.name != "graph" && std::any_of(s.numbers.begin(), s.numbers.end(), [](auto n) { return n != 0; }))
          with_numbers.push_back(s.id);
    });
    for (int id : with_numbers)
      if (attempt([&](Program& p) {
            for_each_function(p.function, [&](Function& f) {
              for (Step& s : f.steps)
                if (s.id == id) s.numbers.clear();
            });
          }))
        return true;
    return false;
  }

  // Of what is wrong: a difference must not become a crash, or a program that takes for ever.
  enum class Sort { nothing, difference, exception, hangs, ends };
  static Sort sort_of(std::string_view what) {
    return what.empty()                       ? Sort::nothing
           : what.starts_with("exception")    ? Sort::exception
           : what.starts_with("it hangs")     ? Sort::hangs
           : what.starts_with("it ends with") ? Sort::ends
                                              : Sort::difference;
  }

  Program best_;
  const FunctionRef<std::string(const Program&)> wrong_;
  const Clock::time_point end_;
  Sort sort_ = Sort::nothing;
  std::set<std::string> tried_;
};

}  // namespace

std::string wrong_apart(const Program& p) {
  int ends[2];
  check(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  check(child >= 0, "no process");
  if (child == 0) {
    close(ends[0]);
    const rlimit limit{kHangsAfter, kHangsAfter + 1};
    setrlimit(RLIMIT_CPU, &limit);
    const std::string answer = wrong(p);
    const bool written = write(ends[1], answer.data(), std::min<std::size_t>(answer.size(), 4096)) >= 0;
    _exit(written ? 0 : 3);
  }
  close(ends[1]);
  std::string answer;
  pollfd ready{ends[0], POLLIN, 0};
  bool hangs = false;
  while (true) {
    if (poll(&ready, 1, static_cast<int>(kHangsAfter) * 10'000) == 0) {
      hangs = true;
      kill(child, SIGKILL);
    }
    char buffer[4096];
    const ssize_t n = read(ends[0], buffer, sizeof buffer);
    if (n <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (hangs || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) return "it hangs";
  if (WIFSIGNALED(status)) return str("it ends with signal ", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? answer : str("it ends with status ", WEXITSTATUS(status));
}

Program shrink(Program p, FunctionRef<std::string(const Program&)> wrong, double seconds) {
  return Shrinker(std::move(p), wrong, seconds).run();
}

}  // namespace sinter::fuzz
