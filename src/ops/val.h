// Val and Machine: the language in which the value column of elementwise.def and math.h are written. Layer: ops.
//
// A Machine carries out primitive instructions (prims.def) or emits code for them: the evaluator of ops/lanes.h computes at once, on
// a few lanes; the LLVM emitter makes vector instructions. A Val names a result on its machine. An expression over Vals is therefore
// *one* definition for the interpreter, the CPU and the GPU, and equal bits follow from equal primitives.
//
// Machine dtypes are bool, the eight integers, float32 and float64. float16 and bfloat16 exist in memory only: expand.h computes
// them in float32 and rounds after each operation; complex64 is a pair of float32 Vals.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "sinter/dtype.h"

namespace sinter::ops {

enum class Prim : std::uint8_t {
#define PRIM(name, operands) name,
#include "ops/prims.def"
#undef PRIM
};

class Machine;

/// A value on a machine. `id` is the machine's own; a Val is copied freely.
struct Val {
  Machine* machine = nullptr;
  std::uint32_t id = 0;
  Dtype dtype = Dtype::float32;
};

class Machine {
 public:
  virtual ~Machine() = default;
  /// A literal of a machine dtype, given by its bits (low bytes of `bits`).
  virtual Val constant(Dtype dtype, std::uint64_t bits) = 0;
  virtual Val emit(Prim prim, Dtype result, std::span<const Val> operands) = 0;
  /// Repeats `state = body(state)` in each lane for which `condition(state)` holds, until it holds in none. A lane whose condition
  /// failed keeps its state. `body` sees all lanes and must not trap on finished ones.
  virtual std::vector<Val> loop(std::vector<Val> state, FunctionRef<Val(std::span<const Val>)> condition,
                                FunctionRef<std::vector<Val>(std::span<const Val>)> body) = 0;
};

/// A literal on x's machine: of x's dtype, or of the given one. Integers wrap; floats round to nearest.
Val literal(const Val& x, double v);
Val literal(const Val& x, Dtype dtype, double v);
/// A literal by its bits, for coefficients and masks.
Val bits(const Val& x, Dtype dtype, std::uint64_t v);

inline Val emit(Prim p, Dtype result, std::initializer_list<Val> in) {
  return in.begin()->machine->emit(p, result, {in.begin(), in.size()});
}

// Operators. A C++ number beside a Val is a literal of the Val's dtype.
template <class T>
concept Literal = detail::Arithmetic<T>;
#define SINTER_VAL_BINARY(op, prim, result)                                                       \
  inline Val operator op(const Val& a, const Val& b) { return emit(Prim::prim, result, {a, b}); } \
  template <Literal T>                                                                            \
  Val operator op(const Val& a, T b) {                                                            \
    return a op literal(a, static_cast<double>(b));                                               \
  }                                                                                               \
  template <Literal T>                                                                            \
  Val operator op(T a, const Val& b) {                                                            \
    return literal(b, static_cast<double>(a)) op b;                                               \
  }
SINTER_VAL_BINARY(+, add, a.dtype)
SINTER_VAL_BINARY(-, sub, a.dtype)
SINTER_VAL_BINARY(*, mul, a.dtype)
SINTER_VAL_BINARY(/, div, a.dtype)
SINTER_VAL_BINARY(%, rem, a.dtype)
SINTER_VAL_BINARY(==, eq, Dtype::bool_)
SINTER_VAL_BINARY(<, lt, Dtype::bool_)
SINTER_VAL_BINARY(<=, le, Dtype::bool_)
SINTER_VAL_BINARY(&, bit_and, a.dtype)
SINTER_VAL_BINARY(|, bit_or, a.dtype)
SINTER_VAL_BINARY(^, bit_xor, a.dtype)
SINTER_VAL_BINARY(<<, shl, a.dtype)
SINTER_VAL_BINARY(>>, shr, a.dtype)
#undef SINTER_VAL_BINARY
inline Val operator~(const Val& a) { return emit(Prim::bit_not, a.dtype, {a}); }
/// Of a bool Val.
inline Val operator!(const Val& a) { return emit(Prim::bit_not, a.dtype, {a}); }
inline Val operator>(const Val& a, const Val& b) { return b < a; }
inline Val operator>=(const Val& a, const Val& b) { return b <= a; }
inline Val operator!=(const Val& a, const Val& b) { return !(a == b); }
template <Literal T>
Val operator>(const Val& a, T b) {
  return b < a;
}
template <Literal T>
Val operator>=(const Val& a, T b) {
  return b <= a;
}
template <Literal T>
Val operator!=(const Val& a, T b) {
  return !(a == b);
}
/// Floats: flips the sign. Integers: 0 - a, wrapping.
Val operator-(const Val& a);

Val select(const Val& condition, const Val& a, const Val& b);
template <Literal T>
Val select(const Val& c, const Val& a, T b) {
  return select(c, a, literal(a, static_cast<double>(b)));
}
template <Literal T>
Val select(const Val& c, T a, const Val& b) {
  return select(c, literal(b, static_cast<double>(a)), b);
}
/// What a table holds at index mod 16, in every lane at once; the index is a uint32.
using Table = std::array<float, 16>;
Val lookup(const Val& index, const Table& table);
inline Val bitcast(const Val& a, Dtype t) { return a.dtype == t ? a : emit(Prim::bitcast, t, {a}); }
inline Val convert(const Val& a, Dtype t) { return a.dtype == t ? a : emit(Prim::convert, t, {a}); }

}  // namespace sinter::ops
