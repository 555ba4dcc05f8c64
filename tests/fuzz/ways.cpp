#include "fuzz/ways.h"

#include <functional>
#include <memory>
#include <random>

#include "engine/generator.h"
#include "engine/kernel_store.h"
#include "fuzz/steps.h"
#include "support/derivatives.h"

namespace sinter::fuzz {
namespace {

using tests::Tensor;

struct Callable {
  std::shared_ptr<const Program> program;
  Arrays captures;
  bool reference = false;
  const Arrays* reached = nullptr;  // captures that are elsewhere

  Arrays operator()(State& state, const Inputs& inputs, Arrays given) const {
    Environment e{program.get(), &state, &inputs, reference, {}, {}};
    std::size_t next[4] = {};
    std::size_t arguments = 0;
    for (const Leaf& l : program->leaves) {
      const std::size_t at = next[static_cast<int>(l.role)]++;
      Arrays& value = e.values[l.id];
      switch (l.role) {
        case Role::argument:  // by turns in a list and in a map
          value = {arguments % 2 == 0 ? inputs.list.at(arguments / 2) : inputs.named.at(std::to_string(l.id))};
          ++arguments;
          break;
        case Role::given: value = {given.at(at)}; break;
        case Role::state: value = {state.arrays.at(at)}; break;
        case Role::capture: value = {(reached ? *reached : captures).at(at)}; break;
      }
    }
    given.clear();
    return run(program->function, e);
  }
};

Array array_of(const Program& p, const Leaf& l, std::size_t call) {
  Shape shape;
  for (int d : l.dims) shape.push_back(d >= 0 ? d : p.calls[call].sizes[d == Leaf::kSizeN ? 0 : 1]);
  const auto seed = static_cast<std::uint32_t>(p.seed * 2654435761u + static_cast<std::uint32_t>(l.id) * 977u + call);
  if (l.special) {
    graph::Graph one;
    one.add({ops::Op::Input, {}, {0}, {l.dtype, shape}});
    return tests::place(graph::sample_inputs(one, seed)[0], l.memory);
  }
  std::mt19937 random(seed);
  return tests::place(tests::random_tensor({l.dtype, shape}, random), l.memory);
}

// Whether the reference rounds in another order: then it is not comparable in every bit.
bool is_rounded(const graph::Graph& g) {
  for (graph::Id id = 0; id < g.size(); ++id) {
    const ops::Op op = g[id].op;
    for (const graph::Body& b : g[id].bodies)
      if (is_rounded(*b)) return true;
    if ((ops::info(op).kind == ops::OpKind::Call && op != ops::Op::ArgSort) ||
        ((op == ops::Op::Sum || op == ops::Op::Prod) && !is_integer(g[id].type.dtype)))
      return true;
  }
  return false;
}

using Caller = std::function<Arrays(State&, const Inputs&, Arrays&&)>;
struct Target {
  Caller call;
  std::function<Stats()> stats;  // of a compiled function
};

template <class F>
Target compiled_target(const F& f, const CompileOptions& options) {
  auto c = std::make_shared<decltype(compile(f, options))>(compile(f, options));
  return {[c](State& s, const Inputs& in, Arrays&& given) { return (*c)(s, in, std::move(given)); }, [c] { return c->stats(); }};
}
// The callable, compiled; `wrap` says how it holds its captures, and how it reaches its state.
Target compile_wrapped(const Callable& f, int wrap, const CompileOptions& options, State& state) {
  switch (wrap) {
    case 1: return compiled_target(std::function<Arrays(State&, const Inputs&, Arrays)>(f), options);
    case 2: return compiled_target([f](State& s, const Inputs& in, Arrays given) { return f(s, in, std::move(given)); }, options);
    case 3: {  // state by reference
      auto by_reference = [f, &state](const Inputs& in, Arrays given) { return f(state, in, std::move(given)); };
      auto c = std::make_shared<decltype(compile(by_reference, options, captured(state)))>(compile(by_reference, options, captured(state)));
      return {[c](State&, const Inputs& in, Arrays&& given) { return (*c)(in, std::move(given)); }, [c] { return c->stats(); }};
    }
    case 4: return compiled_target(compile(f), options);
    case 5: {  // captures by reference
      CompileOptions constants = options;
      constants.captures = Captures::constant;
      return compiled_target(Callable{f.program, {}, false, &f.captures}, constants);
    }
    default: return compiled_target(f, options);
  }
}

struct Outcome {
  std::string error;
  bool ran_out = false;  // of memory: what follows depends on how much a way needs
  std::vector<Tensor> results, state, generator;
  std::size_t list = 0;
  int count = 0;
  std::string overwritten;  // what should have stayed as it was
};

/// Arrays that must keep their elements.
struct Watched {
  std::string what;
  Array array;
  Tensor before;
};

class Runner {
 public:
  Runner(const Program& p, std::string way)
      : p_(p), way_(std::move(way)), f_{std::make_shared<Program>(p), {}, way_ == "reference", nullptr} {
    for (const Leaf& l : p.leaves) {
      if (l.role != Role::capture && l.role != Role::state) continue;
      const auto same = arrays_.find(l.same);
      const Array a = same == arrays_.end() ? array_of(p, l, 0) : same->second;
      arrays_[l.id] = a;
      (l.role == Role::capture ? f_.captures : state_.arrays).push_back(a);
    }
    for (const Leaf& l : p.leaves)
      if (l.role == Role::state) arrays_.erase(l.id);
  }

