// Literals and the operators of Val that need more than one instruction. Layer: ops.
#include "ops/val.h"

#include <bit>

namespace sinter::ops {

Val literal(const Val& x, Dtype dtype, double v) {
  std::uint64_t word = 0;
  if (dtype == Dtype::float32) {
    word = std::bit_cast<std::uint32_t>(static_cast<float>(v));
  } else if (dtype == Dtype::float64) {
    word = std::bit_cast<std::uint64_t>(v);
  } else if (dtype == Dtype::bool_) {
    word = v != 0;
  } else {
    // Integers up to 2^63 in magnitude, by their low bits.
    check(v >= -0x1p63 && v < 0x1p64, "an integer literal is out of range");
    word = v < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(v)) : static_cast<std::uint64_t>(v);
  }
  return bits(x, dtype, word);
}

Val literal(const Val& x, double v) { return literal(x, x.dtype, v); }

Val bits(const Val& x, Dtype dtype, std::uint64_t v) {
  const int width = 8 * size_of(dtype);
  return x.machine->constant(dtype, width == 64 ? v : v & ((std::uint64_t{1} << width) - 1));
}

Val operator-(const Val& a) { return is_floating(a.dtype) ? emit(Prim::neg, a.dtype, {a}) : literal(a, 0) - a; }

Val select(const Val& condition, const Val& a, const Val& b) { return emit(Prim::select, a.dtype, {condition, a, b}); }

Val lookup(const Val& index, const Table& table) {
  std::array<Val, 17> operands;
  operands[0] = index;
  for (std::size_t i = 0; i < table.size(); ++i) operands[i + 1] = literal(index, Dtype::float32, table[i]);
  return index.machine->emit(Prim::lookup, Dtype::float32, operands);
}

}  // namespace sinter::ops
