// Value: what an Array points to. Lazily evaluated; the only mutable thing in the library. Layer: engine.
//
// A Value is `lazy` (op, inputs, attributes), then `ready` (memory and layout; inputs dropped). A placeholder of a trace stays lazy.
// The thread that evaluates a lazy value first claims it; others wait for it to become ready.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"
#include "ops/op.h"
#include "runtime/buffer.h"
#include "sinter/array.h"

namespace sinter::engine {

using graph::Layout;

}  // namespace sinter::engine

namespace sinter::detail {

enum class State : std::uint8_t { lazy, claimed, ready };

struct Value {
  std::atomic<std::int64_t> references{0};
  std::atomic<State> state{State::lazy};
  ops::Op op{};
  Dtype dtype{};
  bool symbolic = false;    // depends on a placeholder: has no data
  bool sized = false;       // its sizes, or those of what it is made of, may change between calls of the function that is traced
  std::uint32_t depth = 0;  // longest chain of lazy values below this one
  std::uint64_t trace = 0;  // id of the trace in which it was made; 0: none
  std::uint64_t tape = 0;   // id of the newest transform (tape.h) on whose variables it depends; 0: none
  std::uint64_t scope = 0;  // id of the innermost transform that was at work when it was made; 0: none
  Shape shape;
  ops::Attrs attrs;
  std::vector<graph::Body> bodies;
  std::vector<Array> inputs;  // empty once ready
  std::vector<bool> wanted;   // of a value that has several results: those that a `get` was made for
  // ready:
  runtime::BufferRef buffer;
  engine::Layout layout;
  std::vector<Array> results;  // the wanted ones of several
  Array rows;                  // the contiguous copy that data<T>() points into, if it needed one; see api/array.cpp
  Value* dies_next = nullptr;  // see release()
};

}  // namespace sinter::detail

namespace sinter::engine {

using detail::Value;

inline bool is_ready(const Value& v) { return v.state.load(std::memory_order_acquire) == detail::State::ready; }
/// A constant of one element that nobody has stored: no work, but an argument of kernels.
inline bool is_literal(const Value& v) { return v.op == ops::Op::Constant && v.attrs.size() == 1 && !is_ready(v); }
/// Ends a claim, and wakes who waits for it.
inline void finish(Value& v, detail::State s) {
  v.state.store(s, std::memory_order_release);
  v.state.notify_all();
}

/// The value of a set array. Throws Error "<what>: the array is unset; ..." otherwise.
Value& value_of(const Array& a, const char* what);

/// The same for an operand of the public function `what`: checked against the current trace (trace.h) under that name, before casts and
/// views of it are made.
Value& operand_of(const Array& a, const char* what);

/// A new lazy array. Operands obey the rules of graph.h (promotion and broadcasting are done by the caller, by cast and broadcast
/// below). Checks operands against the current trace (trace.h), so that errors are thrown where the user called.
Array make(ops::Op op, std::vector<Array> inputs, ops::Attrs attrs, Dtype dtype, Shape shape, std::vector<graph::Body> bodies = {});
/// A ready array over memory.
Array make_ready(runtime::BufferRef buffer, Layout layout, Dtype dtype, Shape shape);
/// A constant filled with one element, given by the bits of its stored form. 0-d unless a shape is given.
Array constant(Dtype dtype, Dim bits, Shape shape = {});
/// x, or its cast / broadcast unless dtype or shape are certainly the same.
Array cast(const Array& x, Dtype dtype);
Array broadcast(const Array& x, const Shape& shape);

/// Evaluates lazy values; a placeholder among what they need throws TraceError that names `what`.
void evaluate(std::span<const Array> arrays, const char* what = "eval");
/// The same for values that are wanted once: fused as those of a compiled function are, so that few kernels have to be made.
void evaluate_together(std::span<const Array> arrays, const char* what);
/// evaluate(), but a value made of a few literals without a plan.
void evaluate_one(const Array& a, const char* what);
/// Forgets the plans of regular evaluation, which hold kernels; those that run go on.
void release_plans();
/// An evaluated array with row-major layout and offset 0 or more: x itself where it is one, else a copy.
Array contiguous(const Array& x);

}  // namespace sinter::engine
