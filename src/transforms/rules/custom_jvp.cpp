// CustomJvp: its body gives tangents, and is linear in those that it is given; so its transpose is the way back. Layer: transforms.
#include <algorithm>

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

// Whether an output reads one of these inputs, as far as it can be told: not through bodies, which may take what they do not use.
bool reads(const Graph& g, const Slots& slots) {
  std::vector<char> depends(g.size(), 0);
  for (Id id = 0; id < g.size(); ++id) {
    if (g[id].op == Op::Input) depends[id] = std::ranges::count(slots, std::int64_t{g[id].attrs[0]}) != 0;
    if (g[id].op == Op::StopGradient || ops::has_bodies(g[id].op)) continue;
    for (Id in : g[id].in) depends[id] |= depends[in];
  }
  return std::ranges::any_of(g.outputs(), [&](Id id) { return depends[id] != 0; });
}
// The transpose of a linear function does not read what it is applied to; and it reads its own argument, unless the function is 0.
void check_linear(Graph body, const Graph& transpose, const std::vector<std::size_t>& outputs, const Slots& tangents) {
  std::vector<Id> chosen;
  Slots cotangents;
  for (std::size_t i : outputs) {
    cotangents.push_back(static_cast<std::int64_t>(graph::inputs_of(body).size() + chosen.size()));
    chosen.push_back(body.outputs()[i]);
  }
  body.set_outputs(std::move(chosen));
  if (reads(transpose, tangents) || (reads(body, tangents) && !reads(transpose, cotangents)))
    throw Error(
        "custom_jvp: the rule is not linear in the tangents, so there is no way back for a gradient; got a tangent that depends on them in "
        "another way; give sums of them, multiplied by what depends on the arguments alone");
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
  const Graph transpose = gradients_of(*c.node.bodies[0], outputs, in.tangents);
  check_linear(graph::without_prints(*c.node.bodies[0]), transpose, outputs, in.tangents);
  const std::vector<Id> gradients = graph::inline_body(*c.graph, transpose, in.ids);
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
