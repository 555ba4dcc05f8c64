// A miss: runs the function on placeholders and makes an entry of what it recorded. Layer: engine.
#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "base/log.h"
#include "engine/compiled.h"
#include "engine/generator.h"
#include "engine/tape.h"
#include "engine/trace.h"
#include "engine/tracing.h"
#include "engine/value.h"

namespace sinter::engine {
namespace {

// What the function sees; puts everything back in the end.
class StandIns {
 public:
  explicit StandIns(Frame& f) : frame_(f) {}
  ~StandIns() {
    for (std::size_t i = 0; i < made_; ++i) {
      detail::Slot& s = *frame_.slots[i];
      if (s.in_place) restore(s);
      s.drop_copy();
      s.alias = nullptr;
    }
  }
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

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
      if (now.size() == s.targets_end - s.targets)
        std::copy(now.begin(), now.end(), frame_.targets.begin() + static_cast<std::ptrdiff_t>(s.targets));
      std::size_t at = 0;
      for (Array* a : now)
        if (a->valid() && at < arrays.size()) *a = arrays[at++];
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

class Gather {
 public:
  explicit Gather(Traced& entry) : entry_(entry) {}
  std::vector<Array> computed;

  Source source(const Array& a, const char* what) {
    if (!a.valid()) return {};
    check_operand(a, what);
    const Value& v = *a.get();
    if (v.symbolic && v.op == ops::Op::Input) return {Source::From::input, false, static_cast<std::size_t>(v.attrs[0])};
    if (!v.symbolic && !v.sized && (is_ready(v) || a.nbytes() <= kMaxFoldedBytes)) {
      entry_.constants.push_back(a);
      return {Source::From::constant, false, entry_.constants.size() - 1};
    }
    auto [it, fresh] = index_.try_emplace(&v, computed.size());
    if (fresh) computed.push_back(a);
    return {Source::From::computed, false, it->second};
  }

