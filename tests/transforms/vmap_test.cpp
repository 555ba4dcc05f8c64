// vmap: every operation against a loop, for each input batched alone and all together, on every axis.
#include <gtest/gtest.h>

#include "graph/build.h"
#include "support/derivatives.h"
#include "support/graphs.h"
#include "transforms/cases.h"

namespace {

using namespace sinter;
using namespace sinter::tests;
using ops::Op;

// Numbers for floats; for indices small ones, some of them out of range; anything for keys.
Tensor draw(const graph::Type& t, std::mt19937& random) {
  if (t.dtype == Dtype::uint32) return random_tensor(t, random, 0, 4e9);
  return is_signed(t.dtype) ? random_tensor(t, random, -6, 6)
                            : random_tensor(t, random, t.dtype == Dtype::uint8 ? 0 : -2, is_integer(t.dtype) ? 6 : 2);
}

void expect_as_loop(const Graph& g, std::int64_t size, double tolerance) {
  const std::vector<graph::Type> types = input_types(g);
  std::mt19937 random(1);
  auto some = [&](const graph::Type& t) { return draw(t, random); };
  // The axis of input i, and which inputs have one: each alone, then all.
  for (std::size_t which = 0; which <= types.size(); ++which)
    for (std::int64_t axis = 0; axis < 5; ++axis) {
      Slots in, batched, out;
      bool fits = false;
      for (std::size_t i = 0; i < types.size(); ++i) {
        const auto rank = static_cast<std::int64_t>(types[i].shape.size());
        const bool on = which == types.size() || which == i;
        fits = fits || (on && axis <= rank);
        in.push_back(on ? std::min(axis, rank) : transforms::kNotBatched);
        if (on) batched.push_back(static_cast<std::int64_t>(i));
      }
      if (!fits) break;
      const std::vector<bool> varies = transforms::depends_on(g, batched);
      for (std::size_t i = 0; i < varies.size(); ++i)
        out.push_back(varies[i] || axis == 1 ? std::min(axis, static_cast<std::int64_t>(g[g.outputs()[i]].type.shape.size()))
                                             : transforms::kNotBatched);
      EXPECT_EQ(vmap_error(g, in, out, size, some, tolerance), "") << "inputs " << testing::PrintToString(in);
    }
}

class VmapStructured : public testing::TestWithParam<GraphCase> {};
TEST_P(VmapStructured, AsALoop) {
  const Graph g = graph::parse(GetParam().text);
  expect_as_loop(g, 3, 1e-12);
  expect_as_loop(g, 1, 1e-12);
  expect_as_loop(g, 0, 0);
  // And of the gradient, and by machine code.
  if (floating_slots(g).empty()) return;
  const Graph backward = transforms::vjp(g, floating_slots(g));
  expect_as_loop(backward, 2, 1e-12);
  const Slots in(input_types(backward).size(), 0), out(backward.outputs().size(), 0);
  const Graph batched = transforms::vmap(backward, 2, in, out);
  std::mt19937 random(1);
  std::vector<Tensor> inputs;
  for (const graph::Type& t : input_types(batched)) inputs.push_back(draw(t, random));
  EXPECT_EQ(graph::difference(run_plan(batched, inputs), graph::interpret(batched, inputs), 1e-9), "");
}
INSTANTIATE_TEST_SUITE_P(All, VmapStructured, testing::ValuesIn(kGraphCases), [](const auto& i) { return i.param.name; });

TEST(VmapElementwise, AsALoop) {
  for (std::size_t i = 0; i < ops::all_ops().size(); ++i) {
    const Op op = static_cast<Op>(i);
    if (!ops::is_elementwise(op)) continue;
    const ops::OpInfo& facts = ops::info(op);
    const bool whole = facts.rule == ops::Rule::Integer || facts.rule == ops::Rule::Shift;
    const Dtype t = facts.rule == ops::Rule::Logical ? Dtype::bool_ : whole ? Dtype::int32 : Dtype::float32;
    for (int scalar = -1; scalar < facts.operands; ++scalar) {
      Graph g;
      std::vector<graph::Id> in;
      for (int k = 0; k < facts.operands; ++k)
        in.push_back(g.add({Op::Input, {}, {k}, {op == Op::Where && k == 0 ? Dtype::bool_ : t, k == scalar ? Shape{} : Shape{2, 3}}}));
      g.set_outputs({graph::elementwise(g, op, in)});
      SCOPED_TRACE(facts.name);
      expect_as_loop(g, 2, 0);
    }
  }
}

// A batch of keys: each example has the bits that its key gives alone, in every width, by machine code too.
TEST(VmapRandom, EachKeyHasItsBits) {
  for (std::int64_t width : {1, 2, 4}) {
    const Dtype t = width == 1 ? Dtype::uint8 : width == 2 ? Dtype::uint16 : Dtype::uint32;
    Graph g;
    const graph::Id key = g.add({Op::Input, {}, {0}, {Dtype::uint32, {2}}});
    g.set_outputs({g.add({Op::RandomBits, {key}, {width}, {t, {3, 7}}})});
    const Graph batched = transforms::vmap(transforms::vmap(g, 2, Slots{0}, Slots{1}), 3, Slots{1}, Slots{0});
    std::mt19937 random(1);
    const Tensor keys = random_tensor(input_types(batched)[0], random, 0, 4e9);
    const std::vector<Tensor> all = graph::interpret(batched, std::vector{keys});
    EXPECT_EQ(all[0].shape, (Shape{3, 3, 2, 7}));
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t k = 0; k < 2; ++k) {
        const Tensor one = graph::interpret(g, std::vector{part(part(keys, 1, i), 0, k)})[0];
        EXPECT_EQ(graph::difference({{part(part(all[0], 0, i), 1, k)}}, {{one}}), "");
      }
    for (Memory m : kMemories) EXPECT_EQ(graph::difference(run_plan(batched, std::vector{keys}, m), all), "") << "width " << width;
  }
}

}  // namespace
