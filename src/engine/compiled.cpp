// A call of a compiled function: read the arguments, find or make the entry, run it, commit. Layer: engine.
//
// The strong guarantee: everything that can fail (tracing, building the result and the states whose structure changes, running) comes
// before commit(), which only assigns pointers and moves.
#include "engine/compiled.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/globals.h"
#include "base/knobs.h"
#include "engine/debug_print.h"
#include "engine/generator.h"
#include "engine/recent.h"
#include "engine/tape.h"
#include "engine/trace.h"
#include "engine/tracing.h"
#include "engine/value.h"
#include "sinter/functions.h"

namespace sinter::engine {

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
    if (spare || thread_ends)
      delete frame_;
    else
      spare = frame_;
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

// One object must not be a state twice, or a state and an argument: the function would see it change behind its back. An argument that is
// an array inside a state is fine: it refers to the same place in the copy that is traced.
void check_objects(const detail::Call& call, Frame& f) {
  auto fail = [&](const char* what) {
    throw Error(
        str("compile: ", what, "; got it in a call of compiled function '", name_at(call.callee.name), "'; pass it once, or a copy"));
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
      bool part = o.leaves < o.leaves_end && inside(o.address, s), alias = false;
      for (std::size_t k = 0; k < ts.size(); ++k) {
        if (!inside(ts[k], o)) continue;
        part = true;
        if (!o.plain) break;
        f.aliases.emplace_back(j, s.targets + k);
        alias = true;
      }
      if (part && !alias) fail("a part of a state is passed as an argument too");
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
    if (v.symbolic) [[unlikely]] {
      if (!innermost_tape()) throw_no_data(a, "compiled call");
      check_operand(a, "compiled call");
    }
    char head[2] = {static_cast<char>(v.dtype), static_cast<char>(v.shape.size())};
    f.key.append(head, 2);
  }
  f.sizes_at = f.key.size();
  for (const Array& a : f.inputs)
    for (const Dim& d : a.get()->shape) {
      std::int64_t n = d;
      f.key.append(reinterpret_cast<const char*>(&n), sizeof n);
    }
}

// ---- running ----------------------------------------------------------------------------------------------------------------------

// The states whose structure changes: their new trees, made aside. A state that cannot be copied gets its new structure before the run, and
// its old one back if the run fails.
class Rebuilt {
 public:
  Rebuilt(Frame& f, const Traced& e) : frame_(f) {
    std::size_t k = 0;
    for (detail::Slot* s : f.slots) {
      if (!s->state) continue;
      const Traced::State& state = e.state_slots[k++];
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

void run(const detail::Call& call, Frame& f, const Entry& entry) {
  const Traced& e = *entry.traced;
  call.outcome.copy(e.prototype.get());
  detail::Collect collect(f.results);
  call.outcome.walk(collect);
  Rebuilt rebuilt(f, e);
  check(f.results.size() == e.results.size(), "a copy of a result has another number of arrays");
  if (e.draws) f.inputs.push_back(generator_state());
  std::vector<Array> outputs;
  // A transform sees the operations that were traced; nothing is traced again.
  if (entry.graph) outputs = innermost_tape() ? entry.graph->replay(f.inputs) : entry.graph->run(f.inputs, e.owned);
  check(outputs.size() == e.computed, "a graph returned another number of outputs");
  if (e.printed >= 0 && innermost_tape()) note_printed(outputs[static_cast<std::size_t>(e.printed)]);

  // Commit: nothing below can fail.
  auto put = [&](Array& to, const Source& s) {
    switch (s.from) {
      case Source::From::unset: to = Array(); break;
      case Source::From::input:
        if (to.get() != f.inputs[s.at].get()) to = f.inputs[s.at];
        break;
      case Source::From::constant: to = e.constants[s.at]; break;
      case Source::From::computed:
        if (s.last)
          to = std::move(outputs[s.at]);
        else
          to = outputs[s.at];
    }
  };
  for (std::size_t i = 0; i < e.results.size(); ++i) put(*f.results[i], e.results[i]);
  std::size_t slot = 0, in_copy = 0;
  for (const detail::Slot* s : f.slots) {
    if (!s->state) continue;
    const Traced::State& state = e.state_slots[slot++];
    for (std::size_t i = state.begin; i < state.end; ++i)
      put(state.changed ? *f.rebuilt[in_copy++] : *f.targets[s->targets + i - state.begin], e.states[i]);
  }
  rebuilt.commit();
  if (e.draws) put(generator_state(), e.generator);
}

// ---- purity -----------------------------------------------------------------------------------------------------------------------

// What is in one text, line by line, and not in the other.
std::string lines_without(const std::string& text, const std::string& other, char sign) {
  constexpr int kMost = 5;
  std::set<std::string> known;
  std::istringstream those(other), lines(text);
  for (std::string line; std::getline(those, line);) known.insert(line);
  std::string out;
  int count = 0;
  for (std::string line; std::getline(lines, line);)
    if (!known.contains(line) && ++count <= kMost) out += str("\n", sign, line);
  return count > kMost ? str(out, "\n", sign, "  ... ", count - kMost, " more lines") : out;
}

bool same_sources(const std::vector<Source>& a, const std::vector<Source>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Source& x, const Source& y) { return x.from == y.from && x.at == y.at; });
}
bool same_arrays(std::span<const Array> a, std::span<const Array> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Array& x, const Array& y) {
    return x.get() == y.get() || (x.dtype() == y.dtype() && x.shape() == y.shape() && array_equal(x, y, true).item<bool>());
  });
}