 private:
  Traced& entry_;
  std::unordered_map<const Value*, std::size_t> index_;
};

void mark_last_uses(Traced& e) {
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

// What looks at a size that a tree holds.
class Fix final : public Walker {
 public:
  void array(Array&) override {}
  void number(void*, std::size_t, Leaf) override {}
  void text(std::string&) override {}
  void shape(Shape& s) override {
    for (Dim& d : s) d = Dim(static_cast<std::int64_t>(d));
  }
  std::size_t length(std::size_t n) override { return n; }
};

// Gives the placeholders' sizes that change their symbols.
void make_symbols(const Frame& f, Traced& e, std::vector<std::size_t> changing, std::span<Array> placeholders) {
  if (changing.empty()) return;
  e.symbols = std::make_shared<base::Symbols>();
  e.changing = std::move(changing);
  std::size_t place = 0, next = 0;
  const std::vector<std::string> names = names_of_inputs(f);
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    Shape& shape = placeholders[i].get()->shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis, ++place)
      if (next < e.changing.size() && e.changing[next] == place) {
        shape[axis] = e.symbols->input(shape[axis], str(names[i], ".shape(", axis, ")"));
        e.notes.push_back(str('s', next, " is ", e.symbols->name(next)));
        ++next;
      }
  }
}

// An input may be overwritten when its slot gives it up and no output shows it: its references are the slot's and the frame's.
void find_owned(const Frame& f, Traced& e) {
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

}  // namespace

std::shared_ptr<Entry> trace(const detail::Call& call, Frame& f, std::uint64_t hash, const Traced* like) {
  Program& program = *call.callee.program;
  auto start = std::chrono::steady_clock::now();
  std::string name = name_at(call.callee.name);
  base::Laps laps(2, name);
  if (like)
    program.count_trace();
  else if (std::shared_ptr<Entry> newest = program.newest())
    program.note_trace(name, differences(f, *newest), false);
  else
    program.note_trace(name, {}, true);

  auto entry = std::make_shared<Traced>();
  entry->key = f.key;
  entry->types_at = f.types_at;
  entry->sizes_at = f.sizes_at;
  for (const detail::Slot* s : f.slots) entry->texts.emplace_back(s->text, s->text_end);

  auto is_state = std::make_unique<bool[]>(f.inputs.size());
  for (const detail::Slot* s : f.slots)
    for (std::size_t i = s->leaves; i < s->leaves_end; ++i) is_state[i] = s->state;
  Trace t(call.callee, f.inputs, {is_state.get(), f.inputs.size()});
  Array generator = generator_state();
  std::vector<Array> placeholders;
  placeholders.reserve(f.inputs.size() + 1);
  for (std::size_t i = 0; i < f.inputs.size(); ++i) placeholders.push_back(placeholder(f.inputs[i], i, t.id));
  make_symbols(f, *entry, like ? like->changing : program.changing_sizes(f), placeholders);
  std::optional<base::OpenSymbols> open;
  if (entry->symbols) open.emplace(*entry->symbols, entry->guards);
  placeholders.push_back(placeholder(generator, f.inputs.size(), t.id));

  Gather gather(*entry);
  TraceScope scope(t);
  {
    StandIns stand_ins(f);
    stand_ins.make(placeholders);
    TracedGenerator hold(placeholders.back(), generator);
    call.body();

    std::vector<Array*> results;
    detail::Collect collect(results);
    call.outcome.walk(collect);
    for (Array* a : results) {
      entry->results.push_back(gather.source(*a, "return"));
      *a = Array();
    }
    // Sizes among the results are those of this call.
    Fix fix;
    call.outcome.walk(fix);
    for (detail::Slot* s : f.slots) {
      if (!s->state) continue;
      Traced::State& state = entry->state_slots.emplace_back();
      std::vector<Array*> leaves;
      Read reader(state.structure, nullptr, &leaves);
      s->walk_traced(reader);
      state.changed = state.structure != std::string_view(f.key).substr(s->text, s->text_end - s->text);
      state.begin = entry->states.size();
      for (Array* a : leaves) entry->states.push_back(gather.source(*a, "state"));
      state.end = entry->states.size();
    }
    entry->generator = gather.source(generator_state(), "random");
    if (t.printed.valid()) entry->printed = static_cast<std::ptrdiff_t>(gather.source(t.printed, "debug_print").at);
  }
  laps.lap("traced");
  entry->draws = !(entry->generator.from == Source::From::input && entry->generator.at == f.inputs.size());
  if (!entry->draws) placeholders.pop_back();
  entry->prototype = call.outcome.keep();
  entry->computed = gather.computed.size();
  mark_last_uses(*entry);
  find_owned(f, *entry);
  for (std::size_t i : t.same_as_input) entry->same.emplace_back(i, f.inputs[i]);

  // Arrays from outside are computed once, not in each call.
  for (auto* arrays : {&t.admitted, &entry->constants})
    for (const Array& a : *arrays)
      if (!is_ready(*a.get())) evaluate({&a, 1}, "compiled call");

  CompileMode mode = static_cast<CompileMode>(f.key[0]);
  if (entry->computed > 0)
    entry->graph = capture_graph(placeholders, gather.computed,
                                 {.name = name,
                                  .simplify = mode != CompileMode::no_simplify,
                                  .fuse = mode != CompileMode::no_fuse,
                                  .fast_math = program.options.fast_math},
                                 entry->symbols);
  laps.lap("captured");
  open.reset();
  if (entry->symbols)
    for (const std::string& g : entry->symbols->texts(entry->guards)) entry->notes.push_back("holds for " + g);
  entry->notes.insert(entry->notes.end(), t.notes.begin(), t.notes.end());
  if (t.has_batch_rules) {
    program.has_batch_rules.store(true, std::memory_order_relaxed);
    if (innermost_tape()) t.keep = false;
  }
  std::shared_ptr<Entry> made = instantiate(entry, f, hash, program.totals);
  laps.lap("passes");
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  program.note_time(ms);
  if (base::logs(1)) base::log(1, str("trace of ", name, ": done, ", ms, " ms"));
  if (t.keep && !like) {
    if (entry->symbols) program.note_guards(*entry);
    program.insert(made);
  }
  return made;
}

std::shared_ptr<Entry> instantiate(std::shared_ptr<Traced> traced, const Frame& f, std::uint64_t hash,
                                   const std::shared_ptr<Totals>& totals) {
  auto entry = std::make_shared<Entry>();
  entry->key = f.key;
  entry->hash = hash;
  entry->totals = totals;
  if (traced->graph) {
    const bool own = std::string_view(traced->key) == f.key;
    entry->graph = traced->graph->instantiate(own ? std::vector<std::int64_t>() : traced->sizes_of(f.key));
    if (!entry->graph) return nullptr;
  }
  entry->traced = std::move(traced);
  return entry;
}

}  // namespace sinter::engine
