// CustomJvp: its body gives tangents, and is linear in those that it is given; so its transpose is the way back. Layer: transforms.
#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

using graph::count_attribute;

namespace {

struct Inputs {
  std::vector<Id> ids;                // of the body
  Slots tangents;                     // their slots
  std::vector<std::size_t> operands;  // the operand that each belongs to
};
// Tangents that are zero, or not looked at, are zeros.
Inputs inputs_of(const Call& c, std::span<const Sym> tangents) {
  const std::size_t outputs = count_attribute(c.node, 0), arguments = count_attribute(c.node, 1);
  Inputs in;
  append(in.ids, Ids(c.node.in).subspan(outputs, arguments));
  for (std::size_t i = outputs; i < outputs + arguments; ++i) {
    const Type t = (*c.graph)[c.node.in[i]].type;
    if (!is_differentiable(t.dtype)) continue;
    in.tangents.push_back(static_cast<std::int64_t>(in.ids.size()));
    in.operands.push_back(i);
    in.ids.push_back((!tangents.empty() && tangents[i] ? tangents[i] : zeros(*c.graph, t)).id);
  }
  append(in.ids, Ids(c.node.in).subspan(outputs + arguments));
  return in;
}
std::vector<std::size_t> floating_outputs(const Call& c) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < count_attribute(c.node, 0); ++i)
    if (is_differentiable(c.in(i).dtype())) indices.push_back(i);
  return indices;
}

}  // namespace

void CustomJvp::vjp(const Call& c, std::span<const Sym> g, Cotangents& to) {
  Inputs in = inputs_of(c, {});
  std::vector<std::size_t> outputs;
  const std::vector<std::size_t> floating = floating_outputs(c);
  for (std::size_t k = 0; k < floating.size(); ++k)
    if (g[floating[k]]) {
      outputs.push_back(k);
      in.ids.push_back(g[floating[k]].id);
    }
  const std::vector<Id> gradients = graph::inline_body(*c.graph, gradients_of(*c.node.bodies[0], outputs, in.tangents), in.ids);
  for (std::size_t k = 0; k < gradients.size(); ++k) to.add(in.operands[k], {c.graph, gradients[k]});
}

std::vector<Sym> CustomJvp::jvp(const Call& c, std::span<const Sym> t) {
  const std::vector<Id> moved = graph::inline_body(*c.graph, *c.node.bodies[0], inputs_of(c, t).ids);
  std::vector<Sym> tangents(count_attribute(c.node, 0));
  const std::vector<std::size_t> floating = floating_outputs(c);
  for (std::size_t k = 0; k < floating.size(); ++k) tangents[floating[k]] = {c.graph, moved[k]};
  return tangents;
}

std::vector<Sym> CustomJvp::batch(const BatchCall& c) {
  return batch_custom(c, c.operands.size() - count_attribute(c.node, 0) - count_attribute(c.node, 1));
}

}  // namespace sinter::transforms::rules
