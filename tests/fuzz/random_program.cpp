// Draws programs. A step is tried on arrays that are never computed, and kept if it does not throw.
#include <algorithm>
#include <random>

#include "base/symbols.h"
#include "fuzz/random_graph.h"
#include "fuzz/sizes.h"
#include "fuzz/steps.h"
#include "transforms/transforms.h"

namespace sinter::fuzz {
namespace {

constexpr int kDeepest = 2;

class Drawer {
 public:
  explicit Drawer(std::uint32_t seed) : random_(seed) {
    p_.seed = seed;
    if (once_in(2))
      for (const char group : {'z', 'v', 'r', 'g', 'n', 'd', 's', 'b'})
        if (!once_in(3)) off_ += group;
  }

  Program run() {
    calls();
    leaves();
    State state;
    for (const Leaf& l : p_.leaves) {
      if (l.role == Role::state) state.arrays.push_back(array_of(l, 0));
      recent_.push_back(l.id);
    }
    const State before = state;
    Inputs inputs;
    Environment e = environment(0, state, inputs);
    steps(p_.function, e, 2 + pick(once_in(6) ? 40 : 10), 0);
    for (std::size_t i = 0; i < before.arrays.size(); ++i)
      if (!once_in(3)) update(e, static_cast<std::int64_t>(i));
    results();
    ways();
    drop_large_calls(before);
    return std::move(p_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  bool once_in(int n) { return pick(n) == 0; }
  int any() { return recent_[static_cast<std::size_t>(pick(static_cast<int>(recent_.size())))]; }
  int newest() { return recent_[recent_.size() - 1 - static_cast<std::size_t>(pick(std::min<int>(4, static_cast<int>(recent_.size()))))]; }
  Dtype dtype() { return pick(3) == 0 ? static_cast<Dtype>(pick(kDtypeCount)) : Dtype::float32; }

  // Arrays that are never computed.
  Array array_of(const Leaf& l, std::size_t call) const {
    Shape s;
    for (int d : l.dims) s.push_back(d >= 0 ? d : p_.calls[call].sizes[d == Leaf::kSizeN ? 0 : 1]);
    return zeros(s, l.dtype);
  }
  Environment environment(std::size_t call, State& state, const Inputs& inputs) const {
    Environment e{&p_, &state, &inputs, false, {}, {}};
    std::size_t states = 0;
    for (const Leaf& l : p_.leaves) e.values[l.id] = {l.role == Role::state ? state.arrays.at(states++) : array_of(l, call)};
    return e;
  }
  static bool is_small(const Arrays& values) {
    return std::all_of(values.begin(), values.end(), [](const Array& a) { return a.ndim() <= 5 && base::peek(a.size()) <= kMostElements; });
  }
  // A state may grow in each call, and other sizes make other arrays: calls from the first large one on go.
  void drop_large_calls(State state) {
    for (std::size_t i = 0; i < p_.calls.size(); ++i) {
      const Inputs inputs{{}, {}, p_.calls[i].number, p_.calls[i].fail};
      const State before = state;
      Environment e = environment(i, state, inputs);
      try {
        fuzz::run(p_.function, e);
      } catch (const std::exception&) {
        state = before;
      }
      if (std::all_of(e.values.begin(), e.values.end(), [](const auto& v) { return is_small(v.second); })) continue;
      p_.calls.resize(std::max<std::size_t>(i, 1));
      return;
    }
  }

  void calls() {
    const int count = 2 + pick(5);
    for (int i = 0; i < count; ++i) {
      Call c;
      if (i > 0) c = p_.calls.back();
      const std::vector<std::int64_t> sizes = sizes_.of(2);
      for (const std::size_t d : {0, 1})
        if (i == 0 || once_in(6)) c.sizes[d] = sizes[d];
      if (once_in(12)) c.number = pick(4);
      c.fail = once_in(10);
      c.hold = once_in(3);
      c.move = once_in(2);
      p_.calls.push_back(c);
    }
  }
  void leaf(Role role) {
    Leaf l;
    l.id = next_++;
    l.role = role;
    l.dtype = dtype();
    static const std::vector<int> kDims[] = {{-1, -2}, {-1, -2}, {-2},    {-1},        {-2, -1},   {},
                                             {3},      {-1, 3},  {1, -2}, {-1, -2, 2}, {2, 3, -2}, {4, 4}};
    do l.dims = kDims[pick(static_cast<int>(std::size(kDims)))];
    while (!is_small({array_of(l, 0)}));
    l.memory = once_in(2) ? tests::Memory::plain : tests::kMemories[pick(4)];
    l.special = once_in(3);
    if (once_in(5) && !p_.leaves.empty()) {
      const Leaf& other = p_.leaves[static_cast<std::size_t>(pick(static_cast<int>(p_.leaves.size())))];
      l.same = other.id;
      l.dtype = other.dtype;
      l.dims = other.dims;
    }
    p_.leaves.push_back(l);
  }
  void leaves() {
    for (int i = std::max(0, pick(4) - 1); i > 0; --i) leaf(Role::capture);
    for (int i = pick(3); i > 0; --i) leaf(Role::state);
    for (int i = 1 + pick(2); i > 0; --i) leaf(Role::argument);
    if (once_in(2)) leaf(Role::given);
  }
  // Code of fused kernels is what takes the time: most programs have theirs interpreted.
  void ways() {
    if (once_in(3)) {
      p_.ways = {"compiled"};
      static constexpr const char* kOthers[] = {"shapeless", "shapeless", "unfused", "unsimplified"};
      if (once_in(2)) p_.ways.emplace_back(kOthers[pick(4)]);
      if (once_in(5)) p_.ways.emplace_back("disk");
    } else {
      p_.ways = {"interpreted"};
      if (once_in(2)) p_.ways.emplace_back("shapeless_interpreted");
    }
    p_.wrap = once_in(2) ? 0 : pick(6);
  }

  // Steps for f, in an environment where its parameters have values.
  void steps(Function& f, Environment& e, int count, int depth) {
    const std::size_t outside = recent_.size();
    for (int tries = 0; count > 0 && tries < 200; ++tries) {
      Step s = step(depth, e);
      const State before = *e.state;
      bool kept = false;
      try {
        e.draw = [&](const Function& body, Environment& inner) { this->body(const_cast<Function&>(body), inner, depth + 1); };
        fuzz::run(s, e);
        const Arrays& values = e.values.at(s.id);
        kept = !values.empty() && is_small(values);
      } catch (const std::exception&) {  // now and then in the program, too
        kept = s.bodies.empty() && once_in(300);
        if (kept) e.values[s.id] = e.values.at(any());
      }
      e.draw = {};
      if (!kept) {
        e.values.erase(s.id);
        *e.state = before;
        continue;
      }
      recent_.push_back(s.id);
      f.steps.push_back(std::move(s));
      --count;
    }
    if (depth > 0) {
      f.results = {f.steps.empty() ? f.parameters.front() : f.steps.back().id};
      if (once_in(3)) f.results.push_back(recent_[outside - 1 < recent_.size() ? outside - 1 : 0]);
      recent_.resize(outside);  // what is made inside is not seen outside
    }
  }
  // The state's array of this number becomes another, or something is added to it.
  void update(Environment& e, std::int64_t number) {
    Step s{next_++, once_in(2) ? "update" : "accumulate", {newest()}, {number, pick(2)}, {}};
    const State before = *e.state;
    try {
      fuzz::run(s, e);
      if (is_small(e.values.at(s.id))) return p_.function.steps.push_back(std::move(s));
    } catch (const std::exception&) {
    }
    e.values.erase(s.id);
    *e.state = before;
  }
  // The newest value, and some of those that nothing else uses.
  void results() {
    std::vector<int> used;
    for (const Step& s : p_.function.steps) used.insert(used.end(), s.in.begin(), s.in.end());
    p_.function.results = {recent_.back()};
    for (const Step& s : p_.function.steps)
      if (std::find(used.begin(), used.end(), s.id) == used.end() && s.id != recent_.back() && once_in(2))
        p_.function.results.push_back(s.id);
    for (int i = pick(4); i > 0; --i) p_.function.results.push_back(any());
  }
  void body(Function& f, Environment& inner, int depth) {
    const std::size_t outside = recent_.size();
    for (int id : f.parameters) recent_.push_back(id);
    steps(f, inner, 1 + pick(4), depth);
    recent_.resize(outside);
  }
  // Of the group, any step.
  const StepKind& kind(char group) {
    std::vector<const StepKind*> all;
    for (const StepKind& k : step_kinds())
      if (k.group == group) all.push_back(&k);
    return *all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }
  char group(int depth) {
    static constexpr std::pair<char, int> kShares[] = {{'e', 30}, {'z', 6}, {'v', 18}, {'r', 14}, {'g', 8},
                                                       {'n', 5},  {'d', 4}, {'s', 14}, {'b', 7}};
    while (true) {
      int at = pick(106);
      for (const auto& [name, share] : kShares) {
        at -= share;
        if (at >= 0) continue;
        if ((name == 's' && depth > 0) || (name == 'b' && depth >= kDeepest) || off_.find(name) != std::string::npos) break;
        return name;
      }
    }
  }
  Step step(int depth, Environment& e) {
    Step s;
    s.id = next_++;
    const StepKind& k = kind(group(depth));
    s.name = k.name;
    for (int i = 0; i < k.operands; ++i) {
      const int other = pick(3) ? newest() : any();
      s.in.push_back(i > 0 && once_in(2) ? of_shape(e, s.in[0], other) : other);
    }
    for (int i = 0; i < 6; ++i) s.numbers.push_back(pick(12));
    if (k.group == 'r' && !once_in(3)) s.numbers[0] = reduced_;
    if (k.group == 'b') {
      s.bodies.emplace_back();
      for (int i = 0; i < 2; ++i) s.bodies[0].parameters.push_back(next_++);
    }
    return s;
  }
  // Something of the shape of `like`, if there is.
  int of_shape(Environment& e, int like, int otherwise) {
    const Shape& shape = e.values.at(like).at(0).shape();
    std::vector<int> fits;
    for (int id : recent_) {
      const Shape& s = e.values.at(id).at(0).shape();
      bool same = s.size() == shape.size();
      for (std::size_t d = 0; same && d < s.size(); ++d) same = base::peek(s[d]) == base::peek(shape[d]);
      if (same) fits.push_back(id);
    }
    return fits.empty() ? otherwise : fits[static_cast<std::size_t>(pick(static_cast<int>(fits.size())))];
  }

  std::mt19937 random_;
  Sizes sizes_{random_};
  Program p_;
  std::string off_;  // groups of steps that the program goes without: half of them have few groups, whose steps meet more often
  const int reduced_ = pick(12);  // the axes of most reductions: those along the same ones share a kernel
  int next_ = 0;
  std::vector<int> recent_;  // values that a step may use
};

graph::Graph graph_of(std::uint32_t seed, int least, int spread) {
  return random_graph(seed, least + static_cast<int>(seed % static_cast<std::uint32_t>(spread)));
}
std::vector<std::int64_t> with_derivatives(const graph::Graph& g) {
  std::vector<std::int64_t> slots;
  for (graph::Id id = 0; id < g.size(); ++id)
    if (g[id].op == ops::Op::Input && (is_floating(g[id].type.dtype) || is_complex(g[id].type.dtype))) slots.push_back(g[id].attrs[0]);
  std::sort(slots.begin(), slots.end());
  return slots;
}
std::size_t inputs_of(const graph::Graph& g) {
  std::size_t n = 0;
  for (graph::Id id = 0; id < g.size(); ++id) n += g[id].op == ops::Op::Input ? 1 : 0;
  return n;
}

// The same graph on arrays in other roles and layouts, called twice.
Program placed(Program p, std::mt19937& random) {
  for (Leaf& l : p.leaves) {
    l.memory = tests::kMemories[random() % 4];
    l.role = static_cast<Role>(random() % 4);
  }
  p.calls.resize(2);
  p.calls[0].move = true;
  return p;
}

std::vector<std::string> ways_of_graphs(std::uint32_t seed) {
  if (seed / 64 % 3 == 0) return {"compiled", "unfused", "interpreted", "reference"};
  return {"interpreted", "reference"};
}

Program draw_function(std::uint32_t seed) { return Drawer(seed).run(); }
Program draw_graph(std::uint32_t seed) {
  std::mt19937 random(seed);
  Program p = program_of(graph_of(seed, 6, 20), "paths", ways_of_graphs(seed), seed);
  return random() % 3 ? p : placed(std::move(p), random);
}
Program draw_gradient(std::uint32_t seed) {
  const graph::Graph g = graph_of(seed, 5, 16);
  return program_of(transforms::vjp(g, with_derivatives(g)), "paths", ways_of_graphs(seed), seed);
}
// Two or three transforms of a small graph, in any order: reverse over reverse, forward over reverse, batches of gradients, ...
Program draw_composition(std::uint32_t seed) {
  constexpr graph::Id kMostNodes = 600;
  std::mt19937 random(seed);
  graph::Graph g = graph_of(seed, 3, 5);
  for (std::uint32_t left = 2 + random() % 2; left > 0 && g.size() < kMostNodes; --left) switch (random() % 3) {
      case 0: g = transforms::vjp(g, with_derivatives(g)); break;
      case 1: g = transforms::jvp(g, with_derivatives(g)); break;
      default: g = transforms::vmap(g, 2, std::vector<std::int64_t>(inputs_of(g), 0), std::vector<std::int64_t>(g.outputs().size(), 0));
    }
  return program_of(std::move(g), "paths", ways_of_graphs(seed), seed);
}
Program draw_derivatives(std::uint32_t seed) { return program_of(graph_of(seed, 5, 16), "derivatives", {}, seed); }
Program draw_batches(std::uint32_t seed) { return program_of(graph_of(seed, 5, 16), "batches", {}, seed); }

struct Kind {
  const char* name;
  std::uint32_t share;
  Program (*draw)(std::uint32_t seed);
};
constexpr Kind kKinds[] = {{"function", 9, draw_function},       {"graph", 4, draw_graph},
                           {"gradient", 2, draw_gradient},       {"composition", 1, draw_composition},
                           {"derivatives", 2, draw_derivatives}, {"batches", 2, draw_batches}};

const Kind& kind(std::uint32_t seed) {
  std::uint32_t all = 0;
  for (const Kind& k : kKinds) all += k.share;
  std::uint32_t at = seed % all;
  for (const Kind& k : kKinds) {
    if (at < k.share) return k;
    at -= k.share;
  }
  return kKinds[0];
}

}  // namespace

Program draw(std::uint32_t seed) {
  std::uint32_t mixed = seed;  // one to one; seeds of a kind differ in all bits
  mixed = (mixed ^ mixed >> 16) * 0x7feb352du;
  mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
  return kind(seed).draw(mixed ^ mixed >> 16);
}
std::string kind_of(std::uint32_t seed) { return kind(seed).name; }

}  // namespace sinter::fuzz
