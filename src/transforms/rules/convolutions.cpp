#include "transforms/rules/convolutions.h"

#include "ops/convolution.h"

namespace sinter::transforms {
namespace {

using ops::Convolution;
using Role = Convolution::Role;

// What becomes of the examples of a batch. `batch`: more of the operation's own examples; `in` and `out`: more channels, where one array is
// the same for all; `groups`: as many groups of channels more.
enum class Fold { batch, in, out, groups };

// Whether the batch axis joins the first axis; else it joins the channels.
bool joins_first(Fold fold, Role role) { return role == Convolution::kWeight ? fold != Fold::in : fold == Fold::batch; }

// (batch, ...) to the operand's own axes. Channels are cut into groups first, so that those of an example stay together.
Sym fold_in(Sym x, bool first) {
  if (!first) x = move_axis(x, 0, x.rank() - 2);
  Shape s = x.shape();
  const std::size_t at = first ? 0 : s.size() - 2;
  s[at + 1] = s[at + 1] * s[at];
  s.erase(at);
  return reshape(x, s);
}
Sym fold_out(const Sym& x, bool first, Shape batched) {
  const std::size_t at = first ? 0 : batched.size() - 2;
  const Dim size = batched[0];
  batched.erase(0);
  batched.insert(at, size);
  return move_axis(reshape(x, batched), at, 0);
}

}  // namespace

void vjp_convolution(const Call& c, const Sym& g, Cotangents& to) {
  const Shape shapes[] = {c.in(0).shape(), c.in(1).shape()};
  const Convolution geometry = ops::convolution_of(c.node.op, c.node.attrs, shapes);
  const Role result = ops::result_role(c.node.op);
  const auto roles = ops::operand_roles(c.node.op);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!to.wanted(i)) continue;
    const Sym other = conj(c.in(1 - i));
    const auto order = ops::operand_roles(ops::convolution_op(roles[i]));
    to.add(i, order[0] == result ? convolution(geometry, roles[i], g, other) : convolution(geometry, roles[i], other, g));
  }
}

Sym jvp_convolution(const Call& c, std::span<const Sym> t) {
  const Sym left = t[0] ? c.again({t[0], c.in(1)}) : kZero;
  return sum_of(left, t[1] ? c.again({c.in(0), t[1]}) : kZero);
}

Sym batch_convolution(const BatchCall& c) {
  if (c.size == 0) return literal(c.in(0), c.node.type.dtype, 0, c.shape());
  const Role result = ops::result_role(c.node.op);
  const auto roles = ops::operand_roles(c.node.op);
  Shape shapes[2];
  Fold fold = Fold::groups;
  for (std::size_t i = 0; i < 2; ++i) {
    shapes[i] = c.in(i).shape();
    if (c.is_batched(i))
      shapes[i].erase(0);
    else if (roles[i] == Convolution::kWeight)
      fold = Fold::batch;
    else if (c.node.attrs[0] == 1)
      fold = roles[i] == Convolution::kInput ? Fold::out : Fold::in;
  }
  Convolution geometry = ops::convolution_of(c.node.op, c.node.attrs, shapes);
  Sym operands[2];
  for (std::size_t i = 0; i < 2; ++i)
    operands[i] = fold != Fold::groups && !c.is_batched(i) ? c.in(i) : fold_in(c.spread(i), joins_first(fold, roles[i]));
  if (fold == Fold::batch) geometry.batch *= c.size;
  if (fold == Fold::in || fold == Fold::groups) geometry.in *= c.size;
  if (fold == Fold::out || fold == Fold::groups) geometry.out *= c.size;
  if (fold == Fold::groups) geometry.groups *= c.size;
  return fold_out(convolution(geometry, result, operands[0], operands[1]), joins_first(fold, result), c.shape());
}

}  // namespace sinter::transforms
