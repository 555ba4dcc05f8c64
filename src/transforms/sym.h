// Sym: the language in which derivatives are written: a node of a graph under construction, with the operators and functions of
// elementwise.def, and short forms of the structured operations. Layer: transforms.
//
// A number beside a Sym is a literal of the Sym's dtype. A Sym without a graph is "zero": a cotangent or tangent that nobody computes;
// `add` and `operator bool` know it, nothing else takes it.
#pragma once
#include <concepts>
#include <span>
#include <vector>

#include "graph/build.h"
#include "graph/graph.h"
#include "ops/convolution.h"
#include "ops/elements.h"

namespace sinter::transforms {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;
using Axes = ops::Attrs;

struct Sym {
  Graph* graph = nullptr;
  Id id = graph::kKeep;

  explicit operator bool() const { return graph != nullptr; }
  Dtype dtype() const { return (*graph)[id].type.dtype; }
  Shape shape() const { return (*graph)[id].type.shape; }
  std::size_t rank() const { return (*graph)[id].type.shape.size(); }
  const Dim& size(std::size_t axis) const { return (*graph)[id].type.shape[axis]; }
};
inline constexpr Sym kZero{};

template <class T>
concept Number = std::is_arithmetic_v<T> || std::same_as<T, Dim>;
template <class T>
concept Term = std::same_as<T, Sym> || Number<T>;

/// A 0-d literal, or one element everywhere, of a dtype, in x's graph. Integers wrap, floats round.
Sym literal(const Sym& x, Dtype t, double v, Shape shape = {});
template <std::same_as<Dim> D>
Sym literal(const Sym& x, Dtype t, const D& v) {
  return {x.graph, graph::constant(*x.graph, t, ops::bits_of_size(v, t))};
}
/// The literal i of complex64.
Sym imaginary_unit(const Sym& x);

inline Sym elementwise(Op op, std::initializer_list<Sym> in) {
  std::vector<Id> ids;
  for (const Sym& s : in) ids.push_back(s.id);
  return {in.begin()->graph, graph::elementwise(*in.begin()->graph, op, std::move(ids))};
}

namespace detail {
inline const Sym& first_sym(const Sym& x) { return x; }
template <class... R>
const Sym& first_sym(const Sym& x, const R&...) {
  return x;
}
template <Number N, class... R>
const Sym& first_sym(N, const R&... rest) {
  return first_sym(rest...);
}
inline Sym term(const Sym&, const Sym& x) { return x; }
template <Number N>
Sym term(const Sym& like, N v) {
  if constexpr (std::same_as<N, Dim>)
    return literal(like, like.dtype(), v);
  else
    return literal(like, like.dtype(), static_cast<double>(v));
}
}  // namespace detail

// The functions of the table. The dtype of a literal is that of the first Sym; of where, of the first after the condition.
#define OP1(Name, function, ...) \
  inline Sym function(const Sym& x) { return elementwise(Op::Name, {x}); }
#define OP2(Name, function, ...)                                                  \
  template <Term X, Term Y>                                                       \
  Sym function(const X& x, const Y& y) {                                          \
    const Sym& like = detail::first_sym(x, y);                                    \
    return elementwise(Op::Name, {detail::term(like, x), detail::term(like, y)}); \
  }
#define OP3(Name, function, ...)                                                                         \
  template <Term X, Term Y, Term Z>                                                                      \
  Sym function(const X& x, const Y& y, const Z& z) {                                                     \
    const Sym& like = Op::Name == Op::Where ? detail::first_sym(y, z, x) : detail::first_sym(x, y, z);   \
    return elementwise(Op::Name, {detail::term(like, x), detail::term(like, y), detail::term(like, z)}); \
  }
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3

inline Sym operator-(const Sym& x) { return negative(x); }
#define SINTER_SYM_BINARY(op, function)                                         \
  inline Sym operator op(const Sym& a, const Sym& b) { return function(a, b); } \
  template <Number N>                                                           \
  Sym operator op(const Sym& a, N b) {                                          \
    return function(a, b);                                                      \
  }                                                                             \
  template <Number N>                                                           \
  Sym operator op(N a, const Sym& b) {                                          \
    return function(a, b);                                                      \
  }
SINTER_SYM_BINARY(+, add)
SINTER_SYM_BINARY(-, subtract)
SINTER_SYM_BINARY(*, multiply)
SINTER_SYM_BINARY(/, divide)
SINTER_SYM_BINARY(==, equal)
SINTER_SYM_BINARY(!=, not_equal)
SINTER_SYM_BINARY(<, less)
SINTER_SYM_BINARY(<=, less_equal)
SINTER_SYM_BINARY(>, greater)
SINTER_SYM_BINARY(>=, greater_equal)
#undef SINTER_SYM_BINARY

/// The sum; a zero operand leaves the other.
inline Sym sum_of(const Sym& a, const Sym& b) { return !a ? b : !b ? a : a + b; }
/// conjugate; the same of a real dtype.
inline Sym conj(const Sym& x) { return is_complex(x.dtype()) ? conjugate(x) : x; }

// Structured operations. Where nothing changes, the operand itself comes back.

Sym cast(const Sym& x, Dtype t);
Sym reshape(const Sym& x, const Shape& shape);
Sym broadcast(const Sym& x, const Shape& shape);
Sym transpose(const Sym& x, Axes axes);
/// The axis `from` comes to stand at `to`.
Sym move_axis(const Sym& x, std::size_t from, std::size_t to);
Sym slice(const Sym& x, Axes start, Axes size, Axes step);
/// size elements from start along one axis.
Sym slice(const Sym& x, std::size_t axis, Dim start, Dim size);
/// Adds low and high elements of a value at the ends of each axis.
Sym pad(const Sym& x, double value, Axes low, Axes high);
Sym pad(const Sym& x, const Sym& value, Axes low, Axes high);
Sym concatenate(const std::vector<Sym>& parts, std::size_t axis);
/// Drops the axes, which are ascending.
Sym sum(const Sym& x, Axes axes);
/// The index along an axis of the shape.
Sym iota(const Sym& x, Dtype t, const Shape& shape, std::size_t axis);
Sym take_along(const Sym& x, const Sym& indices, std::size_t axis);
Sym scatter_add(const Sym& x, const Sym& indices, const Sym& updates, std::size_t axis);
Sym put_along(const Sym& x, const Sym& indices, const Sym& updates, std::size_t axis);
Sym matmul(const Sym& a, const Sym& b);
/// x of a x = b; batch axes equal.
Sym solve(const Sym& a, const Sym& b);

/// The array of a role (ops/convolution.h) from those of the two others.
Sym convolution(const ops::Convolution& c, ops::Convolution::Role result, const Sym& a, const Sym& b);

/// 0, ..., n - 1.
Axes first_axes(std::size_t n);
/// The shape with 1 for each of the axes.
Shape keep_axes(Shape shape, ops::Ints axes);
/// The sum over the axes that broadcasting `shape` to x's would add or stretch; has that shape.
Sym sum_to(const Sym& x, const Shape& shape);
/// The same of a condition: whether any element holds.
Sym any_to(const Sym& x, const Shape& shape);

}  // namespace sinter::transforms
