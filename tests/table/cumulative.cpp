// Every Cumulative operation x dtypes x axes x layouts x lengths: each way to run it gives the bits of the reference, for the order is
// fixed; and on tame numbers the values that sums and products of parts give in higher precision.
#include <cmath>
#include <complex>

#include "graph/build.h"
#include "table/table.h"

namespace sinter::tests {
namespace {

bool takes(Op op, Dtype t) {
  if (op == Op::LogCumSumExp) return is_floating(t);
  return (op != Op::CumMax && op != Op::CumMin) || !is_complex(t);
}

// Each operation along the axis, both ways, with and without the element itself: of the operand, and of twice the operand with its
// negative.
Graph graph_of(Dtype t, const Shape& shape, std::int64_t axis, std::uint32_t seed) {
  Graph g;
  const graph::Id x = g.add({Op::Input, {}, {0}, {t, shape}}), twice = graph::elementwise(g, Op::Add, {x, x});
  std::vector<graph::Id> outputs;
  for (std::size_t i = 0; i < ops::all_ops().size(); ++i) {
    const ops::OpInfo& facts = ops::all_ops()[i];
    const Op op = static_cast<Op>(i);
    if (facts.kind != ops::OpKind::Cumulative || !takes(op, t)) continue;
    for (std::int64_t reverse : {0, 1})
      if (facts.operands == 2)
        outputs.push_back(g.add({op, {x, twice}, {axis, reverse}, {t, shape}}));
      else
        for (std::int64_t inclusive : {0, 1}) {
          if (!test_all() && (static_cast<std::uint32_t>(reverse + inclusive) + i + seed) % 2) continue;  // half of them a graph
          const graph::Id y = g.add({op, {reverse ? x : twice}, {axis, reverse, inclusive}, {t, shape}});
          outputs.push_back(inclusive ? graph::elementwise(g, Op::Multiply, {y, x}) : y);
        }
  }
  g.set_outputs(outputs);
  return g;
}

graph::Strides strides_of(const Shape& shape, int layout) {
  graph::Strides s = graph::row_major(shape);
  switch (layout) {
    case 1:
      for (std::size_t d = 0, at = 1; d < s.size(); ++d)
        s[d] = static_cast<std::int64_t>(at), at *= static_cast<std::size_t>(std::int64_t{shape[d]});
      break;  // the first axis innermost
    case 2:
      for (Dim& v : s) v *= -3;
      break;                       // gaps, backwards
    case 3: s.front() = 0; break;  // broadcast
    case 4: s.back() = 0; break;
    default: break;
  }
  return s;
}

std::string check(Dtype t, const Shape& shape, std::int64_t axis, int layout, std::uint32_t seed) {
  const std::vector<Input> in{operand(t, shape, strides_of(shape, layout), seed, -3, 3, true)};
  const std::string d = disagreement(graph_of(t, shape, axis, seed), in, {.unfused = seed % 3 == 0, .levels = seed % 40 == 0});
  return d.empty() ? d : str("cumulative of ", t, shape, " along ", axis, " layout ", layout, ": ", d);
}

TEST(Table, CumulativeInEveryLayout) {
  std::vector<std::function<std::string()>> jobs;
  std::uint32_t seed = 0;
  for (int d = 0; d < kDtypeCount; ++d) {
    const Dtype t = static_cast<Dtype>(d);
    for (const Shape& shape : {Shape{3, 5, 34}, Shape{70, 2, 3}})
      for (std::int64_t axis : {0, 1, 2})
        for (int layout = 0; layout < 5; ++layout)
          if (++seed; test_all() || seed % (t == Dtype::float32 ? 3 : 13) == 0)
            jobs.push_back([=] { return check(t, shape, axis, layout, seed); });
    for (std::int64_t n : {0, 1, 2, 7, 16, 33, 1000})
      if (++seed; test_all() || t == Dtype::float32 || seed % 7 == 0)
        jobs.push_back([=]() -> std::string {
          for (const auto& [shape, axis] : {std::pair{Shape{n}, 0}, {Shape{n, 9}, 0}, {Shape{2, n}, 1}, {Shape{0, n}, 1}})
            if (std::string e = check(t, shape, axis, 2, seed); !e.empty()) return e;
          return "";
        });
  }
  run_jobs(std::move(jobs));
}

// Against definitions: element k is the fold of the first k, summed anew for each k in long double.
TEST(Table, CumulativeValues) {
  for (Dtype t : {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::bfloat16, Dtype::int32, Dtype::uint8}) {
    const double eps = t == Dtype::float32    ? 6e-8
                       : t == Dtype::float64  ? 1.1e-16
                       : t == Dtype::float16  ? 5e-4
                       : t == Dtype::bfloat16 ? 4e-3
                                              : 0;
    const Input x = operand(t, {57}, {1}, 3, is_floating(t) ? 0.8 : 0, is_floating(t) ? 1.2 : 2, false);
    const std::vector<double> v = x.array.to_vector<double>();
    for (bool reverse : {false, true})
      for (bool inclusive : {false, true}) {
        const Array got[] = {cumsum(x.array, 0, reverse, inclusive), cumprod(x.array, 0, reverse, inclusive),
                             cummax(x.array, 0, reverse, inclusive), cummin(x.array, 0, reverse, inclusive),
                             logcumsumexp(x.array, 0, reverse, inclusive)};
        for (int k = 0; k < 57; ++k) {
          long double sum = 0, prod = 1, high = -INFINITY, low = INFINITY, exps = 0;
          for (int i = 0; i < 57; ++i) {
            if (i == k ? !inclusive : (i < k) == reverse) continue;
            const long double e = v[static_cast<std::size_t>(i)];
            sum += e, prod *= e, high = std::max(high, e), low = std::min(low, e), exps += std::exp(e);
          }
          const bool nothing = high == -INFINITY;
          const long double expected[] = {sum, prod, high, low, std::log(exps)};
          for (int op = 0; op < 5; ++op) {
            const double y = take(got[op], k, 0).item<double>(), want = static_cast<double>(expected[op]);
            if (nothing && (op == 2 || op == 3) && !is_floating(t)) continue;  // the ends of the dtype, below
            const double limit = op == 4 ? 57 * std::max(eps, 6e-8) : (op < 2 ? 1 + 57 * (is_half(t) ? 1e-4 : 1) : 0) * eps;
            if (std::isinf(want))
              EXPECT_EQ(y, want) << t << " operation " << op;
            else
              EXPECT_NEAR(y, want, limit * (std::fabs(want) + (op == 4))) << t << " operation " << op << " at " << k;
          }
        }
      }
  }
}

}  // namespace
}  // namespace sinter::tests
