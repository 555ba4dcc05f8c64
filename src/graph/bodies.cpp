#include "graph/bodies.h"

#include <algorithm>
#include <utility>

#include "base/symbols.h"

namespace sinter::graph {
namespace {

using ops::Op;

std::vector<Type> types_of(const Graph& g, std::span<const Id> ids) {
  std::vector<Type> types;
  for (Id id : ids) types.push_back(g[id].type);
  return types;
}

std::vector<Type> differentiable(std::span<const Type> types) {
  std::vector<Type> result;
  for (const Type& t : types)
    if (is_differentiable(t.dtype)) result.push_back(t);
  return result;
}

void append(std::vector<Type>& to, std::span<const Type> more) { to.insert(to.end(), more.begin(), more.end()); }

// What the bodies take and give, but for custom_vmap, whose bodies differ.
struct Signature {
  std::vector<Type> inputs, outputs;
};
Signature signature(const Graph& g, const Node& n, std::size_t body) {
  const std::vector<Type> in = types_of(g, n.in);
  const std::span<const Type> all(in);
  switch (n.op) {
    case Op::Cond: return {{in.begin() + 1, in.end()}, output_types(*n.bodies[0])};
    case Op::While: {
      const std::span<const Type> carries = all.subspan(count_attribute(n, 0));
      if (body == 0) return {in, {{Dtype::bool_, {}}}};
      return {in, {carries.begin(), carries.end()}};
    }
    case Op::Scan: {
      const ScanParts p(n);
      Signature s{in, {all.begin() + static_cast<std::ptrdiff_t>(p.constants), all.end() - static_cast<std::ptrdiff_t>(p.sequences)}};
      for (std::size_t i = p.constants + p.carries; i < in.size(); ++i) s.inputs[i] = element_of(in[i]);
      const std::vector<Type> outputs = output_types(*n.bodies[0]);
      append(s.outputs, std::span(outputs).subspan(p.carries));
      return s;
    }
    case Op::Blocks: {
      const BlocksParts p(n);
      Signature s;
      for (std::size_t i = 0; i < p.operands; ++i) s.inputs.push_back(window_type(in[i], p.grid, p.operand(body, i).size));
      s.outputs = output_types(*n.bodies[body]);
      for (std::size_t i = 0; i < p.results; ++i) s.outputs[i].shape[0] = p.result(body, i).size;
      return s;
    }
    case Op::CustomVjp: {
      const std::size_t outputs = count_attribute(n, 0), residuals = count_attribute(n, 1), arguments = count_attribute(n, 2);
      Signature s;
      append(s.inputs, all.subspan(outputs, residuals));
      append(s.inputs, differentiable(all.first(outputs)));
      append(s.inputs, all.subspan(outputs + residuals + arguments));
      append(s.outputs, differentiable(all.subspan(outputs + residuals, arguments)));
      return s;
    }
    case Op::CustomJvp: {
      const std::size_t outputs = count_attribute(n, 0), arguments = count_attribute(n, 1);
      Signature s;
      append(s.inputs, all.subspan(outputs, arguments));
      append(s.inputs, differentiable(all.subspan(outputs, arguments)));
      append(s.inputs, all.subspan(outputs + arguments));
      append(s.outputs, differentiable(all.first(outputs)));
      return s;
    }
    default: return {in, output_types(*n.bodies[body])};
  }
}

Signature batched_signature(const Graph& g, const Node& n, std::int64_t size) {
  const std::size_t outputs = count_attribute(n, 0), arguments = count_attribute(n, 1);
  Signature s;
  for (std::size_t i = 0; i < n.in.size(); ++i) {
    const Type& t = g[n.in[i]].type;
    if (i < outputs)
      s.outputs.push_back(stacked(t, size));
    else
      s.inputs.push_back(i < outputs + arguments ? stacked(t, size) : t);
  }
  return s;
}

// The rules of bodies.h for a blocks node.
void verify_blocks(const Graph& g, const Node& n, FunctionRef<void(bool, const char*)> require) {
  require(n.attrs.size() > 2 && !n.bodies.empty() && !n.in.empty(), "there is no block");
  const BlocksParts p(n);
  for (const Body& body : n.bodies) {
    const std::vector<Type> outputs = output_types(*body);
    require(outputs.size() == p.results && p.sums <= p.results, "the number of results is wrong");
    require(std::all_of(outputs.begin(), outputs.end(), [](const Type& t) { return !t.shape.empty(); }),
            "a result has no axis for windows");
    require(inputs_of(*body).size() == p.operands, "a body does not take every operand");
    for (Id id = 0; id < body->size(); ++id)
      require(ops::info((*body)[id].op).kind != ops::OpKind::Region || (*body)[id].op == Op::Checkpoint, "a part has branches or loops");
  }
  require(n.attrs.size() == p.words(), "the number of windows is wrong");
  std::vector<std::int64_t> extents;  // of all arrays
  for (Id in : n.in) {
    const Shape& shape = g[in].type.shape;
    require(shape.size() > p.grid, "an operand has no axis for windows");
    extents.push_back(base::peek(shape[p.grid]));
  }
  const Shape grid = grid_of(g, n);
  for (Id in : n.in)
    for (std::size_t d = 0; d < p.grid; ++d)
      require(g[in].type.shape[d] == 1 || g[in].type.shape[d] == grid[d], "an operand does not fit the grid");
  for (std::size_t i = 0; i < p.results; ++i) extents.push_back(base::peek(p.extent(i)));
  const std::vector<BlocksParts::Block> blocks = p.blocks();
  require(!blocks.empty(), "there is no block");
  for (std::size_t a = 0; a < extents.size(); ++a) {
    std::vector<std::pair<std::int64_t, std::int64_t>> windows;  // start, size
    for (const BlocksParts::Block& b : blocks) {
      windows.emplace_back(p.start(b, a), base::peek(p.window(b.body, a).size));
      const auto [start, size] = windows.back();
      require(start >= 0 && size >= 0 && start + size <= extents[a], "a window is not within its array");
    }
    if (!p.is_cut(a)) {
      require(windows[0] == std::pair(std::int64_t{0}, extents[a]), "an array is neither cut into parts nor read whole first");
      continue;
    }
    std::sort(windows.begin(), windows.end());
    std::int64_t end = 0;
    for (const auto& [start, size] : windows) require(start == std::exchange(end, start + size), "the windows of an array do not cover it");
    require(end == extents[a], "the windows of an array do not cover it");
  }
  const std::vector<Type> results = result_types(g, n);
  for (std::size_t i = p.results - p.sums; i < p.results; ++i) {
    const Dtype t = results[i].dtype;
    require(t == Dtype::float32 || t == Dtype::float64 || t == Dtype::complex64, "a sum has a dtype that is not added up");
  }
}

}  // namespace

std::vector<Type> output_types(const Graph& body) { return types_of(body, body.outputs()); }

std::vector<BlocksParts::Block> BlocksParts::blocks() const {
  std::vector<Block> all;
  for (std::size_t body = 0; body < bodies; ++body)
    for (std::int64_t k = 0; k < base::peek(count(body)); ++k) all.push_back({body, k});
  return all;
}
std::int64_t BlocksParts::start(const Block& b, std::size_t array) const {
  const Window w = window(b.body, array);
  return base::peek(w.start) + (is_cut(array) ? b.number * base::peek(w.size) : 0);
}

Shape grid_of(const Graph& g, const Node& n) {
  Shape grid;
  for (std::size_t d = 0; d < count_attribute(n, 0); ++d) {
    Dim size = 1;
    for (Id in : n.in)
      if (const Dim& own = g[in].type.shape[d]; own != 1) size = own;
    grid.push_back(size);
  }
  return grid;
}

std::int64_t grid_offset(const Shape& grid, const Shape& shape, std::int64_t point) {
  std::int64_t stride = 1, offset = 0;
  for (std::size_t d = grid.size(); d < shape.size(); ++d) stride *= shape[d];
  for (std::size_t d = grid.size(); d-- > 0;) {
    if (shape[d] != 1) offset += point % grid[d] * stride;
    stride *= shape[d];
    point /= grid[d];
  }
  return offset;
}

Type window_type(const Type& whole, std::size_t grid, const Dim& size) {
  Type t = whole;
  for (std::size_t d = 0; d < grid; ++d) t.shape.erase(0);
  t.shape[0] = size;
  return t;
}

Type element_of(const Type& t) {
  Type e = t;
  e.shape.erase(0);
  return e;
}
Type stacked(const Type& t, const Dim& length) {
  Type s = t;
  s.shape.insert(0, length);
  return s;
}

std::vector<Type> result_types(const Graph& g, const Node& n) {
  if (ops::info(n.op).kind == ops::OpKind::Custom) return types_of(g, std::span(n.in).first(count_attribute(n, 0)));
  if (n.op == Op::Print) return types_of(g, std::span(n.in).first(1));
  if (n.op == Op::While) return output_types(*n.bodies[1]);
  std::vector<Type> types = output_types(*n.bodies[0]);
  if (n.op == Op::Blocks) {
    const BlocksParts p(n);
    const Shape grid = grid_of(g, n);
    for (std::size_t i = 0; i < types.size(); ++i) {
      types[i].shape[0] = p.extent(i);
      for (std::size_t d = grid.size(); d-- > 0;) types[i].shape.insert(0, grid[d]);
    }
  }
  if (n.op != Op::Scan) return types;
  const ScanParts p(n);
  for (std::size_t i = p.carries; i < types.size(); ++i) types[i] = stacked(types[i], p.length);
  for (std::size_t i = 0; i < p.carries; ++i) types.push_back(stacked(types[i], p.length));
  return types;
}

Id result(Graph& g, Id node, std::size_t index) {
  Type type = result_types(g, g[node])[index];
  return g.add({Op::Get, {node}, {static_cast<std::int64_t>(index)}, std::move(type)});
}

std::vector<Id> inputs_of(const Graph& g) {
  std::vector<Id> inputs;
  for (Id id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Input) continue;
    const auto slot = static_cast<std::size_t>(g[id].attrs[0]);
    if (inputs.size() <= slot) inputs.resize(slot + 1, kKeep);
    inputs[slot] = id;
  }
  return inputs;
}

