// Print: shows what it shows, derivatives or not; a batch has a line for each element. Layer: transforms.
#include <algorithm>

#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

void Print::vjp(const Call&, std::span<const Sym> g, Cotangents& to) { to.add(0, g[0]); }
std::vector<Sym> Print::jvp(const Call&, std::span<const Sym> t) { return {t[0]}; }

std::vector<Sym> Print::batch(const BatchCall& c) {
  std::vector<Id> operands = ids_of(c.operands);
  ops::Attrs attrs = c.node.attrs;
  if (attrs[0] >= 0 && std::find(c.batched.begin() + 1, c.batched.end(), char{1}) != c.batched.end()) {
    attrs[0] = attrs[0] + 1;
    for (std::size_t i = 1; i < operands.size(); ++i) operands[i] = c.spread(i).id;
  }
  return {result(add_bodies(*c.graph, Op::Print, std::move(operands), std::move(attrs), {}), 0)};
}

}  // namespace sinter::transforms::rules
