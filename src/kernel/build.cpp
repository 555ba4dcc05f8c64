#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernel/kernel.h"

namespace sinter::kernel {

bool reads(const Kernel& k, std::size_t buffer) {
  return std::any_of(k.body.begin(), k.body.end(), [&](const Inst& i) {
    return (i.code == Code::Load || i.code == Code::Tile) && static_cast<std::size_t>(i.imm) == buffer;
  });
}

Dtype result_dtype(const Kernel& k, Ref r) {
  const Inst& i = k.body[r];
  return i.code == Code::Compute ? ops::result_dtype(i.op, i.dtype) : i.dtype;
}

Ref Builder::add(Inst i) {
  kernel.body.push_back(i);
  return static_cast<Ref>(kernel.body.size() - 1);
}

Ref Builder::buffer(Dtype t, bool written, bool scratch) {
  kernel.buffers.push_back({t, written, scratch});
  return static_cast<Ref>(kernel.buffers.size() - 1);
}

Ref Builder::arg() { return add({.code = Code::Arg, .imm = kernel.integers++}); }
Ref Builder::range(int end) { return add({.code = Code::Range, .imm = end}); }
Ref Builder::scalar(Dtype t) { return add({.code = Code::Scalar, .dtype = t, .imm = kernel.scalars++}); }

Ref Builder::constant(Dtype t, std::uint64_t bits) {
  if (size_of(t) < 8) bits &= (std::uint64_t{1} << (8 * size_of(t))) - 1;
  return add({.code = Code::Const, .dtype = t, .imm = static_cast<std::int64_t>(bits)});
}

Ref Builder::loop(LoopKind kind, Ref begin, Ref end, int unroll, int prefetch) {
  return add({.code = Code::Loop,
              .kind = kind,
              .unroll = static_cast<std::uint8_t>(unroll),
              .prefetch = static_cast<std::uint16_t>(prefetch),
              .in = {begin, end, kNone, kNone, kNone}});
}

Ref Builder::carry(Dtype t, Ref initial) { return add({.code = Code::Carry, .dtype = t, .in = {initial, kNone, kNone, kNone, kNone}}); }

void Builder::next(Ref carry, Ref value) {
  check(carry < kernel.body.size() && kernel.body[carry].code == Code::Carry, "Builder::next: not a Carry");
  kernel.body[carry].in[1] = value;
}

void Builder::end() { add({.code = Code::End}); }

// Operands that may be exchanged come in one order, so that what differs in nothing else is one kernel.
Ref Builder::compute(ops::Op op, Dtype dtype, Ref a, Ref b, Ref c) {
  if ((ops::info(op).traits & ops::kCommutative) != 0 && b < a) std::swap(a, b);
  return add({.code = Code::Compute, .op = op, .dtype = dtype, .in = {a, b, c, kNone, kNone}});
}
Ref Builder::cast(Ref a, Dtype to) { return add({.code = Code::Cast, .dtype = to, .in = {a, kNone, kNone, kNone, kNone}}); }

Ref Builder::load(int buffer, Ref index, Ref condition) {
  check(buffer >= 0 && static_cast<std::size_t>(buffer) < kernel.buffers.size(), "Builder::load: no such buffer");
  return add({.code = Code::Load,
              .dtype = kernel.buffers[static_cast<std::size_t>(buffer)].dtype,
              .in = {index, condition, kNone, kNone, kNone},
              .imm = buffer});
}

void Builder::store(int buffer, Ref index, Ref value) {
  check(buffer >= 0 && static_cast<std::size_t>(buffer) < kernel.buffers.size(), "Builder::store: no such buffer");
  add({.code = Code::Store,
       .dtype = kernel.buffers[static_cast<std::size_t>(buffer)].dtype,
       .in = {index, value, kNone, kNone, kNone},
       .imm = buffer});
}

void Builder::prefetch(int buffer, Ref index, bool far) {
  check(buffer >= 0 && static_cast<std::size_t>(buffer) < kernel.buffers.size(), "Builder::prefetch: no such buffer");
  add({.code = Code::Prefetch,
       .dtype = kernel.buffers[static_cast<std::size_t>(buffer)].dtype,
       .to = far,
       .in = {index, kNone, kNone, kNone, kNone},
       .imm = buffer});
}

void Builder::tile(int buffer, Ref index, int to, Ref place, Ref step, Ref count, Ref later) {
  check(buffer >= 0 && static_cast<std::size_t>(buffer) < kernel.buffers.size(), "Builder::tile: no such buffer");
  add({.code = Code::Tile,
       .dtype = kernel.buffers[static_cast<std::size_t>(buffer)].dtype,
       .to = static_cast<std::uint16_t>(to),
       .in = {index, place, step, count, later},
       .imm = buffer});
}

Ref Builder::combine(ops::Op op, Ref carry) {
  check(carry < kernel.body.size() && kernel.body[carry].code == Code::Carry, "Builder::combine: not a Carry");
  return add({.code = Code::Combine, .op = op, .dtype = kernel.body[carry].dtype, .in = {carry, kNone, kNone, kNone, kNone}});
}

}  // namespace sinter::kernel
