// The value column as code: one function an operation, and what the dtypes that no machine has need around it. Layer: ops.
#include "ops/expand.h"

#include <array>
#include <atomic>
#include <vector>

#include "base/once.h"
#include "ops/math.h"

namespace sinter::ops {
namespace {

// The value column. Unused operands are empty.
using Function = Val (*)(const Val& x, const Val& y, const Val& z);
constexpr Function kValues[] = {
#define OP1(Name, function, dtype, traits, domain, value, dx) [](const Val& x, const Val&, const Val&) -> Val { return value; },
#define OP2(Name, function, dtype, traits, domain, value, dx, dy) [](const Val& x, const Val& y, const Val&) -> Val { return value; },
#define OP3(Name, function, dtype, traits, domain, value, dx, dy, dz) [](const Val& x, const Val& y, const Val& z) -> Val { return value; },
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3
};

Wide expand_complex(Op op, Dtype result, std::span<const Wide> operands) {
  const Wide a = operands[0];
  const Wide b = operands.size() > 1 ? operands[1] : a;
  const Wide c = operands.size() > 2 ? operands[2] : a;
  switch (op) {
#define COMPLEX(Name, real, imag) \
  case Op::Name: return {result, real, imag};
#include "ops/complex.def"
#undef COMPLEX
    default: throw InternalError(str("internal: ", info(op).name, " on complex64"));
  }
}

Val any_nan(const Val& x) { return x != x; }

// float32 -> the nearest bfloat16, as a float32, in integer arithmetic: hardware conversions flush denormals.
Val round_to_bfloat16(const Val& x) {
  const Val word = bitcast(x, Dtype::uint32);
  const Val rounded = word + 0x7fff + ((word >> 16) & 1);
  const Val quiet = word | 0x400000;  // a NaN whose payload lies in the lower half must not become infinity
  return bitcast(select(any_nan(x), quiet, rounded) & 0xffff0000, Dtype::float32);
}

Val round_to_half(const Val& x, Dtype t) {
  if (t == Dtype::bfloat16) return round_to_bfloat16(x);
  return emit(Prim::f16_value, Dtype::float32, {emit(Prim::f16_bits, Dtype::uint16, {x})});
}

// float64 -> float32, to the neighbour whose last bit is 1 unless exact: a second rounding to a half dtype then gives what one would.
Val round_to_odd(const Val& x) {
  const Val nearest = convert(x, Dtype::float32);
  const Val back = convert(nearest, Dtype::float64);
  const Val beyond = convert(math::magnitude(x) < math::magnitude(back), Dtype::uint32);
  const Val inexact = convert(back != x, Dtype::uint32);
  return bitcast((bitcast(nearest, Dtype::uint32) - beyond) | inexact, Dtype::float32);
}

// 64-bit integer -> float64, to odd as far as a half dtype can see: beyond 2^40 the low 16 bits only matter as "not all 0".
Val round_wide_integer(const Val& x) {
  const Val sticky = convert((x & 0xffff) != 0, x.dtype) << 16;
  const Val cut = ((x >> 16) << 16) | sticky;
  const Val top = x >> 40;
  const Val small = is_signed(x.dtype) ? (top == 0) | (top == -1) : top == 0;
  return convert(select(small, x, cut), Dtype::float64);
}

// Any machine value -> float32 with the value that the half dtype `to` gives it, rounded once.
Val to_half(Val x, Dtype to) {
  if (is_integer(x.dtype) && size_of(x.dtype) >= 4) x = size_of(x.dtype) == 8 ? round_wide_integer(x) : convert(x, Dtype::float64);
  x = x.dtype == Dtype::float64 ? round_to_odd(x) : convert(x, Dtype::float32);
  return round_to_half(x, to);
}

// Float -> integer: saturates, NaN gives 0. The primitive takes values in range only.
Val to_integer(const Val& x, Dtype to) {
  const int digits = 8 * size_of(to) - (is_signed(to) ? 1 : 0);
  const double limit = digits == 64 ? 0x1p64 : static_cast<double>(std::uint64_t{1} << digits);  // the first value too large
  const double low = is_signed(to) ? -limit : 0;
  const Val whole = emit(Prim::trunc, x.dtype, {x});
  const Val fits = (whole < limit) & (literal(x, low) <= whole);
  const Val value = convert(select(fits, whole, 0), to);
  const std::uint64_t largest = digits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << digits) - 1;
  const Val bound = select(x < 0, bits(x, to, is_signed(to) ? largest + 1 : 0), bits(x, to, largest));
  return select(fits | any_nan(x), value, bound);
}

// Counts what is emitted. A loop counts once: most are slow paths, or run one turn.
class Counter : public Machine {
 public:
  int count = 0;
  bool loops = false;
  Val constant(Dtype dtype, std::uint64_t) override { return {this, 0, dtype}; }
  Val emit(Prim, Dtype result, std::span<const Val>) override {
    ++count;
    return {this, 0, result};
  }
  std::vector<Val> loop(std::vector<Val> state, FunctionRef<Val(std::span<const Val>)> condition,
                        FunctionRef<std::vector<Val>(std::span<const Val>)> body) override {
    loops = true;
    condition(state);
    return body(state);
  }
};

}  // namespace

