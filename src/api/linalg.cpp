// Linear algebra. Layer: api.
#include "sinter/linalg.h"

#include "api/common.h"

namespace sinter::linalg {

using api::Op;

namespace {

Dtype computing(const char* what, Dtype t) {
  if (t == Dtype::bool_) throw DtypeError(str(what, ": takes numbers, not bool; got bool; convert with astype first"));
  return api::at_least_float(t);
}

void require_square(const char* what, const Shape& s) {
  if (s.size() < 2) throw ShapeError(str(what, ": the array has fewer than 2 axes; got shape ", s, "; give a matrix"));
  if (s[s.size() - 1] != s[s.size() - 2])
    throw ShapeError(str(what, ": the matrix is not square; got shape ", s, "; make the last two axes equal"));
}

Shape leading(const Shape& s) {
  Shape batch;
  for (std::size_t i = 0; i + 2 < s.size(); ++i) batch.push_back(s[i]);
  return batch;
}

Array solve(const char* what, const Array& left, const Array& right) {
  const Shape sa = api::shape_of(left, what);
  Shape sb = api::shape_of(right, what);
  require_square(what, sa);
  const Dtype t = computing(what, promote_types(left.dtype(), right.dtype()));
  const bool column = sb.size() == 1;
  if (column) sb.push_back(1);
  if (sb.empty() || sb[sb.size() - 2] != sa.back()) {
    throw ShapeError(str(what, ": the right side has not the rows of the matrix; got ", left.shape(), " and ", right.shape(), "; use ", "(",
                         sa.back(), ") or (...,", sa.back(), ",k)"));
  }
  const Shape batches[] = {leading(sa), leading(sb)};
  const Shape batch = api::broadcast_shapes(what, batches);
  const auto batched = [&](const Shape& s) {
    Shape full = batch;
    full.push_back(s[s.size() - 2]);
    full.push_back(s.back());
    return full;
  };
  const Shape shape = batched(sb);
  api::check_sizes(what, shape, t);
  Shape result = shape;
  if (column) result.erase(result.size() - 1);
  if (api::is_empty(shape)) return zeros(result, t);
  const Array a = engine::cast(left, t), b = api::reshaped(engine::cast(right, t), sb);
  if (sa.size() == 2 && sb.size() > 2) {
    // One matrix for all is factored once: the right sides stand side by side.
    const Array wide = moveaxis(b, -2, 0);
    const Shape flat{sa.back(), shape.product() / sa.back()};
    const Array x = engine::make(Op::Solve, {a, api::reshaped(wide, flat)}, {}, t, flat);
    return moveaxis(api::reshaped(x, wide.shape()), 0, -2);
  }
  return api::reshaped(engine::make(Op::Solve, {engine::broadcast(a, batched(sa)), engine::broadcast(b, shape)}, {}, t, shape), result);
}

}  // namespace

Array solve(const Array& a, const Array& b) { return solve("solve", a, b); }
Array inv(const Array& a) {
  require_square("inv", api::shape_of(a, "inv"));
  return solve("inv", a, identity(a.shape().back(), computing("inv", a.dtype())));
}

}  // namespace sinter::linalg
