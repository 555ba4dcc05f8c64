// A call of a compiled function: read the arguments, find or make the entry, run it, commit. Layer: engine.
//
// The strong guarantee: everything that can fail (tracing, building the result and the states whose structure changes, running) comes before
// commit(), which only assigns pointers and moves.
#include "engine/compiled.h"

#include <chrono>
#include <cstring>

#include "base/check.h"
#include "base/globals.h"
#include "engine/generator.h"
#include "engine/trace.h"
#include "engine/tracing.h"
#include "engine/value.h"

namespace sinter::engine {

void Fill::take(void* p, std::size_t n) {
  std::memcpy(p, structure_.data(), n);
  structure_.remove_prefix(n);
}
void Fill::array(Array& a) {
  char set;
  take(&set, 1);
  a = set == 'A' && !arrays_.empty() ? arrays_[at_++] : Array();
}
void Fill::number(void* p, std::size_t bytes, Leaf) { take(p, bytes); }
void Fill::text(std::string& s) {
  s.resize(length(0));
  take(s.data(), s.size());
}
void Fill::shape(Shape& s) {
  std::size_t n = length(0);
  s = Shape();
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t v;
    take(&v, sizeof v);
    s.push_back(Dim(v));
  }
}
std::size_t Fill::length(std::size_t) {
  std::size_t n;
  take(&n, sizeof n);
  return n;
}

void Read::array(Array& a) {
  structure_.push_back(a.valid() ? 'A' : 'u');
  if (arrays_ && a.valid()) arrays_->push_back(a);
  if (targets_) targets_->push_back(&a);
}
void Read::number(void* p, std::size_t bytes, Leaf) { structure_.append(static_cast<const char*>(p), bytes); }
void Read::text(std::string& s) {
  length(s.size());
  structure_ += s;
}
void Read::shape(Shape& s) {
  length(s.size());
  for (const Dim& d : s) {
    std::int64_t v = d;
    number(&v, sizeof v, Leaf::Integer);
  }
}
std::size_t Read::length(std::size_t n) {
  structure_.append(reinterpret_cast<const char*>(&n), sizeof n);
  return n;
}

void Frame::clear() {
  key.clear();
  inputs.clear();
  targets.clear();
  results.clear();
  rebuilt.clear();
  slots.clear();
  captured.clear();
  aliases.clear();
}