// Traces again and compares: {.check_purity = true}.
void check_purity(const detail::Call& call, Frame& f, std::uint64_t hash, const Entry& entry) {
  const std::shared_ptr<Entry> now = trace(call, f, hash, entry.traced.get());
  const std::string before = entry.graph ? entry.graph->traced_text() : "", after = now->graph ? now->graph->traced_text() : "";
  std::string what;
  if (before != after)
    what = "another graph" + lines_without(before, after, '-') + lines_without(after, before, '+');
  else if (!same_sources(entry.traced->results, now->traced->results) || !same_sources(entry.traced->states, now->traced->states))
    what = "other results of the same graph";
  else if (!same_arrays(entry.traced->constants, now->traced->constants) ||
           (entry.graph && !same_arrays(entry.graph->constants(), now->graph->constants())))
    what = "other constants in the same graph";
  if (!what.empty())
    throw TraceError(str("compile: compiled function '", name_at(call.callee.name), "' is not pure: tracing it again gave ", what,
                         "; got it under check_purity; pass what changes as an argument or keep it as state"));
}

// Counts a call, unless that was done.
struct CountCall {
  explicit CountCall(detail::Program& p) : program(p) {}
  ~CountCall() {
    if (!counted) program.calls.fetch_add(1, std::memory_order_relaxed);
  }
  CountCall(const CountCall&) = delete;
  CountCall& operator=(const CountCall&) = delete;
  detail::Program& program;
  bool counted = false;
};

// `count`: among the calls and hits of the program; null: not at all.
std::shared_ptr<Entry> entry_for(const detail::Call& call, Frame& f, CountCall* count) {
  detail::Program& program = *call.callee.program;
  const std::uint64_t hash = hash_bytes(f.key);
  std::shared_ptr<Entry> entry;
  if (count && (entry = find_recent(program, f.key, hash, f.inputs)))
    count->counted = true;
  else
    entry = program.find(f.key, hash, f.inputs, count);
  if (!entry) entry = program.find_for_sizes(f, hash, count);
  if (!entry) return trace(call, f, hash);
  if (count && (program.options.check_purity || base::knobs().check_pure)) [[unlikely]]
    check_purity(call, f, hash, *entry);
  return entry;
}

}  // namespace

}  // namespace sinter::engine

namespace sinter::detail {

void run_compiled(const Call& call) {
  engine::CountCall count(*call.callee.program);
  engine::Lease lease;
  engine::Frame& f = *lease;
  engine::read(call, f);
  engine::run(call, f, *engine::entry_for(call, f, &count));
}

std::string inspect_compiled(const Call& call, Inspect what) {
  const char* name = what == Inspect::graph ? "graph" : "kernels";
  if (engine::open_trace())
    throw TraceError(
        str(name, ": a trace is open; got compiled function '", name_of(call.callee), "'; call it outside of compiled functions"));
  engine::Lease lease;
  engine::Frame& f = *lease;
  engine::read(call, f);
  const std::shared_ptr<Entry> entry = engine::entry_for(call, f, nullptr);
  if (!entry->graph) return "nothing is computed: every output is an input or a constant\n";
  if (entry->traced->draws) f.inputs.push_back(engine::generator_state());
  return what == Inspect::graph ? entry->graph->graph_text() : entry->graph->kernel_text(f.inputs);
}

bool run_regular(const Callee& callee) {
  const auto decide = [&] {
    if (globals::compile_mode.load(std::memory_order_relaxed) == static_cast<std::uint8_t>(CompileMode::disabled)) return true;
    const engine::Trace* trace = engine::open_trace();
    if (trace && trace->callee.program) return true;  // part of what is being compiled
    if (!engine::innermost_tape()) return false;
    // Under a transform the entry's operations are played, unless they hold arrays that the transform must see, or might.
    return callee.constants || callee.program->has_batch_rules.load(std::memory_order_relaxed) ||
           std::any_of(callee.held.begin(), callee.held.end(), [](const Array& a) { return a.get()->tape != 0 || a.get()->symbolic; });
  };
  const bool regular = decide();
  if (regular) callee.program->calls.fetch_add(1, std::memory_order_relaxed);  // else run_compiled() counts
  return regular;
}

}  // namespace sinter::detail
