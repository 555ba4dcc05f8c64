// Division by powers of two: a multiplication exactly where no bit can change.
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/interpret.h"
#include "passes/pass.h"

namespace {

using namespace sinter;
using graph::Graph;
using graph::Id;
using ops::Op;

struct Format {
  Dtype dtype;
  int mantissa, exponent;  // bits
};

TEST(Inverse, DivisionByEveryPowerOfTwo) {
  for (const Format& f : {Format{Dtype::float16, 10, 5}, {Dtype::bfloat16, 7, 8}, {Dtype::float32, 23, 8}, {Dtype::float64, 52, 11}}) {
    const int most = (1 << f.exponent) - 1, step = f.dtype == Dtype::float64 ? 37 : 1;
    for (int e = 0; e <= most; e += step)
      for (std::uint64_t sign : {0, 1})
        for (std::uint64_t fraction : {0, 1}) {
          Graph g;
          Id x = g.add({Op::Input, {}, {0}, {f.dtype, Shape{200}}});
          Id c = graph::constant(g, f.dtype, ((sign << f.exponent | static_cast<std::uint64_t>(e)) << f.mantissa) | fraction);
          g.set_outputs({graph::elementwise(g, Op::Divide, {x, c})});
          passes::Context context;
          Graph after = passes::simplify(g, context);
          bool divides = after[after.outputs()[0]].op == Op::Divide;
          EXPECT_EQ(!divides, fraction == 0 && e > 0 && e < most - 1) << name(f.dtype) << " exponent " << e;
          if (divides) continue;
          std::vector<graph::Tensor> in = graph::sample_inputs(g, static_cast<std::uint32_t>(e));
          EXPECT_EQ(graph::difference(graph::interpret(g, in), graph::interpret(after, in)), "") << name(f.dtype) << " exponent " << e;
        }
  }
}

}  // namespace