std::vector<Id> inline_body(Graph& g, const Graph& body, std::span<const Id> inputs) {
  std::vector<Id> copy(body.size());
  for (Id id = 0; id < body.size(); ++id) {
    Node n = body[id];
    if (n.op == Op::Input) {
      copy[id] = inputs[static_cast<std::size_t>(n.attrs[0])];
      continue;
    }
    for (Id& in : n.in) in = copy[in];
    copy[id] = g.add(std::move(n));
  }
  std::vector<Id> outputs;
  for (Id id : body.outputs()) outputs.push_back(copy[id]);
  return outputs;
}

void verify_bodies(const Graph& g, const Node& n) {
  auto require = [](bool ok, const char* rule) {
    if (!ok) throw InternalError(rule);
  };
  const std::size_t count = n.op == Op::Cond || n.op == Op::While          ? 2
                            : n.op == Op::CustomVmap || n.op == Op::Blocks ? n.bodies.size()
                            : ops::has_bodies(n.op) && n.op != Op::Print   ? 1
                                                                           : 0;
  require(n.bodies.size() == count, "the number of bodies is wrong");
  if (n.op == Op::Get) {
    const Node& of = g[n.in[0]];
    require(ops::has_bodies(of.op), "the operand has no results to choose from");
    const std::vector<Type> types = result_types(g, of);
    require(n.attrs[0] >= 0 && static_cast<std::size_t>(n.attrs[0]) < types.size(), "there is no such result");
    require(n.type == types[count_attribute(n, 0)], "the type is not that of the result");
  }
  if (n.op == Op::Blocks) verify_blocks(g, n, require);
  if (n.op == Op::Print) {
    const std::int64_t depth = n.attrs[0], length = n.attrs[1];
    require(!n.in.empty() && length >= 0 && static_cast<std::size_t>(length) <= (n.attrs.size() - 2) * sizeof(std::int64_t),
            "a line has no text, or follows nothing");
    for (std::size_t i = 1; i < n.in.size(); ++i)
      require(depth <= static_cast<std::int64_t>(g[n.in[i]].type.shape.size()), "a value has too few axes");
  }
  if (n.op == Op::Cond) require(g[n.in.at(0)].type == Type{Dtype::bool_, {}}, "the condition is not bool[]");
  for (std::size_t i = 0; i < n.bodies.size(); ++i) {
    const Graph& body = *n.bodies[i];
    verify(body);
    const std::vector<Id> inputs = inputs_of(body);
    const Signature s = n.op == Op::CustomVmap ? batched_signature(g, n, body[inputs.at(0)].type.shape[0]) : signature(g, n, i);
    require(inputs.size() <= s.inputs.size(), "a body takes more than there is");
    for (std::size_t k = 0; k < inputs.size(); ++k)
      require(inputs[k] == kKeep || body[inputs[k]].type == s.inputs[k], "a body takes an input of another type");
    require(output_types(body) == s.outputs, "a body gives outputs of other types");
  }
}

}  // namespace sinter::graph
