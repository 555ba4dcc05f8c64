// Random graphs through the transforms: derivatives against differences and each other, batches against a loop, and gradients by every
// path bit for bit. SINTER_FUZZ_SECONDS sets the time of each test, SINTER_FUZZ_SEED the first seed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "fuzz/random_graph.h"
#include "support/derivatives.h"

namespace {

using namespace sinter;
using namespace sinter::tests;
using ops::Op;

double number(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atof(text) : otherwise;
}

// Calls f(seed) until the time is over; it returns what is wrong, and the graph.
void for_each_seed(FunctionRef<std::string(std::uint32_t)> f) {
  const double seconds = number("SINTER_FUZZ_SECONDS", 5);
  auto seed = static_cast<std::uint32_t>(number("SINTER_FUZZ_SEED", 1));
  const auto start = std::chrono::steady_clock::now();
  for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds; ++seed) {
    std::string wrong;
    try {
      wrong = f(seed);
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    if (!wrong.empty()) FAIL() << "seed " << seed << ": " << wrong;
  }
  std::printf("next seed %u\n", seed);
}

Graph draw(std::uint32_t seed) { return fuzz::random_graph(seed, 5 + static_cast<int>(seed % 16)); }

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
// value that moves by several within a difference's step looks like a slope.
Graph in_float64(const Graph& g) {
  auto wide = [](Dtype t) { return is_floating(t) ? Dtype::float64 : t; };
  return graph::rewrite(g, [&](Graph& out, const graph::Node& n) {
    for (Op left_out :
         {Op::StopGradient, Op::ErfInv, Op::ArcTanh, Op::ArcSin, Op::ArcCos, Op::ArcCosh, Op::Round, Op::Floor, Op::Ceil, Op::Trunc})
      if (n.op == left_out) return n.in[0];
    graph::Node m = n;
    m.type.dtype = wide(n.type.dtype);
    for (graph::Body& b : m.bodies) b = in_float64(*b);
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

TEST(FuzzTransforms, Derivatives) {
  int compared = 0;
  for_each_seed([&](std::uint32_t seed) -> std::string {
    Graph g = draw(seed);
    if (has_complex(g)) return "";
    g = in_float64(g);
    graph::verify(g);
    const Slots wrt = floating_slots(g);
    const std::vector<Tensor> inputs = random_inputs(g, seed);
    if (wrt.empty() || !is_tame(g, inputs)) return "";
    const std::string wrong = derivative_error(g, inputs, wrt, seed, &compared);
    // Large numbers that cancel on the way back leave their rounding errors.
    if (!wrong.empty() && !is_tame(transforms::vjp(g, wrt), random_inputs_after(inputs, transforms::vjp(g, wrt), seed))) return "";
    return wrong.empty() ? "" : wrong + "\n" + graph::print(g);
  });
  std::printf("%d derivatives compared\n", compared);
}

TEST(FuzzTransforms, Batches) {
  for_each_seed([](std::uint32_t seed) -> std::string {
    const Graph g = draw(seed);
    std::mt19937 random(seed);
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
    const std::string wrong = vmap_error(g, in, out, 1 + seed % 3, special);
    return wrong.empty() ? "" : wrong + "\n" + graph::print(g);
  });
}

Slots with_derivatives(const Graph& g) {
  Slots wrt;
  const std::vector<graph::Type> types = input_types(g);
  for (std::size_t i = 0; i < types.size(); ++i)
    if (is_floating(types[i].dtype) || is_complex(types[i].dtype)) wrt.push_back(static_cast<std::int64_t>(i));
  return wrt;
}
std::string shrunk_disagreement(const Graph& g, std::uint32_t seed) {
  graph::verify(g);
  const std::string wrong = fuzz::disagreement(g, seed);
  return wrong.empty() ? "" : wrong + "\n" + graph::print(fuzz::shrink(g, seed));
}

TEST(FuzzTransforms, PathsOfGradientsAgree) {
  for_each_seed([](std::uint32_t seed) -> std::string {
    const Graph g = draw(seed);
    return shrunk_disagreement(transforms::vjp(g, with_derivatives(g)), seed);
  });
}

// Two or three transforms of a small graph, in any order: reverse over reverse, forward over reverse, batches of gradients, ...
TEST(FuzzTransforms, PathsOfCompositionsAgree) {
  constexpr graph::Id kMostNodes = 600;
  for_each_seed([](std::uint32_t seed) -> std::string {
    std::mt19937 random(seed);
    Graph g = fuzz::random_graph(seed, 3 + static_cast<int>(seed % 5));
    for (std::uint32_t left = 2 + random() % 2; left > 0 && g.size() < kMostNodes; --left) switch (random() % 3) {
        case 0: g = transforms::vjp(g, with_derivatives(g)); break;
        case 1: g = transforms::jvp(g, with_derivatives(g)); break;
        default: g = transforms::vmap(g, 2, Slots(input_types(g).size(), 0), Slots(g.outputs().size(), 0));
      }
    return shrunk_disagreement(g, seed);
  });
}

}  // namespace
