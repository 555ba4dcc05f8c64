#include "ops/convolution.h"

#include <algorithm>

#include "base/check.h"

namespace sinter::ops {
namespace {

using Role = Convolution::Role;
constexpr std::size_t kAxisAttrs = 6;  // attributes of a spatial axis

void require(bool ok, Op op, const char* rule) {
  if (!ok) [[unlikely]]
    throw InternalError(str("internal: ", info(op).name, ": ", rule));
}

}  // namespace

Shape Convolution::shape(Role role) const {
  Shape s{role == kWeight ? out : batch};
  for (const ConvAxis& a : axes) s.push_back(role == kInput ? a.input : role == kWeight ? a.kernel : a.output());
  s.push_back(role == kInput ? in : role == kWeight ? in / groups : out);
  return s;
}

Attrs Convolution::attrs() const {
  Attrs list{groups};
  for (const ConvAxis& a : axes)
    for (const Dim& v : {a.input, a.kernel, a.stride, a.low, a.high, a.dilation}) list.push_back(v);
  return list;
}

std::int64_t Convolution::work() const {
  Dim n = batch * out * (in / groups);
  for (const ConvAxis& a : axes) n *= a.kernel * a.output();
  return n;
}

const char* Convolution::name(Role role) { return role == kInput ? "input" : role == kWeight ? "weight" : "output"; }

Role result_role(Op op) { return op == Op::Conv ? Role::kOutput : op == Op::ConvInput ? Role::kInput : Role::kWeight; }
Op convolution_op(Role result) { return result == Role::kOutput ? Op::Conv : result == Role::kInput ? Op::ConvInput : Op::ConvWeight; }
std::array<Role, 2> operand_roles(Op op) {
  const Role result = result_role(op);
  return {result == Role::kInput ? Role::kOutput : Role::kInput, result == Role::kWeight ? Role::kOutput : Role::kWeight};
}

Convolution convolution_of(Op op, Ints attrs, std::span<const Shape> in) {
  require(attrs.size() > kAxisAttrs && attrs.size() % kAxisAttrs == 1 && attrs[0] > 0, op, "groups, and six numbers for each axis");
  Convolution c;
  c.groups = attrs[0];
  for (std::size_t i = 1; i < attrs.size(); i += kAxisAttrs) {
    c.axes.push_back({attrs[i], attrs[i + 1], attrs[i + 2], attrs[i + 3], attrs[i + 4], attrs[i + 5]});
    const ConvAxis& a = c.axes.back();
    require(a.input >= 0 && a.kernel > 0 && a.stride > 0 && a.low >= 0 && a.high >= 0 && a.dilation > 0, op, "an axis out of range");
  }
  const auto roles = operand_roles(op);
  for (std::size_t i = 0; i < 2; ++i) {
    require(in[i].size() == c.axes.size() + 2, op, "an operand has not the axes of the attributes");
    const Dim first = in[i][0], last = in[i].back();
    (roles[i] == Role::kWeight ? c.out : c.batch) = first;
    if (roles[i] == Role::kInput) c.in = last;
    if (roles[i] == Role::kWeight) c.in = last * c.groups;
    if (roles[i] == Role::kOutput) c.out = last;
  }
  require(c.in % c.groups == 0 && c.out % c.groups == 0, op, "channels do not divide into groups");
  for (std::size_t i = 0; i < 2; ++i) require(in[i] == c.shape(roles[i]), op, "operands do not fit each other");
  return c;
}

}  // namespace sinter::ops
