// Values that are wanted once, evaluated together: what a trace computes of constants. Layer: engine.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "engine/plan.h"
#include "engine/prepare.h"
#include "engine/replay.h"
#include "engine/value.h"
#include "graph/interpret.h"

namespace sinter::engine {
namespace {

using detail::State;
using graph::Id;
using ops::Op;
using ops::OpKind;

bool fits(const Value& v) {
  const OpKind kind = ops::info(v.op).kind;
  return !v.symbolic && !v.sized && v.tape == 0 && !ops::has_bodies(v.op) && kind != OpKind::Result && kind != OpKind::Alias;
}

// The lazy values under some roots, claimed while this lives. Those of the roots become ready, the others lazy again.
class Together {
 public:
  Together() = default;
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  ~Together() {
    for (const Array& a : claimed_)
      if (!is_ready(*a.get())) finish(*a.get(), State::lazy);
  }

  // False where something is of another kind, or another thread's work.
  bool add(const Array& root) {
    struct Frame {
      Array array;
      std::size_t next = 0;
    };
    std::vector<Frame> stack;
    if (!enter(root)) return false;
    if (!ids_.contains(root.get())) stack.push_back({root});
    while (!stack.empty()) {
      Frame& f = stack.back();
      const Value& v = *f.array.get();
      if (f.next < v.inputs.size()) {
        const Array in = v.inputs[f.next++];
        if (!enter(in)) return false;
        if (!ids_.contains(in.get())) stack.push_back({in});
        continue;
      }
      std::vector<Id> in;
      for (const Array& a : v.inputs) in.push_back(ids_.at(a.get()));
      ids_[&v] = graph_.add({v.op, std::move(in), v.attrs, {v.dtype, v.shape}});
      stack.pop_back();
    }
    roots_.push_back(root);
    return true;
  }

  // Made of literals alone, element by element, and of few elements: to plan it would take longer than graph::interpret, which has the same
  // bits.
  bool is_little(std::int64_t most) const {
    std::int64_t elements = 0;
    for (Id id = 0; id < graph_.size(); ++id) {
      const OpKind kind = ops::info(graph_[id].op).kind;
      const bool exact = kind == OpKind::Elementwise || kind == OpKind::View || kind == OpKind::Map || graph_[id].op == Op::Constant;
      if (!exact || (elements += graph_[id].type.shape.product()) > most) return false;
    }
    return true;
  }

  void run() {
    if (roots_.empty()) return;
    std::vector<Id> outputs;
    for (const Array& a : roots_) outputs.push_back(ids_.at(a.get()));
    graph_.set_outputs(std::move(outputs));
    std::vector<Array> results = is_little(2048) ? with_replay(graph_, [&] { return interpreted(); }) : planned();
    for (std::size_t i = 0; i < roots_.size(); ++i) {  // nothing below can fail
      Value& v = *roots_[i].get();
      if (is_ready(v) || is_literal(v)) continue;  // not claimed
      v.buffer = results[i].get()->buffer;
      v.layout = results[i].get()->layout;
      v.inputs.clear();
      finish(v, State::ready);
    }
  }

 private:
  std::vector<Array> planned() const {
    const Plan plan = with_replay(graph_, [&] { return Plan(prepare(graph_, {.name = {}, .simplify = false}), layouts_, {.once = true}); });
    return plan.run(inputs_, std::vector<int>(inputs_.size(), 0), {});
  }
  std::vector<Array> interpreted() const {
    std::vector<Array> results;
    for (graph::Tensor& t : graph::interpret(graph_, {})) {
      runtime::BufferRef buffer = runtime::allocate(t.bytes.size());
      if (!t.bytes.empty()) std::memcpy(buffer.data(), t.bytes.data(), t.bytes.size());
      results.push_back(make_ready(std::move(buffer), {0, graph::row_major(t.shape)}, t.dtype, t.shape));
    }
    return results;
  }

  // Claims it, or makes the node of what needs no work.
  bool enter(const Array& a) {
    Value& v = *a.get();
    if (ids_.contains(&v)) return true;
    if (is_literal(v)) {
      ids_[&v] = graph_.add({Op::Constant, {}, v.attrs, {v.dtype, v.shape}});
      return true;
    }
    if (is_ready(v)) {
      ids_[&v] = graph_.add({Op::Input, {}, {static_cast<std::int64_t>(inputs_.size())}, {v.dtype, v.shape}});
      inputs_.push_back(a);
      layouts_.push_back({0, v.layout.strides});
      return true;
    }
    if (!fits(v)) return false;
    claimed_.push_back(a);
    State expected = State::lazy;
    if (v.state.compare_exchange_strong(expected, State::claimed, std::memory_order_acquire)) return true;
    claimed_.pop_back();
    return false;
  }

  graph::Graph graph_;
  std::unordered_map<const Value*, Id> ids_;
  std::vector<Array> roots_, inputs_, claimed_;
  std::vector<Layout> layouts_;
};

}  // namespace

void evaluate_one(const Array& a, const char* what) {
  if (!is_ready(value_of(a, what))) {
    Together together;
    if (together.add(a) && together.is_little(64)) together.run();
  }
  evaluate({&a, 1}, what);
}

void evaluate_together(std::span<const Array> arrays, const char* what) {
  {
    Together together;
    if (std::all_of(arrays.begin(), arrays.end(), [&](const Array& a) { return together.add(a); })) together.run();
  }
  evaluate(arrays, what);
}

}  // namespace sinter::engine