namespace {

// ---- frames -----------------------------------------------------------------------------------------------------------------------

thread_local constinit Frame* spare = nullptr;
thread_local constinit bool thread_ends = false;
struct FreeSpare {
  ~FreeSpare() {
    thread_ends = true;
    delete std::exchange(spare, nullptr);
  }
};

class Lease {
 public:
  Lease() : frame_(std::exchange(spare, nullptr)) {
    if (!frame_) [[unlikely]] {
      thread_local FreeSpare at_thread_end;
      frame_ = new Frame;
    }
  }
  ~Lease() {
    frame_->clear();  // may run deleters of the user's, which may call compiled functions
    if (spare || thread_ends) delete frame_;
    else spare = frame_;
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Frame& operator*() const { return *frame_; }

 private:
  Frame* frame_;
};

std::uint64_t hash_bytes(const std::string& s) {
  auto mix = [](std::uint64_t a, std::uint64_t b) {
    unsigned __int128 p = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(p) ^ static_cast<std::uint64_t>(p >> 64);
  };
  const char* p = s.data();
  std::size_t n = s.size();
  std::uint64_t h = n * 0x9e3779b97f4a7c15ull, word;
  for (; n >= 8; p += 8, n -= 8) {
    std::memcpy(&word, p, 8);
    h = mix(h ^ word ^ 0xa0761d6478bd642full, 0xe7037ed1a0b428dbull);
  }
  word = 0;
  std::memcpy(&word, p, n);
  return mix(h ^ word ^ 0x8ebc6af09c88c6e3ull, 0x589965cc75374cc3ull);
}

// ---- reading the arguments --------------------------------------------------------------------------------------------------------

bool inside(const void* p, const detail::Slot& s) {
  auto at = reinterpret_cast<std::uintptr_t>(p), begin = reinterpret_cast<std::uintptr_t>(s.address);
  return at >= begin && at < begin + s.bytes;
}

// One object must not be a state twice, or a state and an argument: the function would see it change behind its back. An argument that is an
// array inside a state is fine: it refers to the same place in the copy that is traced.
void check_objects(const detail::Call& call, Frame& f) {
  auto fail = [&](const char* what) {
    throw Error(str("compile: ", what, "; got it in a call of compiled function '", name_at(call.callee.name), "'; pass it once, or a copy"));
  };
  auto targets_of = [&](const detail::Slot& s) { return std::span(f.targets).subspan(s.targets, s.targets_end - s.targets); };
  for (std::size_t i = 0; i < f.slots.size(); ++i) {
    const detail::Slot& s = *f.slots[i];
    if (!s.state) continue;
    for (std::size_t j = 0; j < f.slots.size(); ++j) {
      const detail::Slot& o = *f.slots[j];
      if (i == j || o.owned || (o.state && j < i)) continue;
      bool same = s.address == o.address && s.type == o.type;
      if (o.state) {
        auto shares = [&](const detail::Slot& a, const detail::Slot& b) {
          if (a.bytes > 0 && inside(a.address, b)) return true;
          auto ta = targets_of(a);
          if (ta.empty()) return false;
          for (const Array* p : targets_of(b))
            if (p == ta[0]) return true;
          return false;
        };
        if (same || shares(s, o) || shares(o, s)) fail("one object is passed as two states");
        continue;
      }
      if (same) fail("one object is passed as state and as argument");
      auto ts = targets_of(s);
      for (std::size_t k = 0; k < ts.size(); ++k) {
        if (!inside(ts[k], o)) continue;
        if (!o.plain) fail("a part of a state is passed as an argument too");
        f.aliases.emplace_back(j, s.targets + k);
      }
    }
  }
}

void read(const detail::Call& call, Frame& f) {
  f.key.push_back(static_cast<char>(globals::compile_mode.load(std::memory_order_relaxed)));
  if (!call.types.empty()) f.key.append(reinterpret_cast<const char*>(call.types.data()), call.types.size_bytes());
  f.slots.assign(call.slots.begin(), call.slots.end());
  for (const auto& tree : call.callee.captured) {
    f.captured.push_back(tree->slot());
    f.slots.push_back(f.captured.back().get());
  }
  bool states = false;
  Read reader(f.key, &f.inputs, nullptr);
  for (detail::Slot* s : f.slots) {
    s->text = f.key.size();
    s->leaves = f.inputs.size();
    s->targets = f.targets.size();
    reader.set_targets(s->state ? &f.targets : nullptr);
    s->walk_user(reader);
    s->text_end = f.key.size();
    s->leaves_end = f.inputs.size();
    s->targets_end = f.targets.size();
    states = states || s->state;
  }
  if (states && f.slots.size() > 1) {
    check_objects(call, f);
    for (auto& a : f.aliases) f.key.append(reinterpret_cast<const char*>(&a), sizeof a);
  }
  f.types_at = f.key.size();
  for (const Array& a : f.inputs) {
    const Value& v = *a.get();
    if (v.symbolic) [[unlikely]] throw_no_data(a, "compiled call");
    std::size_t rank = v.shape.size();
    char head[2] = {static_cast<char>(v.dtype), static_cast<char>(rank)};
    f.key.append(head, 2);
    for (const Dim& d : v.shape) {
      std::int64_t n = d;
      f.key.append(reinterpret_cast<const char*>(&n), sizeof n);
    }
  }
}

// ---- tracing ----------------------------------------------------------------------------------------------------------------------

// What the function sees; puts everything back in the end.
class Traced {
 public:
  explicit Traced(Frame& f) : frame_(f) {}
  ~Traced() {
    for (std::size_t i = 0; i < made_; ++i) {
      detail::Slot& s = *frame_.slots[i];
      if (s.in_place) restore(s);
      s.drop_copy();
      s.alias = nullptr;
    }
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

  void make(std::span<const Array> placeholders) {
    std::vector<std::vector<Array*>> leaves(frame_.slots.size());
    for (detail::Slot* s : frame_.slots) {
      s->make_copy();
      std::vector<Array*>& mine = leaves[made_++];
      detail::Collect collect(mine);
      s->walk_traced(collect);
      std::size_t at = s->leaves;
      for (Array* a : mine)
        if (a->valid()) {
          check(at < s->leaves_end, "a copy of an argument has more arrays than the argument");
          *a = placeholders[at++];
        }
      check(at == s->leaves_end, "a copy of an argument has fewer arrays than the argument");
    }
    for (auto [slot, target] : frame_.aliases)
      for (std::size_t i = 0; i < frame_.slots.size(); ++i) {
        const detail::Slot& s = *frame_.slots[i];
        if (s.state && target >= s.targets && target < s.targets_end) frame_.slots[slot]->alias = leaves[i][target - s.targets];
      }
  }

 private:
  std::string_view text(const detail::Slot& s) const { return std::string_view(frame_.key).substr(s.text, s.text_end - s.text); }
  void restore(detail::Slot& s) noexcept {
    auto arrays = std::span<const Array>(frame_.inputs).subspan(s.leaves, s.leaves_end - s.leaves);
    try {
      std::string structure;
      std::vector<Array*> now;
      Read reader(structure, nullptr, &now);
      s.walk_user(reader);
      if (structure != text(s)) {
        if (s.copyable) {
          s.commit_copy();
        } else {
          Fill fill(text(s), arrays);
          s.walk_user(fill);
        }
        now.clear();
        detail::Collect collect(now);
        s.walk_user(collect);
      }
      // The function may have moved containers.
      std::copy(now.begin(), now.end(), frame_.targets.begin() + static_cast<std::ptrdiff_t>(s.targets));
      std::size_t at = 0;
      for (Array* a : now)
        if (a->valid()) *a = arrays[at++];
    } catch (...) {  // out of memory
      s.commit_copy();
    }
  }
  Frame& frame_;
  std::size_t made_ = 0;
};

// The generator's state during a trace is a placeholder.
class TracedGenerator {
 public:
  explicit TracedGenerator(const Array& stand_in, const Array& before) : before_(before) { generator_state() = stand_in; }
  ~TracedGenerator() { generator_state() = before_; }
  TracedGenerator(const TracedGenerator&) = delete;
  TracedGenerator& operator=(const TracedGenerator&) = delete;

