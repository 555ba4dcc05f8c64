// While: tangents are carries too. Going back would need every step's carries, of an unknown number. Layer: transforms.
#include <algorithm>

#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

void While::vjp(const Call&, std::span<const Sym>, Cotangents&) {
  throw Error(
      "while_loop: a loop of an unknown number of steps has no gradient in reverse; got no bound of its steps; give max_steps, or use "
      "jvp, fori_loop or scan");
}

std::vector<Sym> While::jvp(const Call& c, std::span<const Sym> t) {
  const std::size_t constants = graph::count_attribute(c.node, 0), carries = c.node.in.size() - constants;
  const Graph condition = graph::without_prints(*c.node.bodies[0]), body = graph::without_prints(*c.node.bodies[1]);
  const Graph& g = *c.graph;
  Slots wrt;
  for (std::size_t i = 0; i < t.size(); ++i)
    if (t[i]) wrt.push_back(static_cast<std::int64_t>(i));
  const std::vector<char> moved = reached_carries(body, constants, carries, wrt);

  // (constants, their tangents, carries, their tangents)
  std::vector<Id> operands, tangent_constants, tangent_carries;
  wrt.clear();
  for (std::size_t i = 0; i < constants; ++i)
    if (t[i]) {
      wrt.push_back(static_cast<std::int64_t>(i));
      tangent_constants.push_back(t[i].id);
    }
  std::vector<Sym> tangents(carries);
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < carries; ++i) {
    const Type type = g[c.node.in[constants + i]].type;
    if (!moved[i] || !is_differentiable(type.dtype)) continue;
    active.push_back(i);
    wrt.push_back(static_cast<std::int64_t>(constants + i));
    tangent_carries.push_back((t[constants + i] ? t[constants + i] : zeros(*c.graph, type)).id);
  }
  append(operands, part(c.node.in, 0, constants));
  append(operands, tangent_constants);
  append(operands, part(c.node.in, constants, carries));
  append(operands, tangent_carries);

  auto with_tangents = [&](const Graph& of, bool step) -> Body {
    NewBody b(of.name);
    const std::vector<Id> in = b.inputs(g, operands);
    std::vector<Id> primal(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(constants)), all;
    append(primal, part(in, constants + tangent_constants.size(), carries));
    std::vector<Id> outputs = graph::inline_body(b.g, of, primal);
    if (!step) return b.finish(std::move(outputs));
    all = primal;
    append(all, part(in, constants, tangent_constants.size()));
    append(all, part(in, in.size() - tangent_carries.size(), tangent_carries.size()));
    const std::vector<Id> along = graph::inline_body(b.g, tangents_of(of, wrt), all);
    const std::vector<std::size_t> where = differentiable_outputs(of);
    for (std::size_t i = 0; i < where.size(); ++i)
      if (moved[where[i]]) outputs.push_back(along[i]);
    return b.finish(std::move(outputs));
  };
  const Sym all = add_bodies(*c.graph, Op::While, operands, {static_cast<std::int64_t>(constants + tangent_constants.size())},
                             {with_tangents(condition, false), with_tangents(body, true)});
  for (std::size_t k = 0; k < active.size(); ++k) tangents[active[k]] = result(all, carries + k);
  return tangents;
}

// Where examples stop at different steps, the loop goes on until the last has stopped, and the others keep their carries.
std::vector<Sym> While::batch(const BatchCall& c) {
  const std::size_t constants = graph::count_attribute(c.node, 0), carries = c.node.in.size() - constants;
  const Graph &condition = *c.node.bodies[0], &body = *c.node.bodies[1];
  Slots given;
  for (std::size_t i = 0; i < c.batched.size(); ++i)
    if (c.is_batched(i)) given.push_back(static_cast<std::int64_t>(i));
  std::vector<char> batched = c.batched, moved = reached_carries(body, constants, carries, given);
  std::copy(moved.begin(), moved.end(), batched.begin() + static_cast<std::ptrdiff_t>(constants));
  Slots slots;
  for (std::size_t i = 0; i < batched.size(); ++i)
    if (batched[i]) slots.push_back(static_cast<std::int64_t>(i));
  const bool apart = depends_on(condition, slots)[0];
  if (apart) std::fill(batched.begin() + static_cast<std::ptrdiff_t>(constants), batched.end(), 1);

  std::vector<Id> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) operands.push_back((batched[i] ? c.spread(i) : c.in(i)).id);
  const std::vector<std::int64_t> axes = batch_axes(batched);
  const std::vector<std::int64_t> out_axes(axes.begin() + static_cast<std::ptrdiff_t>(constants), axes.end());
  const Graph next = vmap(body, c.size, axes, out_axes), goes_on = vmap(condition, c.size, axes, Slots{apart ? 0 : kNotBatched});
  std::vector<Body> bodies{goes_on, next};
  if (apart) {
    NewBody any(condition.name), step(body.name);
    const Sym each{&any.g, graph::inline_body(any.g, goes_on, any.inputs(*c.graph, operands))[0]};
    const Id one = graph::reduce(any.g, Op::Any, each.id, {0}, Dtype::bool_);
    const std::vector<Id> in = step.inputs(*c.graph, operands);
    const Sym on{&step.g, graph::inline_body(step.g, goes_on, in)[0]};
    std::vector<Id> outputs = graph::inline_body(step.g, next, in);
    for (std::size_t i = 0; i < carries; ++i) {
      const Sym x{&step.g, outputs[i]}, before{&step.g, in[constants + i]};
      Shape s(std::vector<Dim>(x.rank(), 1));
      s[0] = c.size;
      outputs[i] = where(broadcast(reshape(on, s), x.shape()), x, before).id;
    }
    bodies = {any.finish({one}), step.finish(std::move(outputs))};
  }
  const Sym all = add_bodies(*c.graph, Op::While, operands, c.node.attrs, std::move(bodies));
  std::vector<Sym> results;
  for (std::size_t i = 0; i < carries; ++i) {
    const Sym r = result(all, i);
    results.push_back(batched[constants + i] ? r : broadcast(r, c.with_batch(r.shape())));
  }
  return results;
}

}  // namespace sinter::transforms::rules
