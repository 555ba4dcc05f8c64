// Programs: the cache of one identity, the registry of identities, and what a user can ask about them. Layer: engine.
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <ostream>
#include <unordered_set>

#include "base/check.h"
#include "base/fork_mutex.h"
#include "base/globals.h"
#include "base/log.h"
#include "engine/compiled.h"
#include "engine/kernel_store.h"
#include "engine/recent.h"
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
[[maybe_unused]] const auto& made_at_load = registry();  // see ForkMutex

ForkMutex& stripe_of(const void* p) { return registry().stripes[std::hash<const void*>()(p) / alignof(detail::Program) % 64].lock; }

std::string count(std::int64_t n, const char* one, const char* many) { return str(n, ' ', n == 1 ? one : many); }

constexpr int kWarnAfter = 8;               // retraces
constexpr std::size_t kMostTraces = 16;     // with changing sizes, for one prefix of a key
constexpr std::size_t kMostForSizes = 256;  // entries of a program that were made of them

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
  engine::drop_recent(*this);
  Registry& r = registry();
  std::lock_guard guard(r.lock);
  r.all.erase(this);
}

std::shared_ptr<Entry> Program::find(const std::string& key, std::uint64_t hash, std::span<const Array> inputs, bool count_hit) {
  std::lock_guard guard(lock_);
  auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    Entry& e = **it->second;
    if (e.key != key || !e.traced->same_arrays(inputs)) continue;
    if (it->second != order_.begin()) order_.splice(order_.begin(), order_, it->second);
    if (count_hit) {
      hits.fetch_add(1, std::memory_order_relaxed);
      e.traced->hits.fetch_add(1, std::memory_order_relaxed);
      engine::note_recent(*this, order_.front());
    }
    return order_.front();
  }
  return nullptr;
}

std::vector<std::shared_ptr<engine::Traced>> Program::traced_of(std::string_view prefix) const {
  std::lock_guard guard(lock_);
  auto it = families_.find(std::string(prefix));
  return it == families_.end() ? std::vector<std::shared_ptr<engine::Traced>>() : it->second.traced;
}

std::shared_ptr<Entry> Program::find_for_sizes(const engine::Frame& f, std::uint64_t hash, bool count_hit) {
  for (const auto& traced : traced_of(std::string_view(f.key).substr(0, f.sizes_at))) {
    if (!traced->same_arrays(f.inputs) || !traced->serves(f.key)) continue;
    std::shared_ptr<Entry> entry = engine::instantiate(traced, f, hash, totals);
    if (!entry) continue;
    insert(entry);
    if (!count_hit) return entry;
    hits.fetch_add(1, std::memory_order_relaxed);
    traced->hits.fetch_add(1, std::memory_order_relaxed);
    return entry;
  }
  return nullptr;
}

std::vector<std::size_t> Program::changing_sizes(const engine::Frame& f) {
  if (options.dynamic == Dynamic::never && !options.shapeless) return {};
  const std::vector<std::int64_t> now = engine::sizes_in(std::string_view(f.key).substr(f.sizes_at));
  std::vector<std::size_t> changing;
  std::unordered_map<std::string, Family> dropped;  // destroyed after the lock is released
  std::lock_guard guard(lock_);
  if (static_cast<std::int64_t>(families_.size()) > std::max<std::int64_t>(options.max_entries, 1)) dropped.swap(families_);
  Family& family = families_[f.key.substr(0, f.sizes_at)];
  family.sizes.resize(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    Size& s = family.sizes[i];
    const bool known = s.count > 0 && (s.seen[0] == now[i] || (s.count == 2 && s.seen[1] == now[i]));
    s.changes = !s.never && (s.changes || options.shapeless || (!known && s.count == 2));
    if (s.changes)
      changing.push_back(i);
    else if (!known && s.count < 2)
      s.seen[s.count++] = now[i];
  }
  return changing;
}

void Program::note_guards(const engine::Traced& traced) {
  std::lock_guard guard(lock_);
  const auto family = families_.find(traced.key.substr(0, traced.sizes_at));
  if (family == families_.end()) return;  // cleared meanwhile
  for (const auto& g : traced.guards)
    if (auto input = traced.symbols->fixed_input(g); input && traced.changing[*input] < family->second.sizes.size()) {
      Size& s = family->second.sizes[traced.changing[*input]];
      s.never = s.fixed >= 0 && s.fixed != g.second.low;  // two traces fixed it: every one would
      s.fixed = g.second.low;
    }
}