 private:
  const Array before_;
};

constexpr std::int64_t kFoldBytes = std::int64_t{1} << 20;  // results of work on constants alone that are kept

class Gather {
 public:
  explicit Gather(Entry& entry) : entry_(entry) {}
  std::vector<Array> computed;

  Source source(const Array& a, const char* what) {
    if (!a.valid()) return {};
    check_operand(a, what);
    const Value& v = *a.get();
    if (v.symbolic && v.op == ops::Op::Input) return {Source::From::input, false, static_cast<std::size_t>(v.attrs[0])};
    if (!v.symbolic && (v.state.load(std::memory_order_acquire) == detail::State::ready || a.nbytes() <= kFoldBytes)) {
      entry_.constants.push_back(a);
      return {Source::From::constant, false, entry_.constants.size() - 1};
    }
    auto [it, fresh] = index_.try_emplace(&v, computed.size());
    if (fresh) computed.push_back(a);
    return {Source::From::computed, false, it->second};
  }

 private:
  Entry& entry_;
  std::unordered_map<const Value*, std::size_t> index_;
};

void mark_last_uses(Entry& e) {
  std::vector<Source*> last(e.computed, nullptr);
  auto see = [&](Source& s) {
    if (s.from == Source::From::computed) last[s.at] = &s;
  };
  for (Source& s : e.results) see(s);
  for (Source& s : e.states) see(s);
  see(e.generator);
  for (Source* s : last)
    if (s) s->last = true;
}

// An input may be overwritten when its slot gives it up and no output shows it: its references are the slot's and the frame's.
void find_owned(const Frame& f, Entry& e) {
  std::size_t n = f.inputs.size();
  e.owned.assign(n + (e.draws ? 1 : 0), 0);
  for (const detail::Slot* s : f.slots)
    if (s->state || s->owned)
      for (std::size_t i = s->leaves; i < s->leaves_end; ++i) e.owned[i] = 2;
  if (e.draws) e.owned[n] = 2;
  auto shown = [&](const Source& s) {
    if (s.from == Source::From::input) e.owned[s.at] = 0;
  };
  for (const Source& s : e.results) shown(s);
  for (const Source& s : e.states) shown(s);
  if (e.draws) shown(e.generator);
}

std::shared_ptr<Entry> trace(const detail::Call& call, Frame& f, std::uint64_t hash) {
  Program& program = *call.callee.program;
  auto start = std::chrono::steady_clock::now();
  std::string name = name_at(call.callee.name);
  if (std::shared_ptr<Entry> newest = program.newest()) program.note_trace(name, differences(f, *newest), false);
  else program.note_trace(name, {}, true);

  auto entry = std::make_shared<Entry>();
  entry->key = f.key;
  entry->hash = hash;
  entry->types_at = f.types_at;
  entry->totals = program.totals;
  for (const detail::Slot* s : f.slots) entry->texts.emplace_back(s->text, s->text_end);

  auto is_state = std::make_unique<bool[]>(f.inputs.size());
  for (const detail::Slot* s : f.slots)
    for (std::size_t i = s->leaves; i < s->leaves_end; ++i) is_state[i] = s->state;
  Trace t(call.callee, f.inputs, {is_state.get(), f.inputs.size()});
  Array generator = generator_state();
  std::vector<Array> placeholders;
  placeholders.reserve(f.inputs.size() + 1);
  for (std::size_t i = 0; i < f.inputs.size(); ++i) placeholders.push_back(placeholder(f.inputs[i], i, t.id));
  placeholders.push_back(placeholder(generator, f.inputs.size(), t.id));

  Gather gather(*entry);
  TraceScope scope(t);
  {
    Traced traced(f);
    traced.make(placeholders);
    TracedGenerator hold(placeholders.back(), generator);
    call.body();

    std::vector<Array*> results;
    detail::Collect collect(results);
    call.outcome.walk(collect);
    for (Array* a : results) {
      entry->results.push_back(gather.source(*a, "return"));
      *a = Array();
    }
    for (detail::Slot* s : f.slots) {
      if (!s->state) continue;
      Entry::State& state = entry->state_slots.emplace_back();
      std::vector<Array*> leaves;
      Read reader(state.structure, nullptr, &leaves);
      s->walk_traced(reader);
      state.changed = state.structure != std::string_view(f.key).substr(s->text, s->text_end - s->text);
      state.begin = entry->states.size();
      for (Array* a : leaves) entry->states.push_back(gather.source(*a, "state"));
      state.end = entry->states.size();
    }
    entry->generator = gather.source(generator_state(), "random");
  }
  entry->draws = !(entry->generator.from == Source::From::input && entry->generator.at == f.inputs.size());
  if (!entry->draws) placeholders.pop_back();
  entry->prototype = call.outcome.keep();
  entry->computed = gather.computed.size();
  mark_last_uses(*entry);
  find_owned(f, *entry);
  for (std::size_t i : t.same_as_input) entry->guards.emplace_back(i, f.inputs[i]);

  // Arrays from outside are computed once, not in each call.
  for (auto* arrays : {&t.admitted, &entry->constants})
    for (const Array& a : *arrays)
      if (a.get()->state.load(std::memory_order_acquire) != detail::State::ready) evaluate({&a, 1}, "compiled call");

  CompileMode mode = static_cast<CompileMode>(f.key[0]);
  if (entry->computed > 0)
    entry->graph = compile_graph(placeholders, gather.computed,
                                 {.name = name,
                                  .simplify = mode != CompileMode::no_simplify,
                                  .fuse = mode != CompileMode::no_fuse,
                                  .fast_math = program.options.fast_math});
  program.note_time(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  if (t.keep) program.insert(entry);
  return entry;
}

// ---- running ----------------------------------------------------------------------------------------------------------------------

// The states whose structure changes: their new trees, made aside. A state that cannot be copied gets its new structure before the run, and its
// old one back if the run fails.
class Rebuilt {
 public:
  Rebuilt(Frame& f, const Entry& e) : frame_(f) {
    std::size_t k = 0;
    for (detail::Slot* s : f.slots) {
      if (!s->state) continue;
      const Entry::State& state = e.state_slots[k++];
      std::size_t arrays = s->targets_end - s->targets;
      if (state.changed) {
        s->make_copy();
        made_.push_back(s);
        Fill fill(state.structure, {});
        s->walk_copy(fill);
        std::size_t before = f.rebuilt.size();
        detail::Collect collect(f.rebuilt);
        s->walk_copy(collect);
        arrays = f.rebuilt.size() - before;
      }
      check(arrays == state.end - state.begin, "a state has another number of arrays than its structure says");
    }
  }
  ~Rebuilt() {
    for (detail::Slot* s : made_) {
      if (!committed_ && !s->copyable) undo(*s);
      s->drop_copy();
    }
  }
  Rebuilt(const Rebuilt&) = delete;
  Rebuilt& operator=(const Rebuilt&) = delete;
  void commit() noexcept {
    for (detail::Slot* s : made_) s->commit_copy();
    committed_ = true;
  }

 private:
  void undo(detail::Slot& s) noexcept {
    try {
      Fill fill(std::string_view(frame_.key).substr(s.text, s.text_end - s.text),
                std::span<const Array>(frame_.inputs).subspan(s.leaves, s.leaves_end - s.leaves));
      s.walk_user(fill);
    } catch (...) {  // out of memory, and no copy to go back to
    }
  }
  Frame& frame_;
  std::vector<detail::Slot*> made_;
  bool committed_ = false;
};

void run(const detail::Call& call, Frame& f, const Entry& e) {
  call.outcome.copy(e.prototype.get());
  detail::Collect collect(f.results);
  call.outcome.walk(collect);
  Rebuilt rebuilt(f, e);
  check(f.results.size() == e.results.size(), "a copy of a result has another number of arrays");
  if (e.draws) f.inputs.push_back(generator_state());
  std::vector<Array> outputs;
  if (e.graph) outputs = e.graph->run(f.inputs, e.owned);
  check(outputs.size() == e.computed, "a graph returned another number of outputs");

  // Commit: nothing below can fail.
  auto put = [&](Array& to, const Source& s) {
    switch (s.from) {
      case Source::From::unset: to = Array(); break;
      case Source::From::input:
        if (to.get() != f.inputs[s.at].get()) to = f.inputs[s.at];
        break;
      case Source::From::constant: to = e.constants[s.at]; break;
      case Source::From::computed:
        if (s.last) to = std::move(outputs[s.at]);
        else to = outputs[s.at];
    }
  };
  for (std::size_t i = 0; i < e.results.size(); ++i) put(*f.results[i], e.results[i]);
  std::size_t slot = 0, in_copy = 0;
  for (const detail::Slot* s : f.slots) {
    if (!s->state) continue;
    const Entry::State& state = e.state_slots[slot++];
    for (std::size_t i = state.begin; i < state.end; ++i)
      put(state.changed ? *f.rebuilt[in_copy++] : *f.targets[s->targets + i - state.begin], e.states[i]);
  }
  rebuilt.commit();
  if (e.draws) put(generator_state(), e.generator);
}

}  // namespace

bool Entry::guards_hold(std::span<const Array> inputs) const {
  for (const auto& [i, a] : guards)
    if (inputs[i].get() != a.get()) return false;
  return true;
}

}  // namespace sinter::engine

namespace sinter::detail {

void run_compiled(const Call& call) {
  engine::Lease lease;
  engine::Frame& f = *lease;
  engine::read(call, f);
  std::uint64_t hash = engine::hash_bytes(f.key);
  std::shared_ptr<Entry> entry = call.callee.program->find(f.key, hash, f.inputs, true);
  if (!entry) entry = engine::trace(call, f, hash);
  engine::run(call, f, *entry);
}

std::string inspect_compiled(const Call& call, Inspect what) {
  const char* name = what == Inspect::graph ? "graph" : "kernels";
  if (engine::open_trace())
    throw TraceError(str(name, ": a trace is open; got compiled function '", name_of(call.callee), "'; call it outside of compiled functions"));
  engine::Lease lease;
  engine::Frame& f = *lease;
  engine::read(call, f);
  std::uint64_t hash = engine::hash_bytes(f.key);
  std::shared_ptr<Entry> entry = call.callee.program->find(f.key, hash, f.inputs, false);
  if (!entry) entry = engine::trace(call, f, hash);
  if (!entry->graph) return "nothing is computed: every output is an input or a constant\n";
  if (entry->draws) f.inputs.push_back(engine::generator_state());
  return what == Inspect::graph ? entry->graph->graph_text() : entry->graph->kernel_text(f.inputs);
}

bool run_regular(const Callee& callee) {
  callee.program->calls.fetch_add(1, std::memory_order_relaxed);
  return engine::open_trace() || globals::compile_mode.load(std::memory_order_relaxed) == static_cast<std::uint8_t>(CompileMode::disabled);
}

}  // namespace sinter::detail
