// Running blocks (graph/bodies.h): tasks share them, each task on one thread and with scratch memory of that thread. What a task does
// depends on shapes alone, so the bits depend on no number of threads. Layer: engine.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "engine/memory.h"
#include "graph/bodies.h"
#include "runtime/pool.h"

namespace sinter::engine {
namespace {

using graph::BlocksParts;

template <class T>
void add_up(char* to, const char* from, std::int64_t bytes) {
  T* sum = reinterpret_cast<T*>(to);
  const T* more = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < bytes / static_cast<std::int64_t>(sizeof(T)); ++i) sum[i] += more[i];
}

// An operand or a result: where it lies, and what a window on it is.
struct Part {
  char* memory = nullptr;  // null: nobody wants it
  Dtype dtype;
  std::vector<std::int64_t> steps;  // of the axes of the grid, in bytes
  std::int64_t step, row;           // of the axis of windows: from an element to the next, and bytes of one

  Part(const graph::Type& t, std::size_t grid) : dtype(t.dtype), row(bytes_of(graph::window_type(t, grid, 1))) {
    place(nullptr, t.shape, grid, graph::row_major(t.shape));
  }
  void place(char* at, const Shape& shape, std::size_t grid, const graph::Strides& strides) {
    memory = at;
    steps.clear();
    for (std::size_t d = 0; d < grid; ++d) steps.push_back(shape[d] == 1 ? 0 : static_cast<std::int64_t>(strides[d]) * size_of(dtype));
    step = strides[grid] * size_of(dtype);
  }
  bool in_one_piece() const { return step == row; }
  // Where a window that begins with this row begins.
  char* at(const Shape& grid, std::int64_t point, std::int64_t start) const {
    std::int64_t offset = start * step;
    for (std::size_t d = grid.size(); d-- > 0; point /= grid[d]) offset += point % grid[d] * steps[d];
    return memory + offset;
  }
  // Brings the rows of a window there.
  void put(char* to, const char* from, std::int64_t rows, bool add) const {
    const std::int64_t pieces = in_one_piece() ? 1 : rows, bytes = in_one_piece() ? rows * row : row;
    for (std::int64_t i = 0; i < pieces; ++i, to += step, from += bytes) {
      if (!add)
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      else
        (dtype == Dtype::float64 ? add_up<double> : add_up<float>)(to, from, bytes);
    }
  }
};

class Runner {
 public:
  Runner(const Region& r, const Memory& memory, bool interpreted) : r_(r), p_(r.node), blocks_(p_.blocks()), interpreted_(interpreted) {
    graph::Graph around;  // for the types
    graph::Node node = r.node;
    for (std::size_t i = 0; i < r.types.size(); ++i) {
      node.in[i] = around.add({ops::Op::Input, {}, {static_cast<std::int64_t>(i)}, r.types[i]});
      operands_.emplace_back(r.types[i], p_.grid).memory = memory.at(r.operands[i]);
    }
    grid_ = graph::grid_of(around, node);
    const std::vector<graph::Type> types = graph::result_types(around, node);
    for (const graph::Type& t : types) results_.emplace_back(t, p_.grid);
    for (const Region::Result& result : r.results)
      results_[result.index].place(memory.at(result.slot), types[result.index].shape, p_.grid, result.strides);
    // Behind the scratch memory of a body: places for what does not go to a result as it is.
    for (const auto& body : r.bodies)
      if (body) plan_bytes_ = std::max(plan_bytes_, body->part_bytes());
    for (std::size_t i = 0; i < p_.results; ++i) {
      std::int64_t most = 0;
      for (std::size_t b = 0; b < blocks_.size(); ++b)
        if (is_besides(i, b)) most = std::max(most, size(i, b) * results_[i].row);
      besides_.push_back(besides_bytes_);
      besides_bytes_ += aligned(most);
    }
  }

  void run() const {
    const std::int64_t points = grid_.product();
    // Sums are one task's for each point; else every block is a task.
    const bool whole = std::any_of(r_.results.begin(), r_.results.end(), [&](const auto& r) { return p_.is_sum(r.index); });
    const std::int64_t blocks = static_cast<std::int64_t>(blocks_.size()), tasks = whole ? points : points * blocks;
    if (tasks == 0) return;
    const std::int64_t threads = std::min<std::int64_t>(runtime::max_threads(), tasks);
    const std::int64_t each = plan_bytes_ + besides_bytes_;
    const runtime::BufferRef scratch = runtime::allocate(static_cast<std::size_t>(threads * each));
    std::atomic<std::int64_t> next{0};
    runtime::parallel_for_libraries(tasks, 1, [&](std::int64_t begin, std::int64_t end) {
      char* mine = static_cast<char*>(scratch.data()) + each * next.fetch_add(1);
      for (std::int64_t task = begin; task < end; ++task)
        for (std::int64_t b = whole ? 0 : task % blocks; b < (whole ? blocks : task % blocks + 1); ++b)
          run_block(whole ? task : task / blocks, static_cast<std::size_t>(b), mine);
    });
  }

 private:
  bool is_besides(std::size_t result, std::size_t block) const {
    const Part& r = results_[result];
    return !r.memory || !r.in_one_piece() || (p_.is_sum(result) && block > 0);
  }

  // Rows of a result's window in block number `block`.
  std::int64_t size(std::size_t result, std::size_t block) const { return p_.result(blocks_[block].body, result).size; }

  void run_block(std::int64_t point, std::size_t block, char* scratch) const {
    const BlocksParts::Block& b = blocks_[block];
    Few<char*> in(p_.operands), out(p_.results);
    for (std::size_t i = 0; i < p_.operands; ++i) in[i] = operands_[i].at(grid_, point, p_.start(b, i));
    const auto place = [&](std::size_t i) { return results_[i].at(grid_, point, p_.start(b, p_.operands + i)); };
    for (std::size_t i = 0; i < p_.results; ++i) out[i] = is_besides(i, block) ? scratch + plan_bytes_ + besides_[i] : place(i);
    r_.bodies[b.body]->run_part(in, out, scratch, interpreted_);
    for (std::size_t i = 0; i < p_.results; ++i)
      if (results_[i].memory && is_besides(i, block)) results_[i].put(place(i), out[i], size(i, block), p_.is_sum(i) && block > 0);
  }

  const Region& r_;
  const BlocksParts p_;
  const std::vector<BlocksParts::Block> blocks_;
  const bool interpreted_;
  Shape grid_;
  std::vector<Part> operands_, results_;
  std::vector<std::int64_t> besides_;  // by result: its offset there
  std::int64_t plan_bytes_ = 0, besides_bytes_ = 0;
};

}  // namespace

void run_blocks(const Region& r, const Memory& memory, bool interpreted) { Runner(r, memory, interpreted).run(); }

}  // namespace sinter::engine
