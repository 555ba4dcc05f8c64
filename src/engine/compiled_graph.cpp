#include "engine/compiled_graph.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "base/fork_mutex.h"
#include "base/knobs.h"
#include "base/symbols.h"
#include "engine/capture.h"
#include "engine/plan.h"
#include "engine/plan_file.h"
#include "engine/prepare.h"
#include "engine/replay.h"
#include "engine/trace.h"
#include "engine/value.h"

namespace sinter::engine {
namespace {

using detail::State;
using graph::Graph;
using graph::Id;
using ops::Op;

constexpr std::size_t kMaxPlans = 64;  // layouts of inputs that one entry keeps plans for

// From values to a graph: the only bridge.
class Capture {
 public:
  // `fold`: the passes will.
  Capture(std::span<const Array> placeholders, bool fold) : fold_(fold) {
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      const Value& v = *placeholders[i].get();
      ids_[&v] = graph.add({Op::Input, {}, {static_cast<std::int64_t>(i)}, {v.dtype, v.shape}});
    }
    inputs_ = placeholders.size();
  }

  Id capture(const Array& root) {
    return engine::capture(graph, ids_, root, [this](const Array& a) { return known(a); });
  }

  Graph graph;
  std::vector<Array> constants;  // bound after the inputs; may be lazy

 private:
  // Whether the value has a node; gives one to what needs none of its operands.
  bool known(const Array& a) {
    const Value& v = *a.get();
    if (ids_.contains(&v)) return true;
    if (ops::has_bodies(v.op)) return false;
    if (v.symbolic) {
      if (v.op == Op::Input || v.trace != current_trace()) check_operand(a, "return");
      return false;
    }
    if (v.op == Op::Constant && v.attrs.size() == 1) {
      ids_[&v] = graph.add({Op::Constant, {}, v.attrs, {v.dtype, v.shape}});
      return true;
    }
    const bool lazy = v.state.load(std::memory_order_acquire) == State::lazy;
    // One of several results of what was evaluated for another of them, and has no operands any more.
    // Operands of another trace's value may go while they are looked at.
    const bool is_there = lazy && v.op == Op::Get && (v.sized || is_ours(v)) && is_ready(*v.inputs[0].get());
    if (v.sized && lazy && !is_there) return false;
    const bool ours = is_ours(v) && !is_there;
    if (ours && v.shape.product() * size_of(v.dtype) > kMaxFoldedBytes) return false;  // part of each call, inside its fusion
    // By the passes, without a kernel.
    if (ours && fold_ && folds(v.op) && one_number(v)) return false;
    if (ours && fold_ && v.op == Op::Broadcast) return false;  // what it repeats is kept once
    const bool one = v.shape.product() == 1;
    if (one || !ours) evaluate_one(a, "compile");
    if (one) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, static_cast<const char*>(v.buffer.data()) + v.layout.offset * size_of(v.dtype),
                  static_cast<std::size_t>(size_of(v.dtype)));
      ids_[&v] = graph.add({Op::Constant, {}, {static_cast<std::int64_t>(bits)}, {v.dtype, v.shape}});
    } else {
      ids_[&v] = graph.add({Op::Input, {}, {static_cast<std::int64_t>(inputs_ + constants.size())}, {v.dtype, v.shape}});
      constants.push_back(a);
    }
    return true;
  }

  static bool is_ours(const Value& v) { return v.state.load(std::memory_order_acquire) == State::lazy && v.trace == current_trace(); }

  static bool folds(Op op) { return ops::is_elementwise(op) || op == Op::Cast || ops::info(op).kind == ops::OpKind::View; }

  // Whether all elements are one number, known when the operands are: what has one element, and what passes::fold makes of such.
  bool one_number(const Value& root) {
    std::vector<const Value*> stack{&root};
    while (!stack.empty()) {
      const Value& v = *stack.back();
      bool is = false, open = false;
      if (is_ours(v) && folds(v.op)) {
        is = true;
        for (const Array& in : v.inputs) {
          const auto it = one_number_.find(in.get());
          if (it == one_number_.end()) open = true, stack.push_back(in.get());
          is = is && it != one_number_.end() && it->second;
        }
      } else if (!v.symbolic) {
        is = v.op == Op::Constant ? v.attrs.size() == 1 : v.shape.product() == 1;
      }
      if (open) continue;
      one_number_[&v] = is;
      stack.pop_back();
    }
    return one_number_[&root];
  }

  const bool fold_;
  std::size_t inputs_ = 0;
  NodeOf ids_;
  std::unordered_map<const Value*, bool> one_number_;
};