  std::vector<Outcome> all() {
    random::seed(p_.seed);
    std::vector<Outcome> outcomes;
    if (way_ == "regular" || way_ == "reference") {
      const Target regular{[this](State& s, const Inputs& in, Arrays&& given) { return f_(s, in, std::move(given)); }, {}};
      for (std::size_t i = 0; i < p_.calls.size() && !has_grown(); ++i) outcomes.push_back(one(regular, i, true));
      return outcomes;
    }
    if (way_ == "disk") clear_cache();
    set_compile_mode(way_ == "unfused" ? CompileMode::no_fuse : way_ == "unsimplified" ? CompileMode::no_simplify : CompileMode::enabled);
    const Target target = compile_wrapped(f_, p_.wrap, {.shapeless = way_.starts_with("shapeless"), .name = "fuzzed"}, state_);
    for (std::size_t i = 0; i < p_.calls.size() && !has_grown(); ++i) {
      outcomes.push_back(one(target, i, false));
      if (way_ == "disk") clear_cache();
    }
    set_compile_mode(CompileMode::enabled);
    const Stats s = target.stats();
    Counters& c = counters();
    c.compiled_calls += s.calls, c.hits += s.hits, c.traces += s.traces, c.kernels += s.kernels, c.from_disk += s.kernels_from_disk;
    generated_ = s.kernels;
    return outcomes;
  }
  std::int64_t generated() const { return generated_; }  // kernels, for the compiled function

 private:
  // A state that each call makes six times as large ends the program, not the machine.
  bool has_grown() const {
    return std::any_of(state_.arrays.begin(), state_.arrays.end(), [](const Array& a) { return a.size() > 1'000'000; });
  }
  Outcome one(const Target& target, std::size_t index, bool regular) {
    const Call& call = p_.calls[index];
    Inputs inputs{{}, {}, call.number, call.fail};
    Arrays given;
    std::map<int, Array> now = arrays_;  // by leaf
    std::size_t states = 0, arguments = 0;
    for (const Leaf& l : p_.leaves)
      if (l.role == Role::state && states < state_.arrays.size()) now[l.id] = state_.arrays[states++];
    std::vector<Watched> watched;
    for (const Leaf& l : p_.leaves) {
      if (l.role != Role::argument && l.role != Role::given) continue;
      const auto same = now.find(l.same);
      const Array a = same == now.end() || index % 2 == 1 ? array_of(p_, l, index) : same->second;
      now[l.id] = a;
      if (l.role == Role::given)
        given.push_back(a);
      else if (arguments++ % 2 == 0)
        inputs.list.push_back(a);
      else
        inputs.named[std::to_string(l.id)] = a;
      if (l.role == Role::argument || !call.move) watched.push_back({str("%", l.id), a, tests::read(a)});
    }
    now.clear();
    for (std::size_t i = 0; i < f_.captures.size(); ++i)
      watched.push_back({str("capture ", i), f_.captures[i], tests::read(f_.captures[i])});
    if (call.hold)
      for (const Array& a : state_.arrays) watched.push_back({"an array of the state that the caller holds", a, tests::read(a)});

    Outcome o;
    const State before = regular ? state_ : State{};
    const Array generator = regular ? engine::generator_state() : Array();
    engine::interpret_kernels(way_.ends_with("interpreted"));
    try {
      Arrays results;
      if (call.move)
        results = target.call(state_, inputs, std::move(given));
      else
        results = target.call(state_, inputs, Arrays(given));
      engine::interpret_kernels(false);
      o.results = tests::read(results);
      if (regular) o.state = tests::read(state_.arrays);
    } catch (const InternalError& e) {
      o.error = str("internal error: ", e.what());
      if (regular) throw;  // a fault without any compiling
    } catch (const OutOfMemory& e) {
      o.error = e.what();
      o.ran_out = true;
    } catch (const std::exception& e) {
      o.error = e.what();
    }
    engine::interpret_kernels(false);
    if (regular && !o.error.empty()) {
      state_ = before;
      engine::generator_state() = generator;
    }
    o.state = tests::read(state_.arrays);
    for (Tensor& t : tests::read(state_.list)) o.state.push_back(std::move(t));
    o.list = state_.list.size();
    o.count = state_.count;
    o.generator = tests::read(Arrays{engine::generator_state()});
    for (const Watched& w : watched)
      if (std::string d = graph::difference({&w.before, 1}, {tests::read(Arrays{w.array}).data(), 1}); !d.empty())
        o.overwritten = str(w.what, " was overwritten: ", d);
    return o;
  }