void Program::insert(std::shared_ptr<Entry> entry) {
  std::vector<std::shared_ptr<Entry>> dropped;  // destroyed after the lock is released
  std::vector<std::shared_ptr<engine::Traced>> dropped_traces;
  std::lock_guard guard(lock_);
  auto drop = [&](auto it) {
    engine::drop_recent(*this, **it);
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
  if (entry->traced->symbols) {
    auto& all = families_[entry->key.substr(0, entry->traced->sizes_at)].traced;
    if (std::find(all.begin(), all.end(), entry->traced) == all.end()) all.insert(all.begin(), entry->traced);
    if (all.size() > kMostTraces) {
      dropped_traces.push_back(std::move(all.back()));
      all.pop_back();
    }
    // Of the entries made of such traces the newest are kept: another is made soon.
    std::size_t made = 0;
    for (auto it = order_.begin(); it != order_.end();) {
      const auto at = it++;
      if ((*at)->traced->symbols && ++made >= kMostForSizes) drop(at);
    }
  }
  order_.push_front(std::move(entry));
  index_.emplace(order_.front()->hash, order_.begin());
  std::size_t looks = order_.size();  // a round: threads may go on using all of them
  while (static_cast<std::int64_t>(order_.size()) > std::max<std::int64_t>(options.max_entries, 1)) {
    const auto last = std::prev(order_.end());
    if (looks > 0 && engine::used_recently(*this, **last)) {  // which is not seen in their order
      --looks;
      order_.splice(std::next(order_.begin()), order_, last);
    } else {
      drop(last);
    }
  }
  // A trace whose entries are gone is kept for sizes to come, as far as the bound goes.
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(options.max_entries, 1));
  if (order_.size() + families_.size() * kMostTraces <= most) return;
  std::unordered_set<const engine::Traced*> used;
  for (const auto& e : order_) used.insert(e->traced.get());
  std::size_t alive = used.size();
  dropped_traces.reserve(dropped_traces.size() + families_.size() * kMostTraces);
  for (auto& [key, family] : families_)
    std::erase_if(family.traced, [&](std::shared_ptr<engine::Traced>& t) {
      if (used.contains(t.get()) || alive++ < most) return false;
      dropped_traces.push_back(std::move(t));
      return true;
    });
}

std::shared_ptr<Entry> Program::newest() const {
  std::lock_guard guard(lock_);
  if (std::shared_ptr<Entry> recent = engine::last_recent(*this)) return recent;
  return order_.empty() ? nullptr : order_.front();
}

void Program::count_trace() {
  std::lock_guard guard(lock_);
  ++traces_;
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
  if (base::logs(1)) base::log(1, str("trace of ", name, ": ", miss));
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

Program::Contents Program::take_entries() {
  Contents taken;
  std::lock_guard guard(lock_);
  engine::drop_recent(*this);
  taken.entries.assign(std::make_move_iterator(order_.begin()), std::make_move_iterator(order_.end()));
  for (auto& [key, family] : families_)
    taken.traced.insert(taken.traced.end(), std::make_move_iterator(family.traced.begin()), std::make_move_iterator(family.traced.end()));
  order_.clear();
  index_.clear();
  families_.clear();
  return taken;
}
Program::Contents Program::entries() const {
  Contents c;
  std::lock_guard guard(lock_);
  engine::settle_recent(*this);
  c.entries.assign(order_.begin(), order_.end());
  std::unordered_set<const engine::Traced*> seen;
  auto add = [&](const std::shared_ptr<engine::Traced>& t) {
    if (seen.insert(t.get()).second) c.traced.push_back(t);
  };
  for (const auto& e : c.entries) add(e->traced);
  for (const auto& [key, family] : families_)
    for (const auto& t : family.traced) add(t);
  return c;
}
std::string Program::last_miss() const {
  std::lock_guard guard(lock_);
  return last_miss_;
}

Stats Program::stats() const {
  Stats s;
  const Contents alive = entries();
  {
    std::lock_guard guard(lock_);
    s.traces = traces_;
    s.trace_ms = trace_ms_;
  }
  s.calls = calls.load(std::memory_order_relaxed);
  s.hits = hits.load(std::memory_order_relaxed);
  s.entries = static_cast<std::int64_t>(alive.traced.size());
  engine::KernelCost cost = totals->sum();
  for (const auto& e : alive.entries)
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
  std::vector<detail::Program::Contents> dropped;
  {
    Registry& r = registry();
    std::lock_guard guard(r.lock);
    for (detail::Program* p : r.all) dropped.push_back(p->take_entries());
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
