// Every Reduce operation x dtypes x axes x layouts, alone and fused with what is before and after it. Sums and products are compared with
// the reference on tame numbers within a tolerance; the ways to run them agree bit for bit, on special numbers too.
#include "graph/build.h"
#include "table/table.h"

namespace sinter::tests {
namespace {

using Axes = std::vector<std::int64_t>;

bool takes(Op op, Dtype t) { return op == Op::Sum || op == Op::Prod || op == Op::All || op == Op::Any || !is_complex(t); }
bool is_position(Op op) { return op == Op::ArgMax || op == Op::ArgMin; }

Dtype reduced_dtype(Op op, Dtype t) {
  if (op == Op::All || op == Op::Any) return Dtype::bool_;
  if (is_position(op)) return Dtype::uint32;
  if (op != Op::Sum && op != Op::Prod) return t;
  if (t == Dtype::bool_ || t == Dtype::int8 || t == Dtype::int16) return Dtype::int32;
  return t == Dtype::uint8 || t == Dtype::uint16 ? Dtype::uint32 : t;
}

std::vector<Op> reductions() {
  std::vector<Op> result;
  for (std::size_t i = 0; i < ops::all_ops().size(); ++i)
    if (ops::all_ops()[i].kind == ops::OpKind::Reduce) result.push_back(static_cast<Op>(i));
  return result;
}

// All reductions of one dtype over these axes: of the operand, and of the operand added to itself with the result cast to float32.
Graph graph_of(Dtype t, const Shape& shape, const Axes& list) {
  const ops::Attrs axes(list.begin(), list.end());
  Graph g;
  const graph::Id x = g.add({Op::Input, {}, {0}, {t, shape}});
  std::vector<graph::Id> outputs;
  for (Op op : reductions()) {
    if (!takes(op, t) || (is_position(op) && axes.size() > 1 && axes.size() < shape.size())) continue;
    const bool extreme = op == Op::Max || op == Op::Min || is_position(op);
    if (extreme && shape.product() == 0) continue;
    outputs.push_back(graph::reduce(g, op, x, axes, reduced_dtype(op, t)));
    if (op == Op::Sum || op == Op::Max || op == Op::ArgMin || op == Op::Any) {
      const graph::Id before = graph::elementwise(g, Op::Add, {x, x});
      outputs.push_back(graph::cast(g, graph::reduce(g, op, before, axes, reduced_dtype(op, t)), Dtype::float32));
    }
  }
  g.set_outputs(outputs);
  return g;
}

graph::Strides strides_of(const Shape& shape, int layout) {
  graph::Strides s = graph::row_major(shape);
  const std::size_t n = s.size();
  switch (layout) {
    case 1:
      std::int64_t at;
      at = 1;
      for (std::size_t d = 0; d < n; ++d) s[d] = at, at *= shape[d];
      break;  // the first axis innermost
    case 2:
      for (Dim& v : s) v *= 3;
      break;  // gaps
    case 3:
      for (Dim& v : s) v = -v;
      break;                  // backwards
    case 4: s[0] = 0; break;  // broadcast
    case 5: s[n - 1] = 0; break;
    case 6:
      for (std::size_t d = 0; d < n; ++d) s[d] = static_cast<std::int64_t>(d) + 1;
      break;  // overlapping
    default: break;
  }
  return s;
}

double tolerance(Dtype t) {
  return t == Dtype::float64               ? 1e-13
         : t == Dtype::float16             ? 1e-3
         : t == Dtype::bfloat16            ? 8e-3
         : is_floating(t) || is_complex(t) ? 1e-5
                                           : 0;
}

std::string check(Dtype t, const Shape& shape, const Axes& axes, int layout, std::uint32_t seed, bool levels) {
  const Graph g = graph_of(t, shape, axes);
  // Tame: products near 1, sums of one sign. Special: any; sums and products overflow or not by their order, so that the ways to run them
  // agree, but not with the reference.
  const double low = is_complex(t) ? 0.68 : 0.95, high = is_complex(t) ? 0.73 : 1.05;
  const std::vector<Input> tame{operand(t, shape, strides_of(shape, layout), seed, low, high, false)};
  std::string d = disagreement(g, tame, {.levels = levels, .tolerance = tolerance(t)});
  if (d.empty()) {
    std::vector<char> rounded;
    for (graph::Id id : g.outputs()) {
      const graph::Node& n = g[g[id].op == Op::Cast ? g[id].in[0] : id];
      rounded.push_back(tolerance(t) > 0 && (n.op == Op::Sum || n.op == Op::Prod));
    }
    const std::vector<Input> special{operand(t, shape, strides_of(shape, layout), seed + 1, -3, 3, true)};
    d = disagreement(g, special, {.unfused = true, .rounded = rounded});
  }
  if (d.empty()) return d;
  std::string text;
  for (std::int64_t a : axes) text += str(a, ",");
  return str("reductions of ", t, shape, " over ", text, " layout ", layout, ": ", d);
}

TEST(Table, ReductionsInEveryLayout) {
  const struct {
    Shape shape;
    Axes axes;
  } cases[] = {{{3, 5, 34}, {0}},    {{3, 5, 34}, {1}},    {{3, 5, 34}, {2}},       {{3, 5, 34}, {0, 1}},
               {{3, 5, 34}, {0, 2}}, {{3, 5, 34}, {1, 2}}, {{3, 5, 34}, {0, 1, 2}}, {{2, 4, 3, 5}, {1, 3}}};
  std::vector<std::function<std::string()>> jobs;
  std::uint32_t seed = 0;
  int number = 0;
  for (const auto& c : cases) {
    ++number;
    for (int d = 0; d < kDtypeCount; ++d)
      for (int layout = 0; layout < 7; ++layout) {
        ++seed;
        // Every other dtype for each choice of axes, float32 for all; of the layouts, one in six.
        if (!test_all() && ((static_cast<Dtype>(d) != Dtype::float32 && (d + number) % 2 != 0) || (layout != 0 && seed % 6 != 0))) continue;
        const bool levels = test_all() || seed % 8 == 0;
        jobs.push_back([=] { return check(static_cast<Dtype>(d), c.shape, c.axes, layout, seed, levels); });
      }
  }
  run_jobs(std::move(jobs));
}

TEST(Table, ReductionsOfEveryLength) {
  std::vector<std::function<std::string()>> jobs;
  for (int d = 0; d < kDtypeCount; ++d)
    jobs.push_back([=]() -> std::string {
      const Dtype t = static_cast<Dtype>(d);
      const bool all = t == Dtype::float32 || t == Dtype::int8 || test_all();
      for (int n = 1; n <= 35; ++n) {
        if (!all && n != 1 && n != 7 && n != 16 && n != 33) continue;
        for (int layout : {0, 3})
          if (std::string e = check(t, {n}, {0}, layout, static_cast<std::uint32_t>(n), false); !e.empty()) return e;
        if (std::string e = check(t, {2, n}, {1}, 0, static_cast<std::uint32_t>(n), false); !e.empty()) return e;
        if (std::string e = check(t, {n, 2}, {0}, 0, static_cast<std::uint32_t>(n), false); !e.empty()) return e;
      }
      for (const Shape& empty : {Shape{0}, Shape{0, 3}}) {
        Axes axes{0};
        if (std::string e = check(t, empty, axes, 0, 1, false); !e.empty()) return e;
      }
      return "";
    });
  // Long enough to be cut into two kernels.
  for (Dtype t : {Dtype::float32, Dtype::float16, Dtype::int64, Dtype::bool_}) {
    jobs.push_back([=] { return check(t, {70001}, {0}, 0, 3, false); });
    jobs.push_back([=] { return check(t, {4001, 6}, {0}, 0, 3, false); });
  }
  run_jobs(std::move(jobs));
}

}  // namespace
}  // namespace sinter::tests
