// Branches, loops and custom rules in the interpreter. Layer: graph.
#include <algorithm>

#include "graph/bodies.h"
#include "graph/build.h"
#include "graph/interpret_parts.h"

namespace sinter::graph::interpreter {

using ops::Op;

namespace {

Tensor sum(const Tensor& a, const Tensor& b) {
  Graph g;
  const Id x = g.add({Op::Input, {}, {0}, {a.dtype, a.shape}}), y = g.add({Op::Input, {}, {1}, {a.dtype, a.shape}});
  g.set_outputs({elementwise(g, Op::Add, {x, y})});
  return interpret(g, std::vector<Tensor>{a, b})[0];
}

std::vector<Tensor> run_blocks(const Node& n, const std::vector<Tensor>& operands) {
  Graph around;  // for the types
  Node node = n;
  for (std::size_t i = 0; i < operands.size(); ++i)
    node.in[i] = around.add({Op::Input, {}, {static_cast<std::int64_t>(i)}, {operands[i].dtype, operands[i].shape}});
  const BlocksParts p(node);
  const Shape grid = grid_of(around, node);
  const auto bytes_of = [](const Type& t) { return count_of(t.shape) * static_cast<std::size_t>(size_of(t.dtype)); };
  // The window on what belongs to a point, of an array of this type: where it begins, and its own type.
  const auto window = [&](const Type& all, std::int64_t point, const BlocksParts::Block& b, std::size_t array) {
    const std::int64_t row = window_type(all, p.grid, 1).shape.product();
    return std::pair((grid_offset(grid, all.shape, point) + p.start(b, array) * row) * size_of(all.dtype),
                     window_type(all, p.grid, p.window(b.body, array).size));
  };
  const auto part = [&](const Tensor& all, std::int64_t point, const BlocksParts::Block& b, std::size_t array) {
    const auto [at, t] = window({all.dtype, all.shape}, point, b, array);
    const auto begin = all.bytes.begin() + at;
    return Tensor{t.dtype, t.shape, {begin, begin + static_cast<std::ptrdiff_t>(bytes_of(t))}};
  };
  std::vector<Tensor> results;
  for (const Type& t : result_types(around, node)) results.push_back({t.dtype, t.shape, std::vector<std::byte>(bytes_of(t))});
  const std::vector<BlocksParts::Block> blocks = p.blocks();
  for (std::int64_t point = 0; point < grid.product(); ++point)
    for (const BlocksParts::Block& b : blocks) {
      std::vector<Tensor> in;
      for (std::size_t i = 0; i < p.operands; ++i) in.push_back(part(operands[i], point, b, i));
      const std::vector<Tensor> out = interpret(*n.bodies[b.body], in);
      for (std::size_t i = 0; i < p.results; ++i) {
        Tensor& to = results[i];
        const std::size_t array = p.operands + i;
        const Tensor value = p.is_sum(i) && &b != &blocks[0] ? sum(part(to, point, b, array), out[i]) : out[i];
        std::copy(value.bytes.begin(), value.bytes.end(), to.bytes.begin() + window({to.dtype, to.shape}, point, b, array).first);
      }
    }
  return results;
}

}  // namespace

std::vector<Tensor> run_bodies(const Node& n, std::vector<Tensor> operands) {
  auto is_true = [](const Tensor& t) { return t.bytes[0] != std::byte{0}; };
  switch (n.op) {
    case Op::Checkpoint: return interpret(*n.bodies[0], operands);
    case Op::Cond: return interpret(*n.bodies[is_true(operands[0]) ? 0 : 1], std::span(operands).subspan(1));
    case Op::While: {
      const auto carries = operands.begin() + n.attrs[0];
      while (is_true(interpret(*n.bodies[0], operands)[0])) {
        std::vector<Tensor> next = interpret(*n.bodies[1], operands);
        std::move(next.begin(), next.end(), carries);
      }
      return {carries, operands.end()};
    }
    case Op::Scan: break;
    case Op::Print: operands.resize(1); return operands;  // results alone
    case Op::Blocks: return run_blocks(n, operands);
    default: operands.resize(count_attribute(n, 0)); return operands;
  }
  const ScanParts p(n);
  std::vector<Tensor> results(operands.begin() + static_cast<std::ptrdiff_t>(p.constants),
                              operands.end() - static_cast<std::ptrdiff_t>(p.sequences));
  const std::size_t stacks = p.outputs + p.carries;
  for (std::size_t i = 0; i < stacks; ++i) {
    const Type t = stacked(i < p.outputs ? (*n.bodies[0])[n.bodies[0]->outputs()[p.carries + i]].type
                                         : Type{results[i - p.outputs].dtype, results[i - p.outputs].shape},
                           p.length);
    results.push_back({t.dtype, t.shape, std::vector<std::byte>(count_of(t.shape) * static_cast<std::size_t>(size_of(t.dtype)))});
  }
  const std::int64_t length = p.length;
  for (std::int64_t step = 0; step < length; ++step) {
    const std::int64_t at = p.reverse ? length - 1 - step : step;
    std::vector<Tensor> in(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(p.constants));
    in.insert(in.end(), results.begin(), results.begin() + static_cast<std::ptrdiff_t>(p.carries));
    for (std::size_t i = 0; i < p.sequences; ++i) {
      const Tensor& all = operands[p.constants + p.carries + i];
      const Type t = element_of({all.dtype, all.shape});
      const auto bytes = static_cast<std::ptrdiff_t>(count_of(t.shape)) * size_of(t.dtype);
      in.push_back({t.dtype, t.shape, {all.bytes.begin() + at * bytes, all.bytes.begin() + (at + 1) * bytes}});
    }
    std::vector<Tensor> out = interpret(*n.bodies[0], in);
    for (std::size_t i = 0; i < stacks; ++i) {
      const Tensor& element = i < p.outputs ? out[p.carries + i] : results[i - p.outputs];
      std::copy(element.bytes.begin(), element.bytes.end(),
                results[p.carries + i].bytes.begin() + at * static_cast<std::ptrdiff_t>(element.bytes.size()));
    }
    std::move(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(p.carries), results.begin());
  }
  return results;
}

}  // namespace sinter::graph::interpreter
