// Compiled functions: entries (what a trace became), programs (the cache of one identity) and frames (one call). Layer: engine.
#pragma once
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"
#include "base/symbols.h"
#include "engine/compiled_graph.h"
#include "sinter/compile.h"

namespace sinter::engine {

/// Writes a structure, and arrays in its order, into a tree.
class Fill final : public Walker {
 public:
  /// `arrays` has one for each set array of the structure; empty: all become unset.
  Fill(std::string_view structure, std::span<const Array> arrays) : Walker(false, true), structure_(structure), arrays_(arrays) {}
  void array(Array& a) override;
  void number(void* p, std::size_t bytes, Leaf kind) override;
  void text(std::string& s) override;
  void shape(Shape& s) override;
  std::size_t length(std::size_t n) override;

 private:
  void take(void* p, std::size_t n);
  std::string_view structure_;
  std::span<const Array> arrays_;
  std::size_t at_ = 0;
};

/// Reads a tree: appends its structure (lengths, keys, static values, which arrays are set) to `structure`, its set arrays to `arrays`, and
/// the addresses of all of them, where asked for, to `targets`.
class Read final : public Walker {
 public:
  Read(std::string& structure, std::vector<Array>* arrays, std::vector<Array*>* targets)
      : structure_(structure), arrays_(arrays), targets_(targets) {}
  void array(Array& a) override;
  void number(void* p, std::size_t bytes, Leaf kind) override;
  void text(std::string& s) override;
  void shape(Shape& s) override;
  std::size_t length(std::size_t n) override;
  void set_targets(std::vector<Array*>* targets) { targets_ = targets; }

 private:
  std::string& structure_;
  std::vector<Array>* arrays_;
  std::vector<Array*>* targets_;
};

/// One call. Reused by the thread, so that a call on an entry allocates outputs alone.
struct Frame {
  std::string key;              // mode, types of generic parameters, structures, then dtypes and ranks, then sizes
  std::size_t types_at = 0;     // where dtypes and ranks begin
  std::size_t sizes_at = 0;     // where the sizes begin: what comes before is the same for all shapes
  std::vector<Array> inputs;    // the set arrays of all slots, in order; then the generator, where the entry draws
  std::vector<Array*> targets;  // of states: every array of the caller's tree, unset ones too
  std::vector<Array*> results;  // every array of the result
  std::vector<Array*> rebuilt;  // every array of the copies of states that change their structure
  std::vector<detail::Slot*> slots;
  std::vector<std::unique_ptr<detail::Slot>> captured;
  std::vector<std::pair<std::size_t, std::size_t>> aliases;  // slot of a `const Array&`, the target it refers to
  void clear();
};

/// Where an output comes from.
struct Source {
  enum class From : std::uint8_t { unset, input, constant, computed };
  From from = From::unset;
  bool last = false;  // computed: its last use
  std::size_t at = 0;
};

/// Sums over the entries of a program that are gone.
struct Totals {
  std::atomic<std::int64_t> generated{0}, from_disk{0};
  std::atomic<double> milliseconds{0};
  void add(const KernelCost& cost) { generated += cost.generated, from_disk += cost.from_disk, milliseconds += cost.milliseconds; }
  KernelCost sum() const { return {generated, from_disk, milliseconds}; }
};

/// What a trace became. Immutable but for the counter of hits.
struct Traced {
  struct State {
    bool changed = false;  // the call changes the structure, to `structure`
    std::string structure;
    std::size_t begin = 0, end = 0;  // in `states`
  };
  std::string key;  // of the call that was traced
  std::size_t types_at = 0, sizes_at = 0;
  std::vector<std::pair<std::size_t, std::size_t>> texts;  // of each slot's structure in the key
  std::unique_ptr<detail::Kept> prototype;                 // of the result, its arrays unset
  std::vector<Source> results;
  std::vector<Source> states;
  std::vector<State> state_slots;
  bool draws = false;  // the generator is the last input
  Source generator;
  std::ptrdiff_t printed = -1;  // the output that what it shows ends in (debug_print.h)
  std::vector<Array> constants;
  std::vector<std::pair<std::size_t, Array>> same;  // this input must be this array
  std::vector<int> owned;                           // see CompiledGraph::run
  std::size_t computed = 0;                         // outputs of the graph
  std::unique_ptr<GraphTemplate> graph;
  std::vector<std::string> notes;  // for explain()
  std::atomic<std::int64_t> hits{0};

  // Sizes that change: their places among all sizes, in the order of the inputs of `symbols`; none: the entry is for its key alone.
  std::shared_ptr<base::Symbols> symbols;
  std::vector<std::size_t> changing;
  base::Guards guards;

