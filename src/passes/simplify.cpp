#include <algorithm>
#include <optional>

#include "base/once.h"
#include "base/symbols.h"
#include "graph/build.h"
#include "ops/infer.h"
#include "passes/fold.h"
#include "passes/pass.h"
#include "passes/rules.h"
#include "passes/views.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

constexpr int kMaxRules = 16;  // applied at one node in a row

using RulesByOp = std::vector<std::vector<const Rule*>>;
const RulesByOp& rules_by_op() {
  static constinit std::atomic<RulesByOp*> place{nullptr};
  return base::once(place, [] {
    RulesByOp made(ops::all_ops().size());
    for (const Rule& r : rules()) made[static_cast<std::size_t>(r.lhs.items.back().op)].push_back(&r);
    return made;
  });
}

// An operand is read at every element anyway, so the 0-d value serves as well as its broadcast, as long as one operand has the shape.
void use_scalars(Graph& g, Node& n) {
  if (n.type.shape.empty()) return;
  auto whole = std::count_if(n.in.begin(), n.in.end(), [&](Id in) { return !g[in].type.shape.empty(); });
  for (std::size_t i = n.in.size(); i-- > 0 && whole > 1;) {
    const Node& operand = g[n.in[i]];
    if (operand.type.shape.empty()) continue;
    if (graph::is_scalar_constant(operand)) {
      n.in[i] = g.add({Op::Constant, {}, operand.attrs, {operand.type.dtype, {}}});
      --whole;
    } else if (operand.op == Op::Broadcast && g[operand.in[0]].type.shape.empty()) {
      n.in[i] = operand.in[0];
      --whole;
    }
  }
}

bool is_zero(const Node& n) { return graph::is_scalar_constant(n) && base::same(n.attrs[0], 0); }
bool adds_zero(const Graph& g, Id id) { return g[id].op == Op::Add && (is_zero(g[g[id].in[0]]) || is_zero(g[g[id].in[1]])); }

// The sum of two arrays amid zeros, where one begins along an axis at the other's end, as the two in a row amid zeros: what the gradients
// of the parts of an array are. Kept: that a sum with 0 is never -0.
Id join_pads(Graph& g, const Node& sum) {
  Node first = g[sum.in[0]], second = g[sum.in[1]];
  if (first.op != Op::Pad || second.op != Op::Pad || first.type.shape.size() != second.type.shape.size()) return graph::kKeep;
  if (!is_zero(g[first.in[1]]) || first.in[1] != second.in[1]) return graph::kKeep;
  const std::size_t rank = first.type.shape.size();
  auto size = [&](const Node& pad, std::size_t d) -> const Dim& { return g[pad.in[0]].type.shape[d]; };
  std::size_t axis = rank;
  for (std::size_t d = 0; d < rank; ++d) {
    if (base::same(first.attrs[d], second.attrs[d]) && base::same(size(first, d), size(second, d))) continue;
    if (axis != rank) return graph::kKeep;
    axis = d;
  }
  if (axis == rank) return graph::kKeep;
  auto follows = [&](const Node& a, const Node& b) { return base::same(a.attrs[axis] + size(a, axis), b.attrs[axis]); };
  if (!follows(first, second)) std::swap(first, second);
  if (!follows(first, second)) return graph::kKeep;
  Node joined{Op::Concatenate, {}, {static_cast<std::int64_t>(axis)}, {sum.type.dtype, g[first.in[0]].type.shape}};
  joined.type.shape[axis] += size(second, axis);
  const bool whole = is_integer(sum.type.dtype);
  for (Id part : {first.in[0], second.in[0]}) {
    const Node n = g[part];
    const bool row = n.op == Op::Concatenate && base::same(n.attrs, joined.attrs);  // of earlier sums
    if (row && std::all_of(n.in.begin(), n.in.end(), [&](Id in) { return whole || adds_zero(g, in); }))
      joined.in.insert(joined.in.end(), n.in.begin(), n.in.end());
    else
      joined.in.push_back(whole ? part : graph::elementwise(g, Op::Add, {std::min(part, first.in[1]), std::max(part, first.in[1])}));
  }
  ops::Attrs around = first.attrs;
  around[rank + axis] = second.attrs[rank + axis];
  const Id row = g.add(std::move(joined));
  if (base::same(g[row].type.shape, sum.type.shape)) return row;
  return g.add({Op::Pad, {row, first.in[1]}, std::move(around), sum.type});
}