// Graphs share a fixed set of locks, which fork() can take.
ForkMutex& stripe_of(const void* p) {
  static std::array<ForkMutex*, 64>* stripes = [] {
    auto* made = new std::array<ForkMutex*, 64>;
    for (ForkMutex*& m : *made) m = new ForkMutex(LockRank::Plan);
    return made;
  }();
  return *(*stripes)[std::hash<const void*>()(p) / 64 % 64];
}
[[maybe_unused]] const auto& made_at_load = stripe_of(nullptr);  // see ForkMutex

using Constants = std::shared_ptr<const std::vector<Array>>;

// A plan for row-major inputs that was found on disk, or the key to keep it by.
struct Kept {
  std::string key;
  std::shared_ptr<const Plan> plan;
};

class Compiled final : public CompiledGraph {
 public:
  // `sizes`: what to rebind the captured graph to; none: it is as it was captured. No `prepared`: made when it is needed, of that graph.
  Compiled(std::shared_ptr<const Graph> captured, std::vector<std::int64_t> sizes, std::shared_ptr<const Prepared> prepared, Kept kept,
           Constants constants, const GraphOptions& options, std::shared_ptr<base::Symbols> symbols, ForkMutex& symbols_lock)
      : options_(options),
        captured_(std::move(captured)),
        sizes_(std::move(sizes)),
        plan_key_(std::move(kept.key)),
        prepared_(std::move(prepared)),
        plain_(std::move(kept.plan)),
        plain_ready_(plain_.get()),
        constants_(std::move(constants)),
        symbols_(std::move(symbols)),
        symbols_lock_(symbols_lock) {
    if (plain_) cost_ += plain_->cost();
  }

  std::vector<Array> replay(std::span<const Array> inputs) const override {
    std::vector<Array> all(inputs.begin(), inputs.end());
    all.insert(all.end(), constants_->begin(), constants_->end());
    return engine::replay(symbols_ ? graph::fixed(captured()) : captured(), all);
  }

  std::vector<Array> run(std::span<const Array> inputs, std::span<const int> owned) override {
    evaluate(inputs, "compiled call");
    const Inputs all(inputs, *constants_);
    if (const Plan* plan = plain_ready_.load(std::memory_order_acquire); plan && all_plain(all)) return plan->run(all, owned, {});
    return plan_for(all)->run(all, owned, {});
  }

  KernelCost cost() const override {
    std::lock_guard guard(lock_);
    return cost_;
  }
  std::string traced_text() const override { return graph::print(captured()); }
  std::span<const Array> constants() const override { return *constants_; }
  std::string graph_text() const override {
    const std::shared_ptr<const Prepared> p = prepared();
    std::lock_guard guard(symbols_lock_);
    return graph::print(p->graph, symbols_.get());
  }
  std::string kernel_text(std::span<const Array> inputs) override {
    evaluate(inputs, "kernels");
    return plan_for({inputs, *constants_})->text();
  }
  std::string explain() const override {
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<const Prepared> p = prepared();
    {
      std::lock_guard guard(lock_);
      if (!plain_ && prepared_for_any_) p = prepared_for_any_;
      plan = plain_ ? plain_ : plans_.empty() ? nullptr : plans_.begin()->second;
    }
    return explain_groups(*p) + (plan ? plan->explain() : "");
  }