Dtype machine_dtype(Dtype t) { return is_half(t) || is_complex(t) ? Dtype::float32 : t; }

Wide expand(Op op, Dtype compute, std::span<const Wide> operands) {
  const OpInfo& facts = info(op);
  check(is_elementwise(op) && operands.size() == static_cast<std::size_t>(facts.operands), "expand: wrong operands");
  const Dtype result = result_dtype(op, compute);
  if (is_complex(compute)) return expand_complex(op, result, operands);
  const Val none;
  const Val value = kValues[static_cast<std::size_t>(op)](operands[0].re, operands.size() > 1 ? operands[1].re : none,
                                                          operands.size() > 2 ? operands[2].re : none);
  Wide out{result, is_half(result) && (facts.traits & kExact) == 0 ? round_to_half(value, result) : value, {}};
  if (op == Op::Where && (operands[1].stored.machine || operands[2].stored.machine))
    out.stored = select(operands[0].re, store_form(operands[1]), store_form(operands[2]));
  return out;
}

Wide cast(const Wide& x, Dtype to) {
  if (x.dtype == to) return x;
  if (to == Dtype::bool_) {
    const Val nonzero = x.re != 0;
    return {to, is_complex(x.dtype) ? nonzero | (x.im != 0) : nonzero, {}};
  }
  if (is_complex(to)) return {to, convert(x.re, Dtype::float32), literal(x.re, Dtype::float32, 0)};
  // complex64 -> real drops the imaginary part; a half dtype's float32 is exact.
  if (is_half(to)) return {to, to_half(x.re, to), {}};
  if (is_integer(to) && is_floating(x.re.dtype)) return {to, to_integer(x.re, to), {}};
  return {to, convert(x.re, to), {}};
}

Wide wide_constant(Machine& m, Dtype t, std::uint64_t bits) {
  if (is_complex(t)) return {t, m.constant(Dtype::float32, bits & 0xffffffff), m.constant(Dtype::float32, bits >> 32)};
  if (!is_half(t)) return {t, m.constant(t, t == Dtype::bool_ ? (bits & 0xff) != 0 : bits), {}};
  return load_form(m.constant(Dtype::uint16, bits & 0xffff), t);
}

Dtype storage_dtype(Dtype t) { return t == Dtype::bool_ ? Dtype::uint8 : is_half(t) ? Dtype::uint16 : is_complex(t) ? Dtype::float32 : t; }

Wide load_form(const Val& raw, Dtype t) {
  if (t == Dtype::bool_) return {t, raw != 0, {}};
  if (t == Dtype::float16) return {t, emit(Prim::f16_value, Dtype::float32, {raw}), {}, raw};
  if (t == Dtype::bfloat16) return {t, bitcast(convert(raw, Dtype::uint32) << 16, Dtype::float32), {}};
  return {t, raw, {}};
}

Val store_form(const Wide& value) {
  if (value.dtype == Dtype::bool_) return convert(value.re, Dtype::uint8);
  if (value.dtype == Dtype::float16) return value.stored.machine ? value.stored : emit(Prim::f16_bits, Dtype::uint16, {value.re});
  if (value.dtype == Dtype::bfloat16) return convert(bitcast(value.re, Dtype::uint32) >> 16, Dtype::uint16);
  return value.re;
}

namespace {

void count(Op op, Dtype compute, Counter& counter) {
  const Val part{&counter, 0, machine_dtype(compute)};
  std::array<Wide, 3> operands;
  operands.fill({compute, part, part});
  if (info(op).rule == Rule::Where) operands[0] = {Dtype::bool_, {&counter, 0, Dtype::bool_}, {}};
  expand(op, compute, {operands.data(), static_cast<std::size_t>(info(op).operands)});
}

}  // namespace

// Asked for each node of a graph, several times: counted once.
int cost(Op op, Dtype compute) {
  constexpr int kUnknown = 0;
  using Counts = std::vector<std::atomic<int>>;  // plus 1
  static constinit std::atomic<Counts*> place{nullptr};
  Counts& counts = base::once(place, [] { return Counts(all_ops().size() * static_cast<std::size_t>(kDtypeCount)); });
  std::atomic<int>& known =
      counts[static_cast<std::size_t>(op) * static_cast<std::size_t>(kDtypeCount) + static_cast<std::size_t>(compute)];
  int cost = known.load(std::memory_order_relaxed);
  if (cost == kUnknown) {
    Counter counter;
    count(op, compute, counter);
    known.store(cost = counter.count + 1, std::memory_order_relaxed);
  }
  return cost - 1;
}

bool has_loop(Op op, Dtype compute) {
  Counter counter;
  count(op, compute, counter);
  return counter.loops;
}

}  // namespace sinter::ops