// What replaces a node by its structure alone, or kKeep.
Id simplify_structure(Graph& g, Node& n) {
  switch (n.op) {
    case Op::Cast: return g[n.in[0]].type.dtype == n.type.dtype ? n.in[0] : graph::kKeep;
    case Op::Concatenate: return n.in.size() == 1 ? n.in[0] : graph::kKeep;
    case Op::Pad: return base::same(g[n.in[0]].type.shape, n.type.shape) ? n.in[0] : graph::kKeep;
    default: break;
  }
  if (is_view(n.op)) return add_view(g, n.in[0], view_of(g, n));
  if (!ops::is_elementwise(n.op)) return graph::kKeep;
  use_scalars(g, n);
  if (n.op == Op::Add)
    if (const Id joined = join_pads(g, n); joined != graph::kKeep) return joined;
  if (n.in.size() == 2 && (ops::info(n.op).traits & ops::kCommutative) && n.in[0] > n.in[1]) std::swap(n.in[0], n.in[1]);
  return graph::kKeep;
}

// The bits of 1 / c where c is a power of two whose inverse is a normal number: then x * (1 / c) and x / c round the same exact value.
std::optional<std::uint64_t> exact_inverse(Dtype t, std::uint64_t bits) {
  struct Format {
    Dtype dtype;
    int mantissa, exponent;  // bits
  };
  constexpr Format kFormats[] = {{Dtype::float16, 10, 5}, {Dtype::bfloat16, 7, 8}, {Dtype::float32, 23, 8}, {Dtype::float64, 52, 11}};
  for (const Format& f : kFormats) {
    if (f.dtype != t) continue;
    const std::uint64_t most = (std::uint64_t{1} << f.exponent) - 1, sign = bits >> (f.mantissa + f.exponent) & 1;
    const std::uint64_t exponent = bits >> f.mantissa & most, fraction = bits & ((std::uint64_t{1} << f.mantissa) - 1);
    const std::uint64_t inverse = most - 1 - exponent;  // of biased exponents: their sum is twice the bias
    if (fraction != 0 || exponent == 0 || exponent >= most - 1) return std::nullopt;
    return (sign << f.exponent | inverse) << f.mantissa;
  }
  return std::nullopt;
}
// Division by a power of two becomes a multiplication, which takes a fifth of the time.
void multiply_by_inverse(Graph& g, Node& n) {
  const Node& c = g[n.in.back()];
  if (n.op != Op::Divide || c.op != Op::Constant || c.attrs.size() != 1 || base::changes(c.attrs)) return;
  const auto inverse = exact_inverse(c.type.dtype, static_cast<std::uint64_t>(c.attrs[0]));
  if (!inverse) return;
  n.op = Op::Multiply;
  n.in[1] = g.add({Op::Constant, {}, {static_cast<std::int64_t>(*inverse)}, c.type});
  if (n.in[0] > n.in[1]) std::swap(n.in[0], n.in[1]);
}

// What the rules make of a node; kKeep if none matches. Each rewrite may give the next rule its chance.
Id apply_rules(Graph& g, const Node& n, bool fast_math) {
  Id result = graph::kKeep;
  for (int i = 0; i < kMaxRules; ++i) {
    const Node& at = result == graph::kKeep ? n : g[result];
    if (!ops::is_elementwise(at.op)) return result;
    bool found = false;
    for (const Rule* r : rules_by_op()[static_cast<std::size_t>(at.op)]) {
      Bindings bindings;
      if ((r->when == When::fast && !fast_math) || !match(g, at, *r, bindings)) continue;
      const Id x = bindings[0] != graph::kKeep ? bindings[0] : bindings[kCondition];
      result = build(g, r->rhs, bindings, g[x].type.dtype);
      found = true;
      break;
    }
    if (!found) return result;
  }
  return result;
}

}  // namespace

Graph simplify(const Graph& source, Context& context) {
  return rewrite_around_products(source, [&](Graph& g, const Node& node) -> Id {
    if (const Id folded = fold_node(g, node); folded != graph::kKeep) return folded;
    Node n = node;
    if (const Id same = simplify_structure(g, n); same != graph::kKeep) return same;
    if (!ops::is_elementwise(n.op)) return graph::kKeep;
    multiply_by_inverse(g, n);
    const Id result = apply_rules(g, n, context.fast_math);
    if (result == graph::kKeep) return g.add(std::move(n));
    if (g[result].type.shape == n.type.shape) return result;
    const Shape& shape = n.type.shape;
    return add_view(g, result, {Op::Broadcast, ops::Attrs(shape.begin(), shape.end()), g[result].type.shape, shape});
  });
}

}  // namespace sinter::passes
