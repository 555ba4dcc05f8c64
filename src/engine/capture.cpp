#include "engine/capture.h"

namespace sinter::engine {

using graph::Id;

Id capture(graph::Graph& g, NodeOf& ids, const Array& root, FunctionRef<bool(const Array&)> known) {
  struct Frame {
    const Value* value;
    std::size_t next = 0;
  };
  std::vector<Frame> stack;
  if (!known(root)) stack.push_back({root.get()});
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.next < f.value->inputs.size()) {
      const Array& in = f.value->inputs[f.next++];
      if (!known(in)) stack.push_back({in.get()});
      continue;
    }
    std::vector<Id> in;
    for (const Array& a : f.value->inputs) in.push_back(ids.at(a.get()));
    ids[f.value] = g.add({f.value->op, std::move(in), f.value->attrs, {f.value->dtype, f.value->shape}, f.value->bodies});
    stack.pop_back();
  }
  return ids.at(root.get());
}

std::vector<Array> replay(const graph::Graph& g, std::span<const Array> bindings) {
  std::vector<char> needed(g.size(), 0);
  for (Id id : g.outputs()) needed[id] = 1;
  for (Id id = g.size(); id-- > 0;)
    if (needed[id])
      for (Id u : g[id].in) needed[u] = 1;
  std::vector<Array> values(g.size());
  for (Id id = 0; id < g.size(); ++id) {
    if (!needed[id]) continue;
    const graph::Node& n = g[id];
    if (n.op == ops::Op::Input) {
      values[id] = bindings[static_cast<std::size_t>(n.attrs[0])];
      continue;
    }
    std::vector<Array> in;
    for (Id u : n.in) in.push_back(values[u]);
    values[id] = make(n.op, std::move(in), n.attrs, n.type.dtype, n.type.shape, n.bodies);
  }
  std::vector<Array> outputs;
  for (Id id : g.outputs()) outputs.push_back(values[id]);
  return outputs;
}

}  // namespace sinter::engine
