// Graphs and arrays for tests: tensors as arrays of any layout, arrays as tensors, and ways to run a graph.
#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "engine/plan.h"
#include "engine/prepare.h"
#include "engine/value.h"
#include "graph/interpret.h"

namespace sinter::tests {

using graph::Graph;
using graph::Tensor;

/// How the elements of an input lie in memory.
enum class Memory { plain, reversed_axes, gaps, backwards };
inline constexpr Memory kMemories[] = {Memory::plain, Memory::reversed_axes, Memory::gaps, Memory::backwards};

inline std::int64_t elements(const Shape& s) { return s.product(); }

/// The tensor as an array whose elements lie in memory as asked.
inline Array place(const Tensor& t, Memory m = Memory::plain) {
  std::size_t rank = t.shape.size(), size = static_cast<std::size_t>(size_of(t.dtype));
  graph::Strides plain = graph::row_major(t.shape), strides = plain;
  std::int64_t n = elements(t.shape), step = m == Memory::gaps ? 3 : 1, offset = 0;
  if (m == Memory::reversed_axes) {
    std::int64_t s = 1;
    for (std::size_t d = 0; d < rank; ++d) {
      strides[d] = s;
      s *= t.shape[d];
    }
  }
  for (std::size_t d = 0; d < rank; ++d) {
    strides[d] *= step;
    if (m == Memory::backwards && t.shape[d] > 0) {
      offset += (t.shape[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
  }
  runtime::BufferRef buffer = runtime::allocate(static_cast<std::size_t>(n * step) * size);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = offset, rest = i;
    for (std::size_t d = 0; d < rank; ++d) {
      at += rest / plain[d] * strides[d];
      rest %= plain[d];
    }
    std::memcpy(static_cast<char*>(buffer.data()) + static_cast<std::size_t>(at) * size,
                t.bytes.data() + static_cast<std::size_t>(i) * size, size);
  }
  return engine::make_ready(std::move(buffer), {offset, strides}, t.dtype, t.shape);
}

inline std::vector<Array> place(std::span<const Tensor> tensors, Memory m = Memory::plain) {
  std::vector<Array> arrays;
  for (const Tensor& t : tensors) arrays.push_back(place(t, m));
  return arrays;
}

/// The elements in row-major order; evaluates.
inline Tensor read(const Array& a) {
  engine::evaluate({&a, 1});
  Array c = engine::contiguous(a);
  const engine::Value& v = *c.get();
  Tensor t{v.dtype, v.shape, {}};
  std::int64_t size = size_of(v.dtype);
  t.bytes.resize(static_cast<std::size_t>(elements(v.shape) * size));
  if (!t.bytes.empty()) std::memcpy(t.bytes.data(), static_cast<const char*>(v.buffer.data()) + v.layout.offset * size, t.bytes.size());
  return t;
}

inline std::vector<Tensor> read(std::span<const Array> arrays) {
  std::vector<Tensor> tensors;
  for (const Array& a : arrays) tensors.push_back(read(a));
  return tensors;
}

/// The plan that a compiled function makes of a graph for inputs of these layouts.
inline engine::Plan plan_of(const Graph& g, std::span<const Array> inputs, bool simplify = true, bool fuse = true) {
  engine::GraphOptions options;
  options.simplify = simplify;
  options.fuse = fuse;
  engine::Prepared p = engine::prepare(g, options);
  std::vector<graph::Layout> layouts;
  for (const Array& a : inputs) layouts.push_back({0, a.get()->layout.strides});
  return engine::Plan(p, layouts, {});
}

/// The outputs by the plan of a compiled function.
inline std::vector<Tensor> run_plan(const Graph& g, std::span<const Tensor> inputs, Memory m = Memory::plain) {
  const std::vector<Array> arrays = place(inputs, m);
  return read(plan_of(g, arrays).run(arrays, {}, {}, false));
}

/// The outputs, each node evaluated on its own as a regular call does.
inline std::vector<Tensor> run_regular(const Graph& g, std::span<const Array> inputs) {
  std::vector<Array> values;
  for (graph::Id id = 0; id < g.size(); ++id) {
    const graph::Node& n = g[id];
    std::vector<Array> in;
    for (graph::Id u : n.in) in.push_back(values[u]);
    values.push_back(n.op == ops::Op::Input ? inputs[static_cast<std::size_t>(n.attrs[0])]
                                            : engine::make(n.op, std::move(in), n.attrs, n.type.dtype, n.type.shape, n.bodies));
  }
  std::vector<Tensor> out;
  for (graph::Id id : g.outputs()) out.push_back(read(values[id]));
  return out;
}

}  // namespace sinter::tests
