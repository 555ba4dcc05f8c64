// CustomVjp: its body is the way back. Layer: transforms.
#include "transforms/rules/bodies.h"

namespace sinter::transforms {

using graph::count_attribute;

std::vector<Sym> batch_custom(const BatchCall& c, std::size_t constants) {
  std::vector<Id> operands;
  std::vector<char> batched;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const bool constant = i >= c.operands.size() - constants;
    operands.push_back((constant ? c.in(i) : c.spread(i)).id);
    if (constant) batched.push_back(c.batched[i]);
  }
  const Graph& body = *c.node.bodies[0];
  batched.insert(batched.begin(), graph::inputs_of(body).size() - constants, 1);
  const Sym all = add_bodies(*c.graph, c.node.op, std::move(operands), c.node.attrs,
                             {vmap(body, c.size, batch_axes(batched), Slots(body.outputs().size(), 0))});
  return results_of(all, count_attribute(c.node, 0));
}

namespace rules {

void CustomVjp::vjp(const Call& c, std::span<const Sym> g, Cotangents& to) {
  const std::size_t outputs = count_attribute(c.node, 0), residuals = count_attribute(c.node, 1), arguments = count_attribute(c.node, 2);
  std::vector<Id> inputs(c.node.in.begin() + static_cast<std::ptrdiff_t>(outputs),
                         c.node.in.begin() + static_cast<std::ptrdiff_t>(outputs + residuals));
  for (std::size_t i = 0; i < outputs; ++i) {
    const Type t = (*c.graph)[c.node.in[i]].type;
    if (is_differentiable(t.dtype)) inputs.push_back((g[i] ? g[i] : zeros(*c.graph, t)).id);
  }
  append(inputs, Ids(c.node.in).subspan(outputs + residuals + arguments));
  const std::vector<Id> gradients = graph::inline_body(*c.graph, *c.node.bodies[0], inputs);
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments; ++i)
    if (is_differentiable(c.in(outputs + residuals + i).dtype())) to.add(outputs + residuals + i, {c.graph, gradients[next++]});
}

std::vector<Sym> CustomVjp::jvp(const Call&, std::span<const Sym>) {
  throw Error(
      "custom_vjp: the function has a rule for reverse mode alone; got it under jvp, jacfwd or hessian; give it a rule by custom_jvp, "
      "which serves both");
}

std::vector<Sym> CustomVjp::batch(const BatchCall& c) {
  return batch_custom(c, c.operands.size() - count_attribute(c.node, 0) - count_attribute(c.node, 1) - count_attribute(c.node, 2));
}

}  // namespace rules
}  // namespace sinter::transforms
