// pull_back, push_forward and the transforms made of them. Layer: transforms.
#include <algorithm>

#include "base/check.h"
#include "transforms/rules.h"
#include "transforms/shown.h"
#include "transforms/transforms.h"

namespace sinter::transforms {
namespace {

using Ids = std::span<const Id>;

void check_type(const Graph& g, Id node, Id derivative) {
  check(is_differentiable(g[node].type.dtype), "transforms: an operand or output that is neither floating nor complex");
  check(derivative == graph::kKeep || g[derivative].type == g[node].type, "transforms: a cotangent or tangent has not its node's type");
}

// Nodes through which derivatives with respect to `wrt` pass.
std::vector<char> active_nodes(const Graph& g, Ids wrt) {
  std::vector<char> active(g.size(), 0);
  for (Id id : wrt) active[id] = 1;
  for (Id id = 0; id < g.size(); ++id) {
    if (active[id] || g[id].op == Op::StopGradient || !(is_differentiable(g[id].type.dtype) || ops::has_bodies(g[id].op))) continue;
    for (Id in : g[id].in) active[id] |= active[in];
  }
  return active;
}

// Operations that add up elements of their operands: an operand's element is under where() if all elements that show it are.
bool moves_elements(Op op) { return ops::info(op).kind == ops::OpKind::View || ops::info(op).kind == ops::OpKind::Map || op == Op::Sum; }

// Where the operands of such a node are taken, if it is under where(): where the rule, given 1 for what is taken, arrives.
std::vector<Sym> reached(const Flow& flow, const Call& call, Flow& scratch) {
  const Sym taken = flow.taken[call.id];
  if (!taken || !moves_elements(call.node.op)) return {};
  if (scratch.sums.empty()) scratch = {std::vector<Sym>(flow.sums.size()), std::vector<Sym>(flow.sums.size()), {}, flow.active, flow.shown};
  Cotangents to(scratch, call);
  rule_of(call.node.op).vjp(call, cast(taken, call.dtype()), to);
  std::vector<Sym> result;
  for (Id in : call.node.in) {
    const Sym& sum = scratch.sums[flow.shown[in]];
    result.push_back(sum ? sum != 0 : kZero);
  }
  for (Id in : call.node.in) scratch.sums[flow.shown[in]] = scratch.taken[flow.shown[in]] = kZero;
  return result;
}

std::vector<Id> at_slots(const std::vector<Id>& inputs, std::span<const std::int64_t> slots) {
  std::vector<Id> ids;
  for (std::int64_t s : slots) {
    check(s >= 0 && static_cast<std::size_t>(s) < inputs.size(), "transforms: there is no such input slot");
    ids.push_back(inputs[static_cast<std::size_t>(s)]);
  }
  return ids;
}

// A further input for each node, of its type.
std::vector<Id> append_inputs(Graph& g, std::size_t first_slot, Ids nodes) {
  std::vector<Id> ids;
  for (Id id : nodes) ids.push_back(g.add({Op::Input, {}, {static_cast<std::int64_t>(first_slot + ids.size())}, graph::Type(g[id].type)}));
  return ids;
}
std::vector<Id> differentiable(const Graph& g, Ids nodes) {
  std::vector<Id> ids;
  for (Id id : nodes)
    if (is_differentiable(g[id].type.dtype)) ids.push_back(id);
  return ids;
}

// The graph with further outputs, zeros where there is nothing, and without what no output needs.
Graph with_outputs(Graph g, Ids nodes, Ids derivatives) {
  std::vector<Id> outputs = g.outputs();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const graph::Type t = g[nodes[i]].type;
    outputs.push_back(derivatives[i] != graph::kKeep ? derivatives[i] : literal({&g, 0}, t.dtype, 0, t.shape).id);
  }
  g.set_outputs(std::move(outputs));
  return graph::rewrite(g, [](Graph&, const Node&) { return graph::kKeep; });
}

}  // namespace

std::vector<Id> pull_back(Graph& g, Ids outputs, Ids cotangents, Ids wrt) {
  for (Id id : wrt) check_type(g, id, graph::kKeep);
  Flow flow{std::vector<Sym>(g.size()), std::vector<Sym>(g.size()), {}, active_nodes(g, wrt), {}}, scratch;
  flow.shown = shown_by(g, outputs, wrt, flow.active);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (cotangents[i] == graph::kKeep) continue;  // of any dtype
    check_type(g, outputs[i], cotangents[i]);
    const Id shown = flow.shown[outputs[i]];
    Sym& sum = flow.sums[shown];
    if (flow.active[shown]) sum = sum_of(sum, reshape({&g, cotangents[i]}, Shape(g[shown].type.shape)));
  }
  for (Id id = static_cast<Id>(flow.sums.size()); id-- > 0;) {
    const bool several = ops::has_bodies(g[id].op);
    if ((several ? !flow.of_results.contains(id) : !flow.sums[id]) || g[id].in.empty()) continue;
    const Call call{&g, id, g[id], flow.of_results};
    const std::vector<Sym> of_operands = several ? std::vector<Sym>() : reached(flow, call, scratch);
    Cotangents to(flow, call, of_operands);
    if (several)
      body_rule_of(call.node.op).vjp(call, flow.of_results[id], to);
    else
      rule_of(call.node.op).vjp(call, flow.sums[id], to);
  }
  std::vector<Id> results;
  for (Id id : wrt) results.push_back(flow.sums[id].id);
  return results;
}

std::vector<Id> push_forward(Graph& g, Ids wrt, Ids tangents, Ids outputs) {
  const Id end = g.size();
  std::vector<Sym> all(end);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    check_type(g, wrt[i], tangents[i]);
    if (tangents[i] != graph::kKeep) all[wrt[i]] = {&g, tangents[i]};
  }
  OfResults of_results;
  std::vector<Sym> operands;
  for (Id id = 0; id < end; ++id) {
    const bool several = ops::has_bodies(g[id].op);
    if (all[id] || !(several || is_differentiable(g[id].type.dtype))) continue;
    operands.clear();
    bool any = false;
    for (Id in : g[id].in) {
      operands.push_back(all[in]);
      any = any || all[in] || of_results.contains(in);
    }
    if (!any) continue;
    const Call call{&g, id, g[id], of_results};
    if (several)
      of_results[id] = body_rule_of(call.node.op).jvp(call, operands);
    else
      all[id] = rule_of(call.node.op).jvp(call, operands);
  }
  std::vector<Id> results;
  for (Id id : outputs) results.push_back(all[id].id);
  return results;
}

Graph vjp(const Graph& source, std::span<const std::int64_t> slots) {
  Graph g = source;
  const std::vector<Id> inputs = graph::inputs_of(g), wrt = at_slots(inputs, slots), outputs = differentiable(g, g.outputs());
  const std::vector<Id> cotangents = append_inputs(g, inputs.size(), outputs);
  const std::vector<Id> gradients = pull_back(g, outputs, cotangents, wrt);
  return with_outputs(std::move(g), wrt, gradients);
}

Graph jvp(const Graph& source, std::span<const std::int64_t> slots) {
  Graph g = source;
  const std::vector<Id> inputs = graph::inputs_of(g), wrt = at_slots(inputs, slots), outputs = differentiable(g, g.outputs());
  const std::vector<Id> tangents = append_inputs(g, inputs.size(), wrt);
  const std::vector<Id> results = push_forward(g, wrt, tangents, outputs);
  return with_outputs(std::move(g), outputs, results);
}

}  // namespace sinter::transforms
