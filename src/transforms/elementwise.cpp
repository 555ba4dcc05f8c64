#include "transforms/elementwise.h"

#include <algorithm>
#include <array>

#include "transforms/gradients.h"

namespace sinter::transforms {
namespace {

// The gradient columns: a function an operand.
using Gradient = Sym (*)(const Sym& g, const Sym& x, const Sym& y, const Sym& z, const Sym& out);
#define NO_GRAD(why) kZero
#define GRADIENT(expression)                                                                                        \
  [](const Sym& g, const Sym& x, const Sym& y, const Sym& z, const Sym& out) -> Sym {                               \
    static_cast<void>(g), static_cast<void>(x), static_cast<void>(y), static_cast<void>(z), static_cast<void>(out); \
    return expression;                                                                                              \
  }
constexpr std::array<Gradient, 3> kGradients[] = {
#define OP1(Name, function, dtype, traits, domain, value, dx) {GRADIENT(dx), nullptr, nullptr},
#define OP2(Name, function, dtype, traits, domain, value, dx, dy) {GRADIENT(dx), GRADIENT(dy), nullptr},
#define OP3(Name, function, dtype, traits, domain, value, dx, dy, dz) {GRADIENT(dx), GRADIENT(dy), GRADIENT(dz)},
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3
};
#undef GRADIENT
#undef NO_GRAD

// The cotangent of operand i where the result's is g. Halves compute in float32 from the operands on, and round once: a column's parts may
// overflow where their product does not, and 1 - out^2 of a rounded result has no digits left near 1.
Sym gradient(const Call& c, std::size_t i, const Sym& g) {
  const Gradient column = kGradients[static_cast<std::size_t>(c.node.op)][i];
  Sym in[3];
  for (std::size_t k = 0; k < c.node.in.size(); ++k) in[k] = c.in(k);
  const Sym narrow = column(g, in[0], in[1], in[2], c.out());
  if (!is_half(c.dtype()) || ops::info(c.node.op).traits & ops::kExact || !narrow) return narrow;
  const auto given = [&](Id id) { return id == g.id || id == c.id || std::ranges::count(c.node.in, id); };
  if (given(narrow.id) || std::ranges::all_of((*c.graph)[narrow.id].in, given)) return narrow;  // rounds once as it is
  std::vector<Id> wide;
  for (std::size_t k = 0; k < c.node.in.size(); ++k) wide.push_back((in[k] = cast(in[k], Dtype::float32)).id);
  const Sym out{c.graph, graph::elementwise(*c.graph, c.node.op, std::move(wide))}, wide_g = cast(g, Dtype::float32);
  return cast(column(wide_g, in[0], in[1], in[2], out), c.dtype());
}

}  // namespace

void vjp_elementwise(const Call& c, const Sym& g, Cotangents& to) {
  for (std::size_t i = 0; i < c.node.in.size(); ++i) {
    if (!to.wanted(i)) continue;
    Sym cotangent = gradient(c, i, g), taken = to.taken();
    if (!cotangent) continue;
    if (c.node.op == Op::Where) {
      const Sym chosen = broadcast(i == 1 ? c.in(0) : logical_not(c.in(0)), c.shape());
      taken = taken ? logical_and(taken, chosen) : chosen;
    } else if (taken && cotangent.id != g.id) {
      cotangent = where(taken, cotangent, 0);
    }
    // A 0-d operand is read at every element.
    to.add(i, sum_to(cotangent, c.in(i).shape()), taken ? any_to(taken, c.in(i).shape()) : taken);
  }
}

// The column computes conj(f') g. With f' real that is f' g. A complex result: the conjugate of the column of the conjugate. A real one
// of a complex operand: the real part of conj(column of 1) times the tangent.
Sym jvp_elementwise(const Call& c, std::span<const Sym> tangents) {
  Sym sum;
  for (std::size_t i = 0; i < c.node.in.size(); ++i) {
    const Sym& t = tangents[i];
    if (!t) continue;
    if (is_complex(t.dtype()) && !is_complex(c.dtype())) {
      const Sym slope = gradient(c, i, literal(t, c.dtype(), 1));
      if (slope) sum = sum_of(sum, real(conjugate(slope) * t));
    } else {
      const Sym column = gradient(c, i, conj(t));
      if (column) sum = sum_of(sum, conj(column));
    }
  }
  return sum ? broadcast(sum, c.shape()) : sum;
}

// 0-d operands stay so while they are not batched; every other operand gets the result's shape.
Sym batch_elementwise(const BatchCall& c) {
  const Shape shape = c.shape();
  std::vector<Id> in;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const bool scalar = !c.is_batched(i) && c.in(i).rank() == 0;
    in.push_back(scalar ? c.in(i).id : broadcast(c.aligned(i, shape.size() - 1), shape).id);
  }
  return {c.graph, graph::elementwise(*c.graph, c.node.op, std::move(in))};
}

}  // namespace sinter::transforms
