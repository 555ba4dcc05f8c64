// Running blocks (graph/bodies.h): tasks share them, each task on one thread and with scratch memory of that thread. What a task does
// depends on shapes alone, so the bits depend on no number of threads. Layer: engine.
#include <algorithm>
#include <atomic>

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

// An operand or a result: memory of the whole, and what a window is.
struct Part {
  char* memory = nullptr;  // null: nobody wants it
  graph::Type type;
  std::int64_t row = 0;  // bytes of one element of the axis of windows

  Part(const graph::Type& t, std::size_t grid) : type(t), row(bytes_of(graph::window_type(t, grid, 1))) {}
  char* at(const Shape& grid, std::int64_t point, BlocksParts::Window w) const {
    return memory + graph::grid_offset(grid, type.shape, point) * size_of(type.dtype) + w.start * row;
  }
};

class Runner {
 public:
  Runner(const Region& r, const Memory& memory, bool interpreted) : r_(r), p_(r.node), interpreted_(interpreted) {
    graph::Graph around;  // for the types
    graph::Node node = r.node;
    for (std::size_t i = 0; i < r.types.size(); ++i) {
      node.in[i] = around.add({ops::Op::Input, {}, {static_cast<std::int64_t>(i)}, r.types[i]});
      operands_.emplace_back(r.types[i], p_.grid).memory = memory.at(r.operands[i]);
    }
    grid_ = graph::grid_of(around, node);
    for (const graph::Type& t : graph::result_types(around, node)) results_.emplace_back(t, p_.grid);
    for (const Region::Result& result : r.results) results_[result.index].memory = memory.at(result.slot);
    // Behind the scratch memory of a body: places for what is added to a sum, or wanted by nobody.
    for (const auto& body : r.bodies) plan_bytes_ = std::max(plan_bytes_, body->scratch_bytes());
    for (std::size_t i = 0; i < p_.results; ++i) {
      std::int64_t most = 0;
      for (std::size_t b = 0; b < p_.blocks; ++b)
        if (!results_[i].memory || (p_.is_sum(i) && b > 0)) most = std::max(most, p_.result(b, i).size * results_[i].row);
      besides_.push_back(besides_bytes_);
      besides_bytes_ += (most + kAlignment - 1) / kAlignment * kAlignment;
    }
  }

  void run() const {
    const std::int64_t points = grid_.product();
    // Sums are one task's for each point; else every block is a task.
    const bool whole = std::any_of(r_.results.begin(), r_.results.end(), [&](const auto& r) { return p_.is_sum(r.index); });
    const std::int64_t blocks = static_cast<std::int64_t>(p_.blocks), tasks = whole ? points : points * blocks;
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
  static constexpr std::int64_t kAlignment = 64;

  void run_block(std::int64_t point, std::size_t block, char* scratch) const {
    std::vector<char*> in, out;
    for (std::size_t i = 0; i < p_.operands; ++i) in.push_back(operands_[i].at(grid_, point, p_.operand(block, i)));
    const auto is_besides = [&](std::size_t i) { return !results_[i].memory || (p_.is_sum(i) && block > 0); };
    for (std::size_t i = 0; i < p_.results; ++i)
      out.push_back(is_besides(i) ? scratch + plan_bytes_ + besides_[i] : results_[i].at(grid_, point, p_.result(block, i)));
    r_.bodies[p_.body(block)]->run_part(in, out, scratch, interpreted_);
    for (std::size_t i = 0; i < p_.results; ++i) {
      if (!results_[i].memory || !is_besides(i)) continue;
      const BlocksParts::Window w = p_.result(block, i);
      (results_[i].type.dtype == Dtype::float64 ? add_up<double> : add_up<float>)(results_[i].at(grid_, point, w), out[i],
                                                                                  w.size * results_[i].row);
    }
  }

  const Region& r_;
  const BlocksParts p_;
  const bool interpreted_;
  Shape grid_;
  std::vector<Part> operands_, results_;
  std::vector<std::int64_t> besides_;  // by result: its offset there
  std::int64_t plan_bytes_ = 0, besides_bytes_ = 0;
};

}  // namespace

void run_blocks(const Region& r, const Memory& memory, bool interpreted) { Runner(r, memory, interpreted).run(); }

}  // namespace sinter::engine
