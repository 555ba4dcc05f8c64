// CustomVmap: differentiates as what it was made from; a batch is what its body for that size gives. Layer: transforms.
#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

using graph::count_attribute;

void CustomVmap::vjp(const Call&, std::span<const Sym> g, Cotangents& to) {
  for (std::size_t i = 0; i < g.size(); ++i)
    if (g[i]) to.add(i, g[i]);
}

std::vector<Sym> CustomVmap::jvp(const Call& c, std::span<const Sym> t) { return {t.begin(), t.begin() + c.node.attrs[0]}; }

std::vector<Sym> CustomVmap::batch(const BatchCall& c) {
  const std::size_t outputs = count_attribute(c.node, 0), arguments = count_attribute(c.node, 1);
  std::vector<Id> inputs;
  for (std::size_t i = outputs; i < c.operands.size(); ++i) {
    if (i >= outputs + arguments && c.is_batched(i))
      throw Error(str("custom_vmap: the rule uses an array of the batch that is no argument; got one of shape ", c.in(i).shape(),
                      "; pass it as an argument"));
    inputs.push_back((i < outputs + arguments ? c.spread(i) : c.in(i)).id);
  }
  for (const Body& body : c.node.bodies) {
    if ((*body)[graph::inputs_of(*body)[0]].type.shape[0] != c.size) continue;
    std::vector<Sym> results;
    for (Id id : graph::inline_body(*c.graph, *body, inputs)) results.push_back({c.graph, id});
    return results;
  }
  throw InternalError("custom_vmap: there is no rule for this size of batch");
}

}  // namespace sinter::transforms::rules
