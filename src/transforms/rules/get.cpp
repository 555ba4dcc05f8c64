// Get: a result of a node that has several; what belongs to it lies beside those of the others. Layer: transforms.
#include "transforms/rules.h"

namespace sinter::transforms::rules {

void Get::vjp(const Call& c, const Sym& g, Cotangents& to) {
  to.add_result(c.axis(), graph::result_types(*c.graph, (*c.graph)[c.node.in[0]]).size(), g);
}
Sym Get::jvp(const Call& c, std::span<const Sym>) { return c.of_results.at(c.node.in[0])[c.axis()]; }
Sym Get::batch(const BatchCall& c) { return c.of_results.at(c.node.in[0])[c.axis()]; }

}  // namespace sinter::transforms::rules
