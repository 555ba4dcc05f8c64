#include <algorithm>

#include "base/check.h"
#include "transforms/rules.h"
#include "transforms/transforms.h"

namespace sinter::transforms {

namespace {
// Whether a node differs between examples. What shows values gives its operand 0, whichever those are.
char differs(const Graph& g, const Node& n, std::span<const char> operands) {
  if (n.op == Op::Get && g[n.in[0]].op == Op::Print) return operands[g[n.in[0]].in[0]];
  return std::ranges::any_of(n.in, [&](Id in) { return operands[in] != 0; });
}
}  // namespace

Graph vmap(const Graph& source, const Dim& size, std::span<const std::int64_t> in_axes, std::span<const std::int64_t> out_axes) {
  check(out_axes.size() == source.outputs().size(), "vmap: one axis for each output");
  Graph g;
  g.name = source.name;
  g.reserve(source.size());
  std::vector<Sym> values(source.size());
  std::vector<char> batched(source.size(), 0);
  OfResults of_results;
  for (Id id = 0; id < source.size(); ++id) {
    const Node& n = source[id];
    if (n.op == Op::Input) {
      const auto slot = static_cast<std::size_t>(n.attrs[0]);
      check(slot < in_axes.size(), "vmap: one axis for each input");
      const std::int64_t axis = in_axes[slot];
      Node input = n;
      if (axis != kNotBatched) {
        check(axis >= 0 && axis <= static_cast<std::int64_t>(n.type.shape.size()), "vmap: an input has no such axis");
        input.type.shape.insert(static_cast<std::size_t>(axis), size);
        batched[id] = 1;
      }
      values[id] = {&g, g.add(std::move(input))};
      if (axis > 0) values[id] = move_axis(values[id], static_cast<std::size_t>(axis), 0);
      continue;
    }
    BatchCall call{&g, n, size, {}, {}, of_results};
    for (Id in : n.in) {
      call.operands.push_back(values[in]);
      call.batched.push_back(batched[in]);
      batched[id] |= batched[in];
    }
    if (batched[id] && ops::has_bodies(n.op)) {
      of_results[id] = body_rule_of(n.op).batch(call);
    } else if (batched[id]) {
      values[id] = rule_of(n.op).batch(call);
      batched[id] = differs(source, n, batched);
    } else {
      Node copy = n;
      for (Id& in : copy.in) in = values[in].id;
      values[id] = {&g, g.add(std::move(copy))};
    }
  }
  std::vector<Id> outputs;
  for (std::size_t i = 0; i < out_axes.size(); ++i) {
    const Id id = source.outputs()[i];
    Sym x = values[id];
    const std::int64_t axis = out_axes[i], rank = static_cast<std::int64_t>(source[id].type.shape.size());
    if (axis == kNotBatched) {
      check(!batched[id], "vmap: an output that differs between examples needs an axis");
    } else {
      check(axis >= 0 && axis <= rank, "vmap: an output has no such axis");
      if (!batched[id]) {
        Shape s = x.shape();
        s.insert(0, size);
        x = broadcast(x, s);
      }
      x = move_axis(x, 0, static_cast<std::size_t>(axis));
    }
    outputs.push_back(x.id);
  }
  g.set_outputs(std::move(outputs));
  return graph::rewrite(g, [](Graph&, const Node&) { return graph::kKeep; });
}

std::vector<bool> depends_on(const Graph& g, std::span<const std::int64_t> slots) {
  std::vector<char> depends(g.size(), 0);
  for (Id id = 0; id < g.size(); ++id) {
    if (g[id].op == Op::Input)
      for (std::int64_t s : slots) depends[id] |= s == g[id].attrs[0];
    depends[id] |= differs(g, g[id], depends);
  }
  std::vector<bool> outputs;
  for (Id id : g.outputs()) outputs.push_back(depends[id] != 0);
  return outputs;
}

}  // namespace sinter::transforms
