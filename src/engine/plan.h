// Plan: a graph for inputs of known shape and layout, as a flat list of steps over planned buffers. Layer: engine.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backends/cpu/products.h"
#include "engine/kernel_store.h"
#include "engine/prepare.h"
#include "graph/layout.h"
#include "runtime/buffer.h"
#include "sinter/array.h"

namespace sinter::engine {

inline std::int64_t bytes_of(const graph::Type& t) { return t.shape.product() * size_of(t.dtype); }
/// Rounded up to what keeps the next piece of the same memory aligned as buffers are.
inline std::int64_t aligned(std::int64_t bytes) {
  return static_cast<std::int64_t>(runtime::Buffer::aligned(static_cast<std::size_t>(bytes)));
}

/// Memory that a step uses: an input of the call, or a planned buffer; offsets in bytes.
struct Slot {
  bool is_input = false;
  std::uint32_t number = 0;
  std::int64_t offset = 0;
};

struct Launch {
  std::shared_ptr<const Executable> kernel;
  std::vector<Slot> buffers;
  std::vector<std::int64_t> scratch;   // the kernel's scratch buffers, which follow: offsets in the running thread's memory
  std::int64_t scratch_bytes = 0;      // a thread: its buffers, and behind them its block
  std::vector<std::uint64_t> words;    // the launch's block; buffers and scalars are filled in at each call
  std::vector<std::uint32_t> scalars;  // indices into the call's constants
  std::int64_t tasks = 0, grain = 0;
  std::int64_t bytes = 0;     // that it moves at least
  double work = 0;            // instructions, about
  bool backward = false;      // the last tasks first: an earlier launch has left their memory in a cache
  std::uint64_t written = 0;  // bit b: the kernel writes buffer b
  std::uint64_t large = 0;    // of these, those whose memory no cache holds
};
struct Call {
  static constexpr std::size_t kMostBuffers = 4;
  std::shared_ptr<const backends::Routine> routine;
  std::vector<Slot> buffers;
  std::optional<kernel::CallDesc> product = {};  // of which the routine was made
};
class Plan;
/// A branch, a loop or blocks (graph/bodies.h). Operands are row-major.
struct Region {
  graph::Node node;
  std::vector<std::shared_ptr<const Plan>> bodies;  // none for one that is never run
  std::vector<Slot> operands;
  std::vector<graph::Type> types;  // of the operands
  struct Result {
    std::uint32_t index;
    Slot slot;
    graph::Strides strides;  // row-major, but for blocks
  };
  std::vector<Result> results;  // those that are used
};
using Step = std::variant<Launch, Call, Region>;

/// A buffer of the plan. It is allocated for the call, unless it is an output that may take the memory of an input that nobody else
/// holds (`donor`).
struct PlannedBuffer {
  std::int64_t bytes = 0;
  bool is_output = false;
  bool late = false;                  // a region brings the memory
  std::vector<std::uint32_t> donors;  // inputs of the same size that are dead when this buffer is first written
  std::int64_t inside = -1;           // it is the first part of this other buffer, unless an input has given that
  runtime::BufferRef fixed;           // constants of several elements: memory of the plan's own, never written
};

struct Output {
  Slot slot;
  graph::Layout layout;  // relative to the slot
  Dtype dtype;
  Shape shape;
  bool is_input = false;  // the input itself, unchanged
};

/// Memory that a call takes, and what a plan without reuse would take beyond it; in bytes.
struct MemoryUse {
  std::int64_t results = 0, between = 0;  // buffers of results, and others beside them
  std::int64_t reused = 0, in_place = 0;  // saved
  std::int64_t donated = 0;               // of the results: where arguments give their memory
};

struct PlanOptions {
  bool fast_math = false;
  bool alone = false;  // it will run on one thread, by run_part
  bool once = false;   // it will run once: kernels that do little are not worth to be generated
};

/// The arrays that a plan runs on: those of the call, then others that it finds in place, so that calls of several threads need not
/// count references to them.
struct Inputs {
  Inputs(std::span<const Array> call) : given(call) {}
  Inputs(const std::vector<Array>& call) : given(call) {}
  Inputs(std::span<const Array> call, std::span<const Array> others) : given(call), constants(others) {}
  const Array& operator[](std::size_t i) const { return i < given.size() ? given[i] : constants[i - given.size()]; }
  std::size_t size() const { return given.size() + constants.size(); }
  std::span<const Array> given, constants;
};

class Plan {
 public:
  /// Plans the graph for inputs of these layouts (offset 0). Generates the kernels that the store lacks.
  Plan(const Prepared& prepared, std::span<const graph::Layout> inputs, const PlanOptions& options);

  /// `inputs` are ready. `constants` replaces the graph's Constant nodes of one element, in node order; empty: as in the graph.
  /// `owned`: see CompiledGraph::run. `interpreted`: through kernel::interpret, the oracle for the code generator.
  std::vector<Array> run(const Inputs& inputs, std::span<const int> owned, std::span<const std::uint64_t> constants,
                         bool interpreted = false) const;

  /// On memory of the caller's: inputs and outputs row-major, outputs apart from all else, scratch of part_bytes() (64-byte aligned).
  /// Within parallel_for_libraries. The plan is `alone` and has no regions.
  void run_part(std::span<char* const> inputs, std::span<char* const> outputs, char* scratch, bool interpreted) const;
  std::int64_t part_bytes() const;

  const KernelCost& cost() const { return cost_; }
  std::string text() const;  // steps and kernels
  /// Memory, then what each kernel moves and computes, those of branches, loops and blocks too, in what time at least, and the least time
  /// that it took: a plan that was asked measures from then on. Measures the memory at the first call in a process, if a kernel moves more
  /// than a cache holds.
  std::string explain(const std::string& indent = "  ") const;
  const std::vector<Step>& steps() const { return steps_; }

 private:
  friend class Planner;
  friend struct PlanFile;
  Plan() = default;
  void finish();  // what follows from the steps
  void note_time(const Step& step, double ms) const;
  std::int64_t scratch_bytes(bool alone) const;  // of all threads, or of one, for the launch that takes most
  std::vector<Step> steps_;
  std::vector<PlannedBuffer> buffers_;
  std::vector<Output> outputs_;
  std::vector<std::uint64_t> constants_;
  KernelCost cost_;
  MemoryUse memory_;
  struct Times {
    explicit Times(std::size_t steps) : least_ms(steps) {}
    std::atomic<bool> asked = false;
    std::vector<std::atomic<double>> least_ms;  // by step; 0: not measured
  };
  std::shared_ptr<Times> times_;
  std::size_t longest_ = 0;  // block of a launch, in words
};

}  // namespace sinter::engine
