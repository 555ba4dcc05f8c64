// What the rules of Cumulative operations share. Layer: transforms.
#pragma once
#include "transforms/rules.h"

namespace sinter::transforms {

/// An axis and the direction in which an operation goes along it.
struct Line {
  std::size_t axis;
  bool reverse;
  explicit Line(const Call& c) : axis(c.axis()), reverse(c.node.attrs[1] != 0) {}
  Line(std::size_t a, bool r) : axis(a), reverse(r) {}
  Line back() const { return {axis, !reverse}; }
};
inline bool is_inclusive(const Call& c) { return c.node.attrs[2] != 0; }

Sym cumulate(Op op, const Sym& x, Line line, bool inclusive);
/// y of y = a * (y before it) + b; the first is b's.
Sym recurrence(const Sym& a, const Sym& b, Line line);
/// At each place the element before it; at the first, `first`. The axis is not empty.
Sym before(const Sym& x, Line line, double first);
/// The cotangent of the inclusive result, of which the result that has g is a part: g itself, or moved back by one place.
Sym inclusive_cotangent(const Call& c, const Sym& g);
/// The tangent of the result, given that of the inclusive one.
Sym inclusive_tangent(const Call& c, const Sym& t);
/// The batch rule of every Cumulative.
Sym batch_cumulative(const BatchCall& c);
/// Derivatives of CumMax and CumMin: the element that set the record has it, of equal ones the first.
void vjp_record(const Call& c, const Sym& g, Cotangents& to);
Sym jvp_record(const Call& c, const Sym& tangent);

}  // namespace sinter::transforms
