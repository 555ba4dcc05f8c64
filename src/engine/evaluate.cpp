// Regular evaluation: each lazy value becomes a plan of its own, found by its signature. Layer: engine.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/fork_mutex.h"
#include "engine/plan.h"
#include "engine/prepare.h"
#include "engine/replay.h"
#include "engine/tape.h"
#include "engine/trace.h"
#include "engine/value.h"
#include "graph/bodies.h"
#include "graph/rebind.h"

namespace sinter::engine {
namespace {

using detail::State;
using ops::Op;

// ---- plans by signature ---------------------------------------------------------------------------------------------------------------

class Signature {
 public:
  template <class T>
  void add(const T& v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void add(const Shape& s) {
    add(s.size());
    for (const Dim& d : s) add(static_cast<std::int64_t>(d));
  }
  void add(const std::string& text) {
    add(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct PlanCache {
  static constexpr std::size_t kMax = 8192;
  ForkMutex lock{LockRank::Evaluate};
  std::unordered_map<std::string, std::shared_ptr<const Plan>> plans;
};
PlanCache& cache() {
  static PlanCache* c = new PlanCache;
  return *c;
}
[[maybe_unused]] const auto& made_at_load = cache();  // see ForkMutex

// A value's operands, each once: memory, and literals, which are arguments of kernels. `which[i]` says what operand i is.
struct Operands {
  std::vector<Array> inputs, literals;
  std::vector<std::pair<bool, std::uint32_t>> which;  // (literal, index)

  explicit Operands(std::span<const Array> all) {
    for (const Array& a : all) {
      bool literal = is_literal(*a.get());
      std::vector<Array>& list = literal ? literals : inputs;
      auto it = std::find_if(list.begin(), list.end(), [&](const Array& b) { return same(literal, *a.get(), *b.get()); });
      which.push_back({literal, static_cast<std::uint32_t>(it - list.begin())});
      if (it == list.end()) list.push_back(a);
    }
  }
  // How many references to each input a value with these operands and this object hold.
  std::vector<int> references() const {
    std::vector<int> n(inputs.size(), 1);
    for (auto [literal, index] : which)
      if (!literal) ++n[index];
    return n;
  }
  std::vector<std::uint64_t> bits() const {
    std::vector<std::uint64_t> b;
    for (const Array& a : literals) b.push_back(static_cast<std::uint64_t>(a.get()->attrs[0]));
    return b;
  }

 private:
  // Literals of equal type and bits are one node of a graph.
  static bool same(bool literal, const Value& a, const Value& b) {
    return literal ? a.dtype == b.dtype && a.attrs == b.attrs && a.shape == b.shape : &a == &b;
  }
};

// Whether literals keep their place among the constants of the plan, so that a call can bring its own. Operations that decompose add
// constants to their graph: their literals are part of the signature.
bool has_own_constants(Op op) { return ops::is_elementwise(op) || op == Op::Cast || op == Op::Copy || op == Op::Arange; }

std::string signature(const Value& v, const Operands& o) {
  Signature s;
  s.add(v.op);
  s.add(v.dtype);
  s.add(v.shape);
  if (v.op != Op::Constant) {
    s.add(v.attrs.size());
    for (std::int64_t a : v.attrs) s.add(a);
  }
  for (const graph::Body& b : v.bodies) s.add(graph::print(*b));
  for (bool w : v.wanted) s.add(w);
  for (auto [literal, index] : o.which) {
    s.add(literal);
    s.add(index);
  }
  for (const Array& a : o.literals) {
    s.add(a.get()->dtype);
    s.add(a.get()->shape);
    if (!has_own_constants(v.op)) s.add(a.get()->attrs[0]);
  }
  for (const Array& a : o.inputs) {
    const Value& in = *a.get();
    s.add(in.dtype);
    s.add(in.shape);
    bool plain = graph::is_row_major(in.shape, in.layout.strides);
    s.add(plain);
    if (!plain)
      for (std::int64_t stride : in.layout.strides) s.add(stride);
  }
  return s.bytes();
}

std::shared_ptr<const Plan> make_plan(const Value& v, const Operands& o) {
  graph::Graph g;
  g.name = ops::info(v.op).name;
  std::vector<graph::Id> inputs, literals, in;
  std::vector<Layout> layouts;
  for (const Array& a : o.inputs) {
    const Value& i = *a.get();
    inputs.push_back(g.add({Op::Input, {}, {static_cast<std::int64_t>(inputs.size())}, {i.dtype, i.shape}}));
    bool plain = graph::is_row_major(i.shape, i.layout.strides);
    layouts.push_back({0, plain ? graph::row_major(i.shape) : i.layout.strides});
  }
  for (const Array& a : o.literals) literals.push_back(g.add({Op::Constant, {}, a.get()->attrs, {a.get()->dtype, a.get()->shape}}));
  for (auto [literal, index] : o.which) in.push_back((literal ? literals : inputs)[index]);
  graph::Id id = g.add({v.op, std::move(in), v.attrs, {v.dtype, v.shape}, v.bodies});
  std::vector<graph::Id> outputs;
  for (std::size_t i = 0; i < v.wanted.size(); ++i)
    if (v.wanted[i]) outputs.push_back(graph::result(g, id, i));
  if (!ops::has_bodies(v.op)) outputs = {id};
  g.set_outputs(std::move(outputs));
  return with_replay(g, [&] { return std::make_shared<const Plan>(prepare(g), layouts, PlanOptions{}); });
}

std::shared_ptr<const Plan> find_plan(const Value& v, const Operands& o) {
  std::string key = signature(v, o);
  PlanCache& c = cache();
  {
    std::lock_guard guard(c.lock);
    if (auto it = c.plans.find(key); it != c.plans.end()) return it->second;
  }
  std::shared_ptr<const Plan> plan = make_plan(v, o);
  std::lock_guard guard(c.lock);
  if (c.plans.size() >= PlanCache::kMax) c.plans.clear();
  c.plans.emplace(std::move(key), plan);
  return plan;
}

constexpr std::int64_t kMaxHostFill = 64;  // elements of a literal that are written here, without a kernel

void fill(Value& v) {
  std::size_t bytes = static_cast<std::size_t>(size_of(v.dtype)),
              n = static_cast<std::size_t>(static_cast<std::int64_t>(v.shape.product()));
  v.buffer = runtime::allocate(bytes * n);
  for (std::size_t i = 0; i < n; ++i)
    std::memcpy(static_cast<char*>(v.buffer.data()) + i * bytes, &v.attrs[v.attrs.size() == 1 ? 0 : i], bytes);
  v.layout = {0, graph::row_major(v.shape)};
}

void run_value(Value& v) {
  if (v.op == Op::Constant && (v.attrs.size() > 1 || v.shape.product() <= kMaxHostFill)) return fill(v);
  Operands o(v.inputs);
  std::shared_ptr<const Plan> plan = find_plan(v, o);
  std::vector<std::uint64_t> constants;
  if (v.op == Op::Constant)
    constants = {static_cast<std::uint64_t>(v.attrs[0])};
  else if (has_own_constants(v.op))
    constants = o.bits();
  OpenTape* tape = v.tape ? OpenTape::find(v.tape) : nullptr;
  // Operands which nobody else holds can give their memory to the result.
  std::vector<int> owned = tape ? std::vector<int>(o.inputs.size(), 0) : o.references();
  std::vector<Array> wanted(v.wanted.size());
  std::vector<Array> results = plan->run(o.inputs, owned, constants);  // may overwrite an operand: without a tape nothing below can fail
  if (ops::has_bodies(v.op)) {
    for (std::size_t i = 0, next = 0; i < wanted.size(); ++i)
      if (v.wanted[i]) wanted[i] = std::move(results[next++]);
    if (tape) tape->keep(Array(&v));
    v.results = std::move(wanted);
  } else {
    if (tape) tape->keep(Array(&v));
    Value& result = *results[0].get();
    const bool fresh = result.references.load(std::memory_order_relaxed) == 1;  // else an operand itself, not overwritten
    v.layout = fresh ? std::move(result.layout) : result.layout;
    v.buffer = result.buffer;
  }
  if (!tape) v.inputs.clear();
}

// Values that share what is there.
bool share(Value& v) {
  const Value* from = nullptr;
  if (v.op == Op::Barrier) {
    evaluate({v.inputs.data(), 1});  // a literal
    from = v.inputs[0].get();
  } else if (v.op == Op::Get) {
    from = v.inputs[0].get()->results[static_cast<std::size_t>(v.attrs[0])].get();
  } else if (ops::info(v.op).kind == ops::OpKind::Custom) {
    v.results.assign(v.inputs.begin(), v.inputs.begin() + v.attrs[0]);
    evaluate(v.results);
  } else {
    return false;
  }
  if (from) {
    v.buffer = from->buffer;
    v.layout = from->layout;
  }
  if (OpenTape* tape = v.tape ? OpenTape::find(v.tape) : nullptr)
    tape->keep(Array(&v));
  else
    v.inputs.clear();
  return true;
}

// ---- claiming and order ---------------------------------------------------------------------------------------------------------------

class Evaluation {
 public:
  explicit Evaluation(const char* what) : what_(what) {}
  ~Evaluation() {  // after an error: what was not reached is free again
    for (const Array& a : order_)
      if (a.valid()) finish(*a.get(), State::lazy);
  }

  void run(std::span<const Array> roots) {
    for (const Array& a : roots) collect(a);
    run_claimed();
    // Roots that another thread evaluates; or failed to, which leaves them to us.
    for (const Array& a : roots)
      while (!is_ready(*a.get())) {
        wait(a);
        run_claimed();
      }
  }

 private:
  // Its elements are wanted now: what the trace makes of them holds for these sizes.
  static void pin(const Value& v) {
    for (const Dim& d : v.shape) static_cast<void>(static_cast<std::int64_t>(d));
    for (const Dim& d : v.attrs) static_cast<void>(static_cast<std::int64_t>(d));
    for (const graph::Body& b : v.bodies) graph::pin(*b);
  }
  // Runs what it can, and waits only when all that is left needs values of other threads: so two threads never wait for each other.
  void run_claimed() {
    while (!order_.empty()) {
      bool stuck = true;
      for (Array& a : order_) {
        Value& v = *a.get();
        if (!inputs_ready(v)) continue;
        if (!share(v)) run_value(v);
        finish(v, State::ready);
        a = Array();
        stuck = false;
      }
      order_.erase(std::remove_if(order_.begin(), order_.end(), [](const Array& a) { return !a.valid(); }), order_.end());
      if (stuck) wait_for_others();
    }
  }
  static bool inputs_ready(const Value& v) {
    return std::all_of(v.inputs.begin(), v.inputs.end(), [](const Array& a) { return is_ready(*a.get()) || is_literal(*a.get()); });
  }

  // Claims what is lazy under `root`, operands first. What another thread has claimed is left to it.
  void collect(const Array& root) {
    struct Frame {
      Array array;
      std::size_t next = 0;
    };
    std::vector<Frame> stack;
    auto push = [&](const Array& a) {
      Value& v = value_of(a, what_);
      if (v.state.load(std::memory_order_acquire) != State::lazy) return;
      if (v.symbolic) throw_no_data(a, what_);
      if (v.sized) pin(v);
      State expected = State::lazy;
      stack.push_back({a});  // all that can fail, first
      if (!v.state.compare_exchange_strong(expected, State::claimed, std::memory_order_acquire)) stack.pop_back();
    };
    try {
      push(root);
      while (!stack.empty()) {
        Frame& f = stack.back();
        const Value& v = *f.array.get();
        if (f.next < v.inputs.size()) {
          const Array& in = v.inputs[f.next++];
          if (!is_literal(*in.get())) push(in);
        } else {
          order_.push_back(std::move(f.array));
          stack.pop_back();
        }
      }
    } catch (...) {
      for (Frame& f : stack) finish(*f.array.get(), State::lazy);
      throw;
    }
  }

  void wait_for_others() {
    for (const Array& a : order_)
      for (const Array& in : a.get()->inputs) {
        bool ours = std::any_of(order_.begin(), order_.end(), [&](const Array& b) { return b.get() == in.get(); });
        if (!ours && !is_literal(*in.get())) return wait(Array(in));
      }
  }
  // Until another thread has made it ready; or has failed: then it is claimed for us.
  void wait(Array a) {
    State s = a.get()->state.load(std::memory_order_acquire);
    if (s == State::claimed)
      a.get()->state.wait(s, std::memory_order_acquire);
    else if (s == State::lazy) {
      const auto waiting = static_cast<std::ptrdiff_t>(order_.size());
      collect(a);
      std::rotate(order_.begin(), order_.begin() + waiting, order_.end());
    }
  }

  const char* what_;
  std::vector<Array> order_;  // claimed by us, not yet ready
};

}  // namespace

void release_plans() {
  std::unordered_map<std::string, std::shared_ptr<const Plan>> dropped;  // destroyed without the lock
  std::lock_guard guard(cache().lock);
  dropped.swap(cache().plans);
}

void evaluate(std::span<const Array> arrays, const char* what) {
  bool all = true;
  for (const Array& a : arrays) all = all && is_ready(value_of(a, what));
  if (!all) Evaluation(what).run(arrays);
}

}  // namespace sinter::engine
