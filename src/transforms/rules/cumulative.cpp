#include "transforms/rules/cumulative.h"

namespace sinter::transforms {

Sym cumulate(Op op, const Sym& x, Line line, bool inclusive) {
  return {x.graph,
          x.graph->add(
              {op, {x.id}, {static_cast<std::int64_t>(line.axis), Dim(int{line.reverse}), Dim(int{inclusive})}, {x.dtype(), x.shape()}})};
}
Sym recurrence(const Sym& a, const Sym& b, Line line) {
  return {
      a.graph,
      a.graph->add(
          {Op::LinearRecurrence, {a.id, b.id}, {static_cast<std::int64_t>(line.axis), Dim(int{line.reverse})}, {a.dtype(), a.shape()}})};
}
Sym before(const Sym& x, Line line, double first) {
  Axes low(x.rank(), 0), high(x.rank(), 0);
  (line.reverse ? high : low)[line.axis] = 1;
  return pad(slice(x, line.axis, line.reverse ? 1 : 0, x.size(line.axis) - 1), first, std::move(low), std::move(high));
}
Sym inclusive_cotangent(const Call& c, const Sym& g) { return is_inclusive(c) ? g : before(g, Line(c).back(), 0); }
Sym inclusive_tangent(const Call& c, const Sym& t) { return is_inclusive(c) ? t : before(t, Line(c), 0); }

Sym batch_cumulative(const BatchCall& c) {
  ops::Attrs attrs = c.node.attrs;
  attrs[0] += 1;
  std::vector<Id> in;
  for (std::size_t i = 0; i < c.operands.size(); ++i) in.push_back(c.spread(i).id);
  return c.make(std::move(in), std::move(attrs), c.shape());
}

namespace {

// For each place, that of the element that the inclusive result shows there.
Sym records(const Call& c) {
  const Line line(c);
  const Sym x = c.in(0), best = cumulate(c.node.op, x, line, false);
  const Sym nan = logical_and(x != x, best == best), beaten = c.node.op == Op::CumMax ? x > best : x < best;
  const Sym place = iota(x, Dtype::int64, x.shape(), line.axis);
  const Dim first = line.reverse ? x.size(line.axis) - 1 : Dim(0);
  const Sym set = where(logical_or(beaten, nan), place, first);
  return cumulate(line.reverse ? Op::CumMin : Op::CumMax, set, line, true);
}

}  // namespace

void vjp_record(const Call& c, const Sym& g, Cotangents& to) {
  if (c.shape().product() == 0 || !to.wanted(0)) return;
  to.add(0, scatter_zeros(c.shape(), records(c), inclusive_cotangent(c, g), c.axis()));
}
Sym jvp_record(const Call& c, const Sym& tangent) {
  if (c.shape().product() == 0) return kZero;
  return inclusive_tangent(c, take_along(tangent, records(c), c.axis()));
}

}  // namespace sinter::transforms