 private:
  // For its sizes.
  Graph captured() const {
    if (sizes_.empty()) return *captured_;
    base::Symbols::Numbers numbers;
    {
      std::lock_guard guard(symbols_lock_);
      numbers = *symbols_->evaluate(sizes_);
    }
    return graph::rebind(*captured_, *symbols_, numbers);
  }
  std::shared_ptr<const Prepared> prepared() const {
    {
      std::lock_guard guard(lock_);
      if (prepared_) return prepared_;
    }
    auto made = std::make_shared<const Prepared>(with_replay(*captured_, [&] { return prepare(*captured_, options_); }));
    std::lock_guard guard(lock_);
    if (!prepared_) prepared_ = std::move(made);
    return prepared_;
  }
  // What passes make of the graph where no input need be row-major.
  std::shared_ptr<const Prepared> prepared_for_any() {
    {
      std::lock_guard guard(lock_);
      if (prepared_for_any_) return prepared_for_any_;
    }
    GraphOptions options = options_;
    options.plain = false;
    auto made = std::make_shared<const Prepared>(prepare(captured(), options));
    std::lock_guard guard(lock_);
    return prepared_for_any_ = std::move(made);
  }
  static bool all_plain(const Inputs& inputs) {
    const auto plain = [](const Array& a) { return graph::is_row_major(a.get()->shape, a.get()->layout.strides); };
    return std::ranges::all_of(inputs.given, plain) && std::ranges::all_of(inputs.constants, plain);
  }
  std::shared_ptr<const Plan> plan_for(const Inputs& inputs) {
    const bool plain = all_plain(inputs);
    std::string key;
    for (std::size_t i = 0; i < inputs.size() && !plain; ++i)
      for (std::int64_t s : inputs[i].get()->layout.strides) key.append(reinterpret_cast<const char*>(&s), sizeof s);
    auto made = [&]() -> std::shared_ptr<const Plan> {
      if (plain) return plain_;
      auto it = plans_.find(key);
      return it == plans_.end() ? nullptr : it->second;
    };
    {
      std::lock_guard guard(lock_);
      if (auto plan = made()) return plan;
    }
    std::shared_ptr<const Prepared> p = prepared();
    if (!plain && p->plain) p = prepared_for_any();
    std::lock_guard guard(lock_);
    if (auto plan = made()) return plan;  // by another thread meanwhile
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value& v = *inputs[i].get();
      layouts.push_back({0, plain ? graph::row_major(v.shape) : v.layout.strides});
    }
    auto plan =
        with_replay(p->graph, [&] { return std::make_shared<const Plan>(*p, layouts, PlanOptions{.fast_math = options_.fast_math}); });
    cost_ += plan->cost();
    if (plain) {
      if (!plan_key_.empty()) keep_plan(plan_key_, p->measured ? nullptr : plan.get());
      plan_key_ = {};
      plain_ready_.store(plan.get(), std::memory_order_release);
      return plain_ = plan;
    }
    if (plans_.size() >= kMaxPlans) plans_.clear();
    return plans_[key] = plan;
  }

  GraphOptions options_;
  const std::shared_ptr<const Graph> captured_;
  const std::vector<std::int64_t> sizes_;
  std::string plan_key_;  // empty: the plan is not to be kept
  mutable std::shared_ptr<const Prepared> prepared_;
  std::shared_ptr<const Plan> plain_;  // for row-major inputs; stays as long as this
  std::atomic<const Plan*> plain_ready_;
  const Constants constants_;
  const std::shared_ptr<base::Symbols> symbols_;  // for texts
  ForkMutex& symbols_lock_;
  ForkMutex& lock_ = stripe_of(this);  // held while a plan is made, not while it runs
  std::shared_ptr<const Prepared> prepared_for_any_;
  std::unordered_map<std::string, std::shared_ptr<const Plan>> plans_;
  KernelCost cost_;
};

