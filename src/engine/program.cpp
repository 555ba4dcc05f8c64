// Programs: the cache of one identity, the registry of identities, and what a user can ask about them. Layer: engine.
#include <array>
#include <cstdio>
#include <functional>
#include <ostream>
#include <unordered_set>

#include "base/check.h"
#include "base/fork_mutex.h"
#include "base/globals.h"
#include "engine/compiled.h"
#include "engine/kernel_store.h"
#include "engine/tracing.h"
#include "engine/value.h"
#include "runtime/buffer.h"

namespace sinter {
namespace {

// Programs share a fixed set of locks, so that fork() can hold all of them. A thread that holds one takes no other.
struct alignas(64) Stripe {
  ForkMutex lock{LockRank::Program};
};
struct Registry {
  ForkMutex lock{LockRank::Registry};
  std::unordered_map<std::string, std::shared_ptr<detail::Program>> by_identity;
  std::unordered_set<detail::Program*> all;
  std::array<Stripe, 64> stripes;
};
Registry& registry() {
  static Registry* r = new Registry;  // never destroyed: compiled functions may be static objects
  return *r;
}

ForkMutex& stripe_of(const void* p) { return registry().stripes[std::hash<const void*>()(p) / alignof(detail::Program) % 64].lock; }

std::string count(std::int64_t n, const char* one, const char* many) { return str(n, ' ', n == 1 ? one : many); }

constexpr int kWarnAfter = 8;  // retraces

}  // namespace

namespace engine {

Entry::~Entry() {
  if (!graph || !totals) return;
  totals->add(graph->cost());
}

}  // namespace engine

namespace detail {

Program::Program(const CompileOptions& o) : options(o), lock_(stripe_of(this)) {
  Registry& r = registry();
  std::lock_guard guard(r.lock);
  r.all.insert(this);
}
Program::~Program() {
  Registry& r = registry();
  std::lock_guard guard(r.lock);
  r.all.erase(this);
}

std::shared_ptr<Entry> Program::find(const std::string& key, std::uint64_t hash, std::span<const Array> inputs, bool count_hit) {
  std::lock_guard guard(lock_);
  auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    Entry& e = **it->second;
    if (e.key != key || !e.guards_hold(inputs)) continue;
    if (it->second != order_.begin()) order_.splice(order_.begin(), order_, it->second);
    if (count_hit) {
      ++hits_;
      e.hits.fetch_add(1, std::memory_order_relaxed);
    }
    return order_.front();
  }
  return nullptr;
}

void Program::insert(std::shared_ptr<Entry> entry) {
  std::vector<std::shared_ptr<Entry>> dropped;  // destroyed after the lock is released
  std::lock_guard guard(lock_);
  auto drop = [&](auto it) {
    auto [begin, end] = index_.equal_range((*it)->hash);
    for (auto i = begin; i != end; ++i)
      if (i->second == it) {
        index_.erase(i);
        break;
      }
    dropped.push_back(std::move(*it));
    order_.erase(it);
  };
  // Another thread may have traced the same call meanwhile; an entry whose guard failed will not be wanted soon.
  auto [begin, end] = index_.equal_range(entry->hash);
  for (auto it = begin; it != end; ++it)
    if ((*it->second)->key == entry->key) {
      drop(it->second);
      break;
    }
  order_.push_front(std::move(entry));
  index_.emplace(order_.front()->hash, order_.begin());
  while (static_cast<std::int64_t>(order_.size()) > std::max<std::int64_t>(options.max_entries, 1)) drop(std::prev(order_.end()));
}

std::shared_ptr<Entry> Program::newest() const {
  std::lock_guard guard(lock_);
  return order_.empty() ? nullptr : order_.front();
}

void Program::note_trace(const std::string& name, const std::vector<engine::Difference>& why, bool first) {
  std::string miss = first ? "first call" : "a captured array is another one";
  for (std::size_t i = 0; i < why.size(); ++i) {
    std::string line = why[i].where.empty() ? why[i].what : why[i].where + ": " + why[i].what;
    if (i == 0)
      miss = line;
    else
      miss += "; " + line;
  }
  std::string warning;
  {
    std::lock_guard guard(lock_);
    ++traces_;
    last_miss_ = miss;
    if (first) {
      if (traces_ > 1) last_miss_ = "no entry is left";
      return;
    }
    ++retraces_;
    for (const engine::Difference& d : why) {
      if (d.where.empty()) continue;  // "and 8 more"
      auto& [times, last] = changes_[d.where];
      ++times;
      last = d.what;
    }
    if (retraces_ < kWarnAfter || warned_) return;
    warned_ = true;
    const std::pair<const std::string, std::pair<int, std::string>>* most = nullptr;
    for (const auto& c : changes_)
      if (!most || c.second.first > most->second.first) most = &c;
    warning = str("sinter: warning: compiled function '", name, "' was traced again ", retraces_,
                  " times; what keeps changing: ", most ? most->first + ": " + most->second.second : miss,
                  "; keep it the same, pass changing numbers as arrays, or see explain()\n");
    changes_.clear();
  }
  std::fputs(warning.c_str(), stderr);
}

void Program::note_time(double ms) {
  std::lock_guard guard(lock_);
  trace_ms_ += ms;
}

std::vector<std::shared_ptr<Entry>> Program::take_entries() {
  std::vector<std::shared_ptr<Entry>> taken;
  std::lock_guard guard(lock_);
  taken.assign(std::make_move_iterator(order_.begin()), std::make_move_iterator(order_.end()));
  order_.clear();
  index_.clear();
  return taken;
}
std::vector<std::shared_ptr<Entry>> Program::entries() const {
  std::lock_guard guard(lock_);
  return {order_.begin(), order_.end()};
}
std::string Program::last_miss() const {
  std::lock_guard guard(lock_);
  return last_miss_;
}

Stats Program::stats() const {
  Stats s;
  std::vector<std::shared_ptr<Entry>> alive = entries();
  {
    std::lock_guard guard(lock_);
    s.hits = hits_;
    s.traces = traces_;
    s.trace_ms = trace_ms_;
  }
  s.calls = calls.load(std::memory_order_relaxed);
  s.entries = static_cast<std::int64_t>(alive.size());
  engine::KernelCost cost = totals->sum();
  for (const auto& e : alive)
    if (e->graph) cost += e->graph->cost();
  s.kernels = cost.generated;
  s.kernels_from_disk = cost.from_disk;
  s.codegen_ms = cost.milliseconds;
  return s;
}

Callee::Callee() = default;
Callee::~Callee() = default;

std::shared_ptr<Callee> own_callee(Callee* callee, std::string identity, const CompileOptions& options, std::source_location where) {
  std::shared_ptr<Callee> owner(callee);
  callee->constants = options.captures == Captures::constant;
  std::string name = options.name;
  if (name.empty()) {
    std::string file = where.file_name();
    name = file.substr(file.rfind('/') + 1) + ':' + std::to_string(where.line());
  }
  callee->name = engine::intern_name(name);
  if (identity.empty()) {
    callee->program = std::make_shared<Program>(options);
    return owner;
  }
  // Options that change what an entry is are part of the identity; the name is not.
  identity += static_cast<char>('0' + options.shapeless + 2 * options.fast_math + 4 * (options.dynamic == Dynamic::never) +
                                8 * callee->constants + 16 * options.check_purity);
  identity.append(reinterpret_cast<const char*>(&options.max_entries), sizeof options.max_entries);
  auto fresh = std::make_shared<Program>(options);  // before the lock: its constructor takes it
  Registry& r = registry();
  std::lock_guard guard(r.lock);
  callee->program = r.by_identity.try_emplace(std::move(identity), fresh).first->second;
  return owner;
}

void throw_empty_function() {
  throw Error("compile: the function is empty; got a null pointer or an empty std::function; pass a callable");
}

Stats stats_of(const Callee& callee) { return callee.program->stats(); }
void clear_callee(const Callee& callee) { callee.program->take_entries(); }
std::string name_of(const Callee& callee) { return engine::name_at(callee.name); }

std::ostream& print_callee(std::ostream& out, const Callee& callee) {
  Stats s = callee.program->stats();
  out << "compiled " << name_of(callee) << ": " << count(s.entries, "entry", "entries") << ", " << count(s.traces, "trace", "traces")
      << ", " << count(s.calls, "call", "calls") << ", " << count(s.hits, "hit", "hits") << ", " << count(s.kernels, "kernel", "kernels");
  if (s.kernels_from_disk > 0) out << ", " << s.kernels_from_disk << " from disk";
  return out;
}

}  // namespace detail

void clear_cache() {
  std::vector<std::shared_ptr<engine::Entry>> dropped;
  {
    Registry& r = registry();
    std::lock_guard guard(r.lock);
    for (detail::Program* p : r.all)
      for (auto& e : p->take_entries()) dropped.push_back(std::move(e));
  }
  dropped.clear();
  engine::release_plans();
  engine::release_kernels();
  runtime::release_cache();
}

void set_compile_mode(CompileMode mode) { globals::compile_mode.store(static_cast<std::uint8_t>(mode)); }
CompileMode compile_mode() { return static_cast<CompileMode>(globals::compile_mode.load()); }
void disable_compile() { set_compile_mode(CompileMode::disabled); }
void enable_compile() { set_compile_mode(CompileMode::enabled); }

}  // namespace sinter
