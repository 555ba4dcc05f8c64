// expand: the value column of the table on machine values, for every dtype. Layer: ops.
//
// A kernel value of any dtype is held as machine values: bool, integers, float32 and float64 as they are; float16 and bfloat16 as a
// float32 whose value is representable in the narrow type; complex64 as two float32 (real, imaginary). A float16 that is only moved is
// also kept as it is stored: the conversion makes a signaling NaN quiet.
#pragma once
#include "ops/op.h"
#include "ops/val.h"

namespace sinter::ops {

/// A kernel value: `im` is used by complex64 alone, `stored` by a float16 that was read or chosen, not computed.
struct Wide {
  Dtype dtype = Dtype::float32;
  Val re, im;
  Val stored = {};
};

/// The dtype in which a kernel value (or its parts) is held: float32 for the halves and complex64.
Dtype machine_dtype(Dtype t);

/// One elementwise operation on operands of dtype `compute` (Where: operand 0 bool). Half dtypes compute in float32 and round once.
Wide expand(Op op, Dtype compute, std::span<const Wide> operands);

/// Conversion between dtypes: integers keep their low bits, float to integer saturates with NaN giving 0, to bool is "differs from 0",
/// complex to real drops the imaginary part.
Wide cast(const Wide& x, Dtype to);

/// A literal of any dtype by the bits of its stored form.
Wide wide_constant(Machine& m, Dtype t, std::uint64_t bits);

/// Stored form: bool as uint8 (0 or 1; any other byte loads as true), halves as uint16, complex64 as two float32.
/// `load_form` turns what was read from memory (of dtype storage_dtype(t)) into the kernel value, `store_form` the reverse; complex64 has
/// its own instructions.
Dtype storage_dtype(Dtype t);
Wide load_form(const Val& raw, Dtype t);
Val store_form(const Wide& value);

/// Instructions that an operation takes on a dtype, counted by expanding it: the only measure of cost that schedules use.
int cost(Op op, Dtype compute);

/// Whether its expansion has a loop: turns that differ from lane to lane.
bool has_loop(Op op, Dtype compute);

}  // namespace sinter::ops