  const Program& p_;
  const std::string way_;
  std::int64_t generated_ = 0;
  Callable f_;
  State state_;
  std::map<int, Array> arrays_;
};

std::string difference(const Outcome& expected, const Outcome& got) {
  if (expected.error != got.error) return str("\"", expected.error, "\" against \"", got.error, "\"");
  if (!got.overwritten.empty()) return got.overwritten;
  if (std::string d = graph::difference(expected.results, got.results); !d.empty()) return d;
  if (expected.list != got.list) return str("lists of ", expected.list, " and ", got.list, " in the state");
  if (std::string d = graph::difference(expected.state, got.state); !d.empty()) return "state: " + d;
  if (expected.count != got.count) return str("counts ", expected.count, " and ", got.count, " in the state");
  if (std::string d = graph::difference(expected.generator, got.generator); !d.empty()) return "generator: " + d;
  return "";
}

}  // namespace

Counters& counters() {
  static Counters c;
  return c;
}

std::string difference_of_ways(const Program& p) {
  const std::vector<Outcome> regular = Runner(p, "regular").all();
  for (std::size_t i = 0; i < regular.size(); ++i) {
    const Outcome& o = regular[i];
    if (!o.overwritten.empty()) return str("regular call ", i, ": ", o.overwritten);
    ++counters().calls;
    counters().threw += o.error.empty() ? 0 : 1;
    for (const auto* tensors : {&o.results, &o.state})
      for (const Tensor& t : *tensors) counters().elements += t.shape.product();
  }
  for (const std::string& way : p.ways) {
    if (way == "reference" && std::any_of(p.graphs.begin(), p.graphs.end(), is_rounded)) continue;
    // Traces after clear_cache() know less of sizes that change: they may need kernels that no other way needs. The second time all are
    // there.
    if (way == "disk") Runner(p, way).all();
    Runner runner(p, way);
    const std::vector<Outcome> got = runner.all();
    const std::size_t calls = std::min(regular.size(), got.size());
    for (std::size_t i = 0; i < calls && !regular[i].ran_out && !got[i].ran_out; ++i)
      if (std::string d = difference(regular[i], got[i]); !d.empty()) return str("regular and ", way, ", call ", i, ": ", d);
    if (way == "disk" && runner.generated() > 0) return str(runner.generated(), " kernels were generated that are on disk");
  }
  return "";
}

std::string wrong(const Program& p) {
  try {
    if (p.check == "derivatives") return wrong_derivatives(p);
    if (p.check == "batches") return wrong_batches(p);
    if (p.check != "paths") return "there is no check " + p.check;
    return difference_of_ways(p);
  } catch (const std::exception& e) {
    return str("exception: ", e.what());
  }
}

}  // namespace sinter::fuzz
