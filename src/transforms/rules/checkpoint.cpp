// Checkpoint: its derivatives compute the body again, from its operands, when the first cotangent is there. Layer: transforms.
#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

void Checkpoint::vjp(const Call& c, std::span<const Sym> g, Cotangents& to) {
  std::vector<std::size_t> outputs;
  std::vector<Id> cotangents;
  for (std::size_t i = 0; i < g.size(); ++i)
    if (g[i]) {
      outputs.push_back(i);
      cotangents.push_back(g[i].id);
    }
  const Slots wrt = wanted_slots(to, 0, c.node.in.size(), 0);
  const Graph gradients = gradients_of(*c.node.bodies[0], outputs, wrt);
  std::vector<Id> inputs;
  for (Id id : c.node.in) inputs.push_back(c.graph->add({Op::Barrier, {id, cotangents[0]}, {}, Type((*c.graph)[id].type)}));
  append(inputs, cotangents);
  const std::vector<Id> results = graph::inline_body(*c.graph, gradients, inputs);
  for (std::size_t i = 0; i < wrt.size(); ++i) to.add(static_cast<std::size_t>(wrt[i]), {c.graph, results[i]});
}

std::vector<Sym> Checkpoint::jvp(const Call& c, std::span<const Sym> t) {
  const Graph& body = *c.node.bodies[0];
  Slots wrt;
  std::vector<Id> operands = c.node.in;
  for (std::size_t i = 0; i < t.size(); ++i)
    if (t[i]) {
      wrt.push_back(static_cast<std::int64_t>(i));
      operands.push_back(t[i].id);
    }
  const Sym all = add_bodies(*c.graph, Op::Checkpoint, std::move(operands), {}, {tangents_of(body, wrt)});
  return tangents_in_place(all, body);
}

std::vector<Sym> Checkpoint::batch(const BatchCall& c) {
  const std::size_t outputs = c.node.bodies[0]->outputs().size();
  Graph body = vmap(*c.node.bodies[0], c.size, batch_axes(c.batched), Slots(outputs, 0));
  return results_of(add_bodies(*c.graph, Op::Checkpoint, ids_of(c.operands), {}, {std::move(body)}), outputs);
}

}  // namespace sinter::transforms::rules