// Passes run once for the sizes for which they would do the same.
class Template final : public GraphTemplate {
 public:
  Template(Capture&& c, const GraphOptions& options, std::shared_ptr<base::Symbols> symbols)
      : options_(options),
        captured_(std::make_shared<const Graph>(std::move(c.graph))),
        constants_(std::make_shared<const std::vector<Array>>(std::move(c.constants))),
        symbols_(std::move(symbols)) {}

  bool hold(const base::Guards& guards, std::span<const std::int64_t> sizes) const override {
    std::lock_guard guard(lock_);
    const auto numbers = symbols_->evaluate(sizes);
    return numbers && base::Symbols::hold(guards, *numbers);
  }

  std::unique_ptr<CompiledGraph> instantiate(std::span<const std::int64_t> sizes) override {
    if (!symbols_) {
      Kept kept{plan_key(*captured_, options_).value_or(""), nullptr};
      bool known = base::knobs().cache_mb > 0;  // its kernels may be on disk
      if (!kept.key.empty()) {
        FoundPlan found = with_replay(*captured_, [&] { return find_plan(kept.key, options_); });
        known = found.known, kept.plan = std::move(found.plan);
        if (known && !kept.plan) kept.key.clear();  // said before
      }
      if (!known) expect_kernels();  // passes and planning take as long as to open their generator
      std::shared_ptr<const Prepared> p;
      if (!kept.plan) p = std::make_shared<const Prepared>(prepared(*captured_));
      return make({}, std::move(p), std::move(kept));
    }
    std::lock_guard guard(lock_);
    std::optional<base::Symbols::Numbers> numbers;
    if (!sizes.empty()) {
      numbers = symbols_->evaluate(sizes);
      if (!numbers || !graph::fits(*captured_, *symbols_, *numbers)) return nullptr;
      for (const Variant& v : variants_)
        if (base::Symbols::hold(v.guards, *numbers)) {
          auto bound = std::make_shared<const Prepared>(rebind(*v.prepared, *symbols_, *numbers));
          if (base::knobs().verify >= 1) graph::verify(bound->graph);
          return make(sizes, std::move(bound));
        }
    }
    Variant v;
    {
      const Graph g = numbers ? graph::rebind(*captured_, *symbols_, *numbers) : *captured_;
      base::OpenSymbols open(*symbols_, v.guards);
      v.prepared = std::make_shared<const Prepared>(prepared(g));
    }
    if (variants_.size() >= kMaxVariants) variants_.erase(variants_.begin());
    variants_.push_back(v);
    return make(sizes, v.prepared);
  }

 private:
  static constexpr std::size_t kMaxVariants = 8;
  struct Variant {
    base::Guards guards;
    std::shared_ptr<const Prepared> prepared;
  };
  Prepared prepared(const Graph& g) const {
    return with_replay(g, [&] { return prepare(g, options_); });
  }
  std::unique_ptr<CompiledGraph> make(std::span<const std::int64_t> sizes, std::shared_ptr<const Prepared> p, Kept kept = {}) const {
    return std::make_unique<Compiled>(captured_, std::vector<std::int64_t>(sizes.begin(), sizes.end()), std::move(p), std::move(kept),
                                      constants_, options_, symbols_, lock_);
  }

  const GraphOptions options_;
  const std::shared_ptr<const Graph> captured_;
  const Constants constants_;
  const std::shared_ptr<base::Symbols> symbols_;
  ForkMutex& lock_ = stripe_of(this);
  std::vector<Variant> variants_;
};

}  // namespace

std::unique_ptr<GraphTemplate> capture_graph(std::span<const Array> placeholders, std::span<const Array> outputs,
                                             const GraphOptions& options, std::shared_ptr<base::Symbols> symbols) {
  Capture c(placeholders, options.simplify);
  c.graph.name = options.name;
  std::vector<Id> ids;
  for (const Array& a : outputs) ids.push_back(c.capture(a));
  evaluate_together(c.constants, "compile");
  c.graph.set_outputs(std::move(ids));
  return std::make_unique<Template>(std::move(c), options, std::move(symbols));
}

}  // namespace sinter::engine
