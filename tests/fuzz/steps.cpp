#include "fuzz/steps.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "engine/capture.h"
#include "fuzz/sizes.h"

namespace sinter::fuzz {
namespace {

void require(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

// What a function of the table is called with. Numbers are taken as they fit: so any numbers go with any arrays.
struct Args {
  const Step& step;
  Environment& env;
  Arrays in;

  const Array& operator[](std::size_t i) const { return in.at(i); }
  int n(std::size_t i) const { return i < step.numbers.size() ? static_cast<int>(step.numbers[i]) : 0; }
  int n(std::size_t i, int below) const { return ((n(i) % below) + below) % below; }
  bool flag(std::size_t i) const { return n(i, 2) != 0; }
  int axis(std::size_t i = 0, std::size_t operand = 0) const { return in.at(operand).ndim() == 0 ? 0 : n(i, in[operand].ndim()); }
  // Some of the axes, by bits; none: all.
  Axes axes(std::size_t i = 0) const {
    std::vector<int> some;
    for (int d = 0; d < in.at(0).ndim(); ++d)
      if (n(i) >> d & 1) some.push_back(d);
    return some.empty() ? Axes() : Axes(some);
  }
  Dtype dtype(std::size_t i) const { return static_cast<Dtype>(n(i, kDtypeCount)); }
  Dtype floating(std::size_t i) const {
    static constexpr Dtype kAll[] = {float32, float32, float16, bfloat16, float64};
    return kAll[n(i, 5)];
  }
  Array& state() const {
    require(!env.state->arrays.empty(), "there is no state");
    return env.state->arrays[static_cast<std::size_t>(n(0, static_cast<int>(env.state->arrays.size())))];
  }
  // The step's own function, which sees all values.
  Arrays body(const Arrays& x, std::size_t i = 0) const {
    require(!x.empty(), "nothing to work on");
    const Function& f = step.bodies.at(i);
    Environment inner = env;
    for (std::size_t k = 0; k < f.parameters.size(); ++k) inner.values[f.parameters[k]] = {x.at(k % x.size())};
    if (env.draw && f.results.empty()) env.draw(f, inner);
    return run(f, inner);
  }
};

bool is_real(const Array& x) { return issubdtype(x.dtype(), Category::floating); }
// What a gradient is of: every floating result counts.
Array loss(const Arrays& results) {
  Array total(0.0f);
  for (const Array& r : results)
    if (is_real(r)) total = total + sum(r * 0.5).astype(float32);
  return total;
}
Arrays real_ones(const Arrays& x) {
  Arrays real;
  std::copy_if(x.begin(), x.end(), std::back_inserter(real), is_real);
  return real;
}
Arrays joined(Arrays a, const Arrays& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// For what is large on the way to something small, which those who draw programs do not see.
const Array& few(const Array& x) {
  require(x.size() <= kMostElements, "too many elements");
  return x;
}
// Of the shape and dtype of x.
Array like(const Array& x, const Array& y, bool by_mean) { return (x + (by_mean ? mean(y) : y)).astype(x.dtype()); }

struct Entry {
  const char* name;
  char group;
  int operands;
  Arrays (*call)(const Args& x);
};

const Entry kEntries[] = {
#define STEPS(name, group, operands, ...) {#name, group, operands, [](const Args& x) -> Arrays { __VA_ARGS__ }},
#define STEP(name, group, operands, ...) STEPS(name, group, operands, return {__VA_ARGS__};)
#define OP1(Name, function, ...) STEP(function, 'e', 1, function(x[0]))
#define OP2(Name, function, ...) STEP(function, 'e', 2, function(x[0], x[1]))
#define OP3(Name, function, ...) STEP(function, 'e', 3, function(x[0], x[1], x[2]))
#include "fuzz/steps.def"
#include "ops/elementwise.def"
#undef STEPS
#undef STEP
#undef OP1
#undef OP2
#undef OP3
};

Arrays run_graph(const graph::Graph& g, const Arrays& in, bool reference) {
  for (graph::Id id = 0; id < g.size(); ++id) {
    if (g[id].op != ops::Op::Input) continue;
    const auto slot = static_cast<std::size_t>(g[id].attrs[0]);
    require(slot < in.size() && in[slot].dtype() == g[id].type.dtype && in[slot].shape() == g[id].type.shape, "not the graph's input");
  }
  if (!reference) return engine::replay(g, in);
  Arrays out;
  for (const graph::Tensor& t : graph::interpret(g, tests::read(in))) out.push_back(tests::place(t));
  return out;
}

Arrays results_of(const Step& s, Environment& e) {
  Args x{s, e, {}};
  for (int id : s.in) {
    const auto found = e.values.find(id);
    require(found != e.values.end() && !found->second.empty(), "there is no such value");
    x.in.push_back(found->second.front());
  }
  if (s.name == "graph") {
    require(!s.numbers.empty() && static_cast<std::size_t>(s.numbers[0]) < e.program->graphs.size(), "there is no such graph");
    return run_graph(e.program->graphs[static_cast<std::size_t>(s.numbers[0])], x.in, e.reference);
  }
  static const auto* by_name = [] {
    auto* all = new std::unordered_map<std::string, const Entry*>;
    for (const Entry& entry : kEntries) all->emplace(entry.name, &entry);
    return all;
  }();
  const auto entry = by_name->find(s.name);
  if (entry == by_name->end()) throw std::runtime_error("there is no step " + s.name);
  return entry->second->call(x);
}

}  // namespace

Arrays run(const Function& f, Environment& e) {
  for (const Step& s : f.steps) run(s, e);
  Arrays results;
  for (int id : f.results) {
    const auto found = e.values.find(id);
    require(found != e.values.end(), "there is no such value");
    results.insert(results.end(), found->second.begin(), found->second.end());
  }
  return results;
}

void run(const Step& s, Environment& e) { e.values[s.id] = results_of(s, e); }

std::span<const StepKind> step_kinds() {
  static const std::vector<StepKind> all = [] {
    std::vector<StepKind> kinds;
    for (const Entry& e : kEntries) kinds.push_back({e.name, e.group, e.operands});
    return kinds;
  }();
  return all;
}

}  // namespace sinter::fuzz