  bool same_arrays(std::span<const Array> inputs) const;
  /// Whether it serves a call whose key differs in sizes alone.
  bool serves(std::string_view other_key) const;
  std::vector<std::int64_t> sizes_of(std::string_view other_key) const;  // those that change
};

/// A trace for the sizes of one call.
struct Entry {
  ~Entry();
  std::string key;
  std::uint64_t hash = 0;
  std::shared_ptr<Traced> traced;
  std::unique_ptr<CompiledGraph> graph;
  std::shared_ptr<Totals> totals;
};
/// Null where memory cannot hold it.
std::shared_ptr<Entry> instantiate(std::shared_ptr<Traced> traced, const Frame& frame, std::uint64_t hash,
                                   const std::shared_ptr<Totals>& totals);

/// A way in which the arguments of a miss differ from those of the entry used last.
struct Difference {
  std::string where;  // "input 0"; empty: further ones, which are not listed
  std::string what;   // "float32[32,784] -> float32[16,784]"
};

}  // namespace sinter::engine

namespace sinter::detail {

using engine::Entry;

/// The cache of one identity. Every member is safe to call from any thread; none runs user code or destroys arrays under a lock.
class Program {
 public:
  explicit Program(const CompileOptions& options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const CompileOptions options;
  std::atomic<std::int64_t> calls{0}, hits{0};  // without those that recent.h has not added yet
  std::atomic<bool> has_batch_rules{false};     // under vmap it must run as it is
  const std::shared_ptr<engine::Totals> totals = std::make_shared<engine::Totals>();

  /// The entry of a key, when recent.h has none; null: a miss.
  std::shared_ptr<Entry> find(const std::string& key, std::uint64_t hash, std::span<const Array> inputs, bool count);
  /// The same for sizes that come for the first time: made of a trace that serves them.
  std::shared_ptr<Entry> find_for_sizes(const engine::Frame& frame, std::uint64_t hash, bool count);
  void insert(std::shared_ptr<Entry> entry);
  /// Which sizes of a call that is about to be traced change, by their places among all.
  std::vector<std::size_t> changing_sizes(const engine::Frame& frame);
  /// What a trace with changing sizes found about them.
  void note_guards(const engine::Traced& traced);
  /// The entry used last, by this thread where that is known.
  std::shared_ptr<Entry> newest() const;
  /// Notes that a trace begins, and why; after eight retraces says once, on stderr, what keeps changing.
  void note_trace(const std::string& name, const std::vector<engine::Difference>& why, bool first);
  void count_trace();  // that no miss made necessary
  void note_time(double ms);
  struct Contents {
    std::vector<std::shared_ptr<Entry>> entries;
    std::vector<std::shared_ptr<engine::Traced>> traced;  // each once
  };
  Contents take_entries();  // empties the cache
  Contents entries() const;
  Stats stats() const;
  std::string last_miss() const;

 private:
  // What was seen of one size of calls that differ in sizes alone.
  struct Size {
    std::int64_t seen[2] = {0, 0};  // sizes that were traced as numbers
    int count = 0;                  // of them
    std::int64_t fixed = -1;        // the number to which a trace fixed it
    bool changes = false, never = false;
  };
  struct Family {
    std::vector<Size> sizes;
    std::vector<std::shared_ptr<engine::Traced>> traced;  // those with changing sizes, the newest first
  };
  std::vector<std::shared_ptr<engine::Traced>> traced_of(std::string_view prefix) const;

  ForkMutex& lock_;
  std::unordered_map<std::string, Family> families_;  // by the key up to the sizes
  std::list<std::shared_ptr<Entry>> order_;           // most recently used first
  std::unordered_multimap<std::uint64_t, std::list<std::shared_ptr<Entry>>::iterator> index_;
  std::int64_t traces_ = 0, retraces_ = 0;
  double trace_ms_ = 0;
  bool warned_ = false;
  std::string last_miss_ = "none";
  std::map<std::string, std::pair<int, std::string>> changes_;  // where: how often, and how last
};

}  // namespace sinter::detail

namespace sinter::engine {

using detail::Program;

/// Runs the function of a call on placeholders; the program keeps the entry, unless it is made to be compared with one that is there,
/// `like`. Leaves arguments, states and the generator as they were.
std::shared_ptr<Entry> trace(const detail::Call& call, Frame& frame, std::uint64_t hash, const Traced* like = nullptr);

/// The sizes at the end of a key.
std::vector<std::int64_t> sizes_in(std::string_view bytes);

/// A name for each input of the call, by its path in the arguments.
std::vector<std::string> names_of_inputs(const Frame& frame);

/// How the call that `frame` holds differs from `entry`.
std::vector<Difference> differences(const Frame& frame, const Entry& entry);

}  // namespace sinter::engine
