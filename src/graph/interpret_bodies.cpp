// Branches, loops and custom rules in the interpreter. Layer: graph.
#include <algorithm>

#include "graph/bodies.h"
#include "graph/interpret_parts.h"

namespace sinter::graph::interpreter {

using ops::Op;

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
