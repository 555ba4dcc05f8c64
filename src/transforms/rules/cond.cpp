// Cond: derivatives choose the branch that the values chose. A batch of conditions computes both branches. Layer: transforms.
#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

// The branch is computed again on the way back: nothing of it was saved.
void Cond::vjp(const Call& c, std::span<const Sym> g, Cotangents& to) {
  std::vector<std::size_t> outputs;
  std::vector<Id> operands = c.node.in;
  for (std::size_t i = 0; i < g.size(); ++i)
    if (g[i]) {
      outputs.push_back(i);
      operands.push_back(g[i].id);
    }
  const Slots wrt = wanted_slots(to, 1, c.node.in.size() - 1, 0);
  std::vector<Body> bodies;
  for (const Body& b : c.node.bodies) bodies.push_back(gradients_of(*b, outputs, wrt));
  const Sym all = add_bodies(*c.graph, Op::Cond, std::move(operands), {}, std::move(bodies));
  for (std::size_t i = 0; i < wrt.size(); ++i) to.add(static_cast<std::size_t>(wrt[i]) + 1, result(all, i));
}

std::vector<Sym> Cond::jvp(const Call& c, std::span<const Sym> t) {
  Slots wrt;
  std::vector<Id> operands = c.node.in;
  for (std::size_t i = 1; i < t.size(); ++i)
    if (t[i]) {
      wrt.push_back(static_cast<std::int64_t>(i - 1));
      operands.push_back(t[i].id);
    }
  std::vector<Body> bodies;
  for (const Body& b : c.node.bodies) bodies.push_back(tangents_of(*b, wrt));
  const Sym all = add_bodies(*c.graph, Op::Cond, std::move(operands), {}, std::move(bodies));
  return tangents_in_place(all, *c.node.bodies[0]);
}

std::vector<Sym> Cond::batch(const BatchCall& c) {
  const std::size_t outputs = c.node.bodies[0]->outputs().size();
  std::vector<Body> bodies;
  for (const Body& b : c.node.bodies) bodies.push_back(vmap(*b, c.size, batch_axes(std::span(c.batched).subspan(1)), Slots(outputs, 0)));
  const std::vector<Id> operands = ids_of(c.operands);
  if (!c.is_batched(0)) return results_of(add_bodies(*c.graph, Op::Cond, operands, {}, std::move(bodies)), outputs);
  std::vector<Sym> results;
  const std::vector<Id> yes = graph::inline_body(*c.graph, *bodies[0], part(operands, 1, operands.size() - 1)),
                        no = graph::inline_body(*c.graph, *bodies[1], part(operands, 1, operands.size() - 1));
  for (std::size_t i = 0; i < outputs; ++i) {
    const Sym a{c.graph, yes[i]}, b{c.graph, no[i]};
    results.push_back(where(broadcast(c.aligned(0, a.rank() - 1), a.shape()), a, b));
  }
  return results;
}

}  // namespace sinter::transforms::rules
