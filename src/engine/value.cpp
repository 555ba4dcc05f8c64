#include "engine/value.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/symbols.h"
#include "engine/tape.h"
#include "engine/trace.h"
#include "graph/rebind.h"

namespace sinter::detail {

void retain(Value* v) noexcept { v->references.fetch_add(1, std::memory_order_relaxed); }

// Values that a value kept alive are linked, not released inside its destructor: a chain of any length takes no stack, and no memory.
void release(Value* v) noexcept {
  if (v->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  static thread_local Value* dying = nullptr;
  static thread_local bool deletes = false;
  v->dies_next = std::exchange(dying, v);
  if (deletes) return;
  deletes = true;
  while (Value* next = dying) {
    dying = next->dies_next;
    delete next;
  }
  deletes = false;
}

}  // namespace sinter::detail

namespace sinter::engine {

using detail::State;
using ops::Op;

namespace {
// Regular chains evaluate themselves in pieces of this many operations, so that what is pending stays bounded.
constexpr std::uint32_t kMaxDepth = 1000;
}  // namespace

Value& value_of(const Array& a, const char* what) {
  if (Value* v = a.get()) return *v;
  throw Error(str(what, ": the array is unset; got an array that was default constructed or moved from; assign a value first"));
}

Value& operand_of(const Array& a, const char* what) {
  Value& v = value_of(a, what);
  check_operand(a, what);
  return v;
}

Array make(Op op, std::vector<Array> inputs, ops::Attrs attrs, Dtype dtype, Shape shape, std::vector<graph::Body> bodies) {
  auto* v = new Value;
  Array result(v);
  v->op = op;
  v->dtype = dtype;
  v->shape = std::move(shape);
  v->attrs = std::move(attrs);
  v->bodies = std::move(bodies);
  v->trace = current_trace();
  if (const OpenTape* tape = innermost_tape()) v->scope = tape->id;
  const char* name = ops::info(op).name.data();
  v->sized = base::changes(v->shape) || base::changes(v->attrs) ||
             std::any_of(v->bodies.begin(), v->bodies.end(), [](const graph::Body& b) { return graph::changes(*b); });
  for (const Array& a : inputs) {
    check_operand(a, name);
    const Value& in = *a.get();
    v->symbolic = v->symbolic || in.symbolic;
    v->sized = v->sized || in.sized;
    v->tape = std::max(v->tape, in.tape);
    if (in.state.load(std::memory_order_relaxed) != State::ready) v->depth = std::max(v->depth, in.depth + 1);
  }
  if (op == Op::Get) {
    std::vector<bool>& wanted = inputs[0].get()->wanted;
    std::size_t i = static_cast<std::size_t>(v->attrs[0]);
    if (wanted.size() <= i) wanted.resize(i + 1);
    wanted[i] = true;
  }
  v->inputs = std::move(inputs);
  if (v->depth > kMaxDepth && !v->symbolic && !v->sized && !ops::has_bodies(op)) evaluate({&result, 1}, name);
  return result;
}

Array make_ready(runtime::BufferRef buffer, Layout layout, Dtype dtype, Shape shape) {
  auto* v = new Value;
  Array result(v);
  v->op = Op::Input;
  v->dtype = dtype;
  v->shape = std::move(shape);
  v->trace = current_trace();
  v->buffer = std::move(buffer);
  v->layout = std::move(layout);
  v->state.store(State::ready, std::memory_order_release);
  return result;
}

Array constant(Dtype dtype, Dim bits, Shape shape) { return make(Op::Constant, {}, {bits}, dtype, std::move(shape)); }

Array cast(const Array& x, Dtype dtype) {
  const Value& v = value_of(x, "astype");
  if (v.dtype == dtype) return x;
  return make(Op::Cast, {x}, {static_cast<std::int64_t>(dtype)}, dtype, v.shape);
}

Array broadcast(const Array& x, const Shape& shape) {
  const Value& v = value_of(x, "broadcast_to");
  if (base::same(v.shape, shape)) return x;
  return make(Op::Broadcast, {x}, ops::Attrs(shape.begin(), shape.end()), v.dtype, shape);
}

Array contiguous(const Array& x) {
  evaluate({&x, 1}, "contiguous");
  const Value& v = *x.get();
  if (graph::is_row_major(v.shape, v.layout.strides)) return x;
  Array copy = make(Op::Copy, {x}, {}, v.dtype, v.shape);
  evaluate({&copy, 1}, "contiguous");
  return copy;
}

}  // namespace sinter::engine
