// Matrix products. Layer: api.
#include "api/common.h"

namespace sinter {

using api::Op;

namespace {

// Operands of one dtype with two axes or more and equal batch axes, and the shape that the user sees.
struct Product {
  Array a, b;
  Shape shape;   // of the node
  Shape result;  // without the axis of a 1-d operand
};

Product prepare(const char* what, const Array& left, const Array& right) {
  Shape sa = api::shape_of(left, what), sb = api::shape_of(right, what);
  if (sa.empty() || sb.empty()) throw ShapeError(str(what, ": an operand is 0-d; got ", sa, " and ", sb, "; use multiply"));
  const Dtype t = promote_types(left.dtype(), right.dtype());
  if (t == Dtype::bool_) throw DtypeError(str(what, ": takes numbers, not bool; got bool and bool; convert with astype first"));
  if (is_complex(t))
    throw DtypeError(
        str(what, ": does not take complex64; got ", left.dtype(), " and ", right.dtype(), "; multiply real and imaginary parts"));
  const bool row = sa.size() == 1, column = sb.size() == 1;
  if (row) sa.insert(0, 1);
  if (column) sb.push_back(1);
  if (sa.back() != sb[sb.size() - 2]) {
    throw ShapeError(str(what, ": the inner sizes differ; got ", left.shape(), " and ", right.shape(),
                         "; make the last axis of the first equal to the second to last of the second"));
  }
  Shape batch_a, batch_b;
  for (std::size_t i = 0; i + 2 < sa.size(); ++i) batch_a.push_back(sa[i]);
  for (std::size_t i = 0; i + 2 < sb.size(); ++i) batch_b.push_back(sb[i]);
  Product p;
  p.a = api::reshaped(engine::cast(left, t), sa);
  p.b = api::reshaped(engine::cast(right, t), sb);
  const Shape batches[] = {batch_a, batch_b};
  const Shape batch = api::broadcast_shapes(what, batches);
  p.result = batch;
  if (!row) p.result.push_back(sa[sa.size() - 2]);
  if (!column) p.result.push_back(sb.back());
  if (batch_b.empty() && !batch_a.empty()) {
    // One matrix on the right: all rows of the left in one product.
    const Dim rows = batch_a.product() * sa[sa.size() - 2];
    p.shape = {rows, sb.back()};
    p.a = api::reshaped(p.a, {rows, sa.back()});
    return p;
  }
  auto batched = [&](const Shape& s) {
    Shape full = batch;
    full.push_back(s[s.size() - 2]);
    full.push_back(s.back());
    return full;
  };
  p.shape = batched({sa[sa.size() - 2], sb.back()});
  p.a = engine::broadcast(p.a, batched(sa));
  p.b = engine::broadcast(p.b, batched(sb));
  return p;
}

Array product(const char* what, const Product& p) {
  api::check_sizes(what, p.shape, p.a.dtype());
  if (api::is_empty(p.shape) || p.a.shape().back() == 0) return zeros(p.shape, p.a.dtype());
  return engine::make(Op::Matmul, {p.a, p.b}, {}, p.a.dtype(), p.shape);
}

}  // namespace

Array matmul(const Array& a, const Array& b) {
  const Product p = prepare("matmul", a, b);
  return api::reshaped(product("matmul", p), p.result);
}

Array addmm(const Array& c, const Array& a, const Array& b, double alpha, double beta) {
  engine::operand_of(c, "addmm");
  Product p = prepare("addmm", a, b);
  const Shape shapes[] = {c.shape(), p.result};
  if (!(api::broadcast_shapes("addmm", shapes) == p.result)) {
    throw ShapeError(
        str("addmm: the addend does not broadcast to the product; got ", c.shape(), " and ", p.result, "; make its axes equal or 1"));
  }
  const Dtype t = promote_types(c.dtype(), p.a.dtype());
  const Array addend = engine::broadcast(engine::cast(c, t), p.result);
  p.a = engine::cast(p.a, t);
  p.b = engine::cast(p.b, t);
  if (alpha != 1 || beta != 1) return beta * addend + alpha * api::reshaped(product("addmm", p), p.result);
  if (api::is_empty(p.shape) || p.a.shape().back() == 0) return addend;
  return api::reshaped(engine::make(Op::AddMM, {api::reshaped(addend, p.shape), p.a, p.b}, {}, t, p.shape), p.result);
}

}  // namespace sinter
