// Checks of transforms of random graphs: derivatives against differences and each other, batches against a loop.
#include <algorithm>
#include <cmath>

#include "fuzz/ways.h"
#include "support/derivatives.h"

namespace sinter::fuzz {
namespace {

using namespace tests;
using ops::Op;

bool has_complex(const Graph& g) {
  for (graph::Id id = 0; id < g.size(); ++id)
    if (is_complex(g[id].type.dtype) ||
        std::any_of(g[id].bodies.begin(), g[id].bodies.end(), [](const graph::Body& b) { return has_complex(*b); }))
      return true;
  return false;
}

// The same operations in float64, in which differences are good derivatives; without stop_gradient, which differences do not know, and
// without inverses of functions that saturate, nor those whose slope is infinite at an end that x / x reaches: there the value of a
// difference is a rounding error, and so is the tangent that meets the infinite slope. Without roundings to whole numbers either: one of a
// value that moves by several within a difference's step looks like a slope. Nor in bodies, whose values is_tame() does not see,
// with remainders and whole quotients.
Graph in_float64(const Graph& g, bool is_body = false) {
  auto wide = [](Dtype t) { return is_floating(t) ? Dtype::float64 : t; };
  return graph::rewrite(g, [&](Graph& out, const graph::Node& n) {
    for (Op left_out :
         {Op::StopGradient, Op::ErfInv, Op::ArcTanh, Op::ArcSin, Op::ArcCos, Op::ArcCosh, Op::Round, Op::Floor, Op::Ceil, Op::Trunc})
      if (n.op == left_out) return n.in[0];
    if (is_body && (n.op == Op::Remainder || n.op == Op::FloorDivide)) return n.in[0];
    graph::Node m = n;
    m.type.dtype = wide(n.type.dtype);
    for (graph::Body& b : m.bodies) b = in_float64(*b, true);
    if (n.op == Op::Constant) {
      std::vector<std::uint64_t> from(n.attrs.begin(), n.attrs.end()), to(from.size());
      ops::convert_elements(n.type.dtype, m.type.dtype, from, to);
      m.attrs.assign(to.begin(), to.end());
    }
    if (n.op == Op::Cast || ops::info(n.op).kind == ops::OpKind::Reduce)
      m.attrs[0] = static_cast<std::int64_t>(wide(static_cast<Dtype>(std::int64_t{n.attrs[0]})));
    return out.add(std::move(m));
  });
}

// Whether every value on the way is finite, and none so small that a remainder by it jumps within a difference's step.
bool is_tame(const Graph& g, std::span<const Tensor> inputs) {
  Graph all = g;
  std::vector<graph::Id> ids;
  for (graph::Id id = 0; id < g.size(); ++id)
    if (is_floating(g[id].type.dtype)) ids.push_back(id);
  all.set_outputs(ids);
  for (const Tensor& t : graph::interpret(all, inputs))
    for (double v : numbers(t))
      if (!(std::fabs(v) < 1e6) || (v != 0 && std::fabs(v) < 1e-3)) return false;
  return true;
}

// These inputs, and random ones for those that a transform has added.
std::vector<Tensor> random_inputs_after(std::vector<Tensor> inputs, const Graph& g, std::uint32_t seed) {
  std::vector<Tensor> all = random_inputs(g, seed);
  std::move(inputs.begin(), inputs.end(), all.begin());
  return all;
}

}  // namespace

std::string wrong_derivatives(const Program& p) {
  if (has_complex(p.graphs.at(0))) return "";
  const Graph g = in_float64(p.graphs[0]);
  graph::verify(g);
  const Slots wrt = floating_slots(g);
  const std::vector<Tensor> inputs = random_inputs(g, p.seed);
  if (wrt.empty() || !is_tame(g, inputs)) return "";
  int compared = 0;
  const std::string wrong = derivative_error(g, inputs, wrt, p.seed, &compared);
  counters().derivatives += compared;
  // Large numbers that cancel on the way back leave their rounding errors.
  if (!wrong.empty() && !is_tame(transforms::vjp(g, wrt), random_inputs_after(inputs, transforms::vjp(g, wrt), p.seed))) return "";
  return wrong;
}

std::string wrong_batches(const Program& p) {
  const Graph& g = p.graphs.at(0);
  std::mt19937 random(p.seed);
  Slots in, batched, out;
  for (const graph::Type& t : input_types(g)) {
    const bool on = random() % 3 != 0;
    if (on) batched.push_back(static_cast<std::int64_t>(in.size()));
    in.push_back(on ? static_cast<std::int64_t>(random() % (t.shape.size() + 1)) : transforms::kNotBatched);
  }
  const std::vector<bool> varies = transforms::depends_on(g, batched);
  for (std::size_t i = 0; i < varies.size(); ++i)
    out.push_back(varies[i] ? static_cast<std::int64_t>(random() % (g[g.outputs()[i]].type.shape.size() + 1)) : transforms::kNotBatched);
  auto special = [&](const graph::Type& t) {
    Graph one;
    one.add({Op::Input, {}, {0}, t});
    return graph::sample_inputs(one, static_cast<std::uint32_t>(random()))[0];
  };
  return vmap_error(g, in, out, 1 + p.seed % 3, special);
}

}  // namespace sinter::fuzz
