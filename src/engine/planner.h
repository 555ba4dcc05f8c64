// Planner: makes a Plan. Places every node in memory, orders the work, lowers groups, and assigns buffers by liveness. Layer: engine.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>

#include "engine/plan.h"
#include "kernel/call.h"
#include "kernel/lower/lower.h"

namespace sinter::engine {

class Planner {
 public:
  Planner(Plan& plan, const Prepared& prepared, std::span<const graph::Layout> inputs, const PlanOptions& options)
      : plan_(plan), prepared_(prepared), g_(prepared.graph), partition_(prepared.partition), inputs_(inputs), options_(options) {}
  void run();

 private:
  using Id = graph::Id;
  static constexpr std::uint32_t kNoItem = ~std::uint32_t{0};

  // Memory that holds one or several nodes. Becomes an input or a planned buffer.
  struct Storage {
    std::int64_t bytes = 0;
    std::int64_t input = -1;
    runtime::BufferRef fixed;
    std::uint32_t item = kNoItem;  // that writes it
    int first = -1, last = -1;     // steps that use it
    bool is_output = false;
    bool touched = false;   // by a launch
    bool backward = false;  // the last launch that went through it did so
    bool late = false;      // see PlannedBuffer
    std::uint32_t block = kNoItem;
    std::uint32_t buffer = 0;
    std::int64_t offset = 0;  // in the buffer
  };
  // Storages that share memory, each made of the one before in place.
  struct Block {
    std::int64_t bytes;
    int first, last;  // steps that use it
    bool is_output, late;
    std::vector<std::uint32_t> donors = {};
    std::uint32_t buffer = 0;
    std::int64_t offset = 0, held = 0;  // where it lies, and what it holds there
  };
  class Room;
  // Where a node lies: its storage, and the layout relative to it.
  struct Place {
    std::uint32_t storage;
    graph::Layout layout;
  };
  // A piece of work that is ordered as one: a group, or one of the nodes that have steps of their own.
  struct Item {
    const graph::Group* group = nullptr;
    Id node = 0;                       // Call, Region, Scatter, Concatenate, or a View whose operand must be copied
    std::vector<std::uint32_t> reads;  // storages
    std::vector<std::uint32_t> after;  // items that write parts of what it makes
  };
  struct Use {
    std::uint32_t storage;
    bool written = false, same_index = false;
    int element = 0;          // bytes
    std::int64_t offset = 0;  // in the storage
  };

  void place_nodes();
  void place_view(Id id);
  void find_parts();
  void place_part(Id id, std::uint32_t item);
  void place_block_result(Id id, std::size_t grid);
  std::uint32_t new_storage(std::int64_t bytes, std::uint32_t item);
  std::uint32_t own_storage(Id id, std::uint32_t item);
  void collect_reads();
  std::vector<std::uint32_t> order() const;
  std::vector<char> makes_results() const;
  bool is_region(const Item& item) const { return !item.group && ops::info(g_[item.node].op).kind == ops::OpKind::Region; }
  void emit(const Item& item);
  void emit_group(const graph::Group& group);
  void emit_product(Id id);
  void emit_few_rows(const kernel::CallDesc& d, const Place& x, const Place& y, const Place& out);
  void emit_region(Id id);
  void emit_solve(Id id);
  void emit_sort(Id id);
  void emit_convolution(Id id);
  Place row_major_operand(Id id);
  void emit_call(std::shared_ptr<const backends::Routine> routine, std::vector<std::pair<Place, bool>> places, int bytes,
                 std::optional<kernel::CallDesc> product = {});
  void emit_copy(Id from, const Place& to, const Shape& shape);
  void emit_lowered(std::vector<kernel::Lowered> list, FunctionRef<const Place&(Id)> place_of, FunctionRef<Id(Id)> constant_of);
  std::pair<Place, kernel::CallDesc::Matrix> product_operand(Id id, std::int64_t batch, bool of_library);
  Worth worth() const;  // of its kernels
  void assign_buffers();
  std::vector<Block> make_blocks();
  std::uint32_t new_buffer(std::int64_t bytes, bool is_output);
  void bind_slots();
  void make_outputs();
  Slot slot(std::uint32_t storage, std::int64_t offset_bytes) const;
  std::uint32_t constant_index(Id id);

  Plan& plan_;
  const Prepared& prepared_;
  const graph::Graph& g_;
  const graph::Partition& partition_;
  std::span<const graph::Layout> inputs_;
  const PlanOptions options_;
  std::vector<std::optional<Place>> places_;
  std::map<Id, std::vector<std::uint32_t>> parts_;  // of a concatenate: items that write parts of it
  std::vector<Id> whole_;                           // of an operand of a concatenate that is computed in its place there: the concatenate
  std::vector<Storage> storages_;
  std::vector<Item> items_;
  std::vector<kernel::Kernel> kernels_;  // of the launches, in order
  std::unordered_map<Id, std::uint32_t> constant_index_;
  std::vector<std::vector<Use>> uses_;                                      // by step
  std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> slots_;  // by step: storage and byte offset of each slot
};

}  // namespace sinter::engine
