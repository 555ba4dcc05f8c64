// Kernel: structured loops over typed scalar instructions; all that a backend sees. This header is the IR's specification. Layer: kernel.
//
// A kernel is a list of instructions. An instruction's result is named by its position (Ref), and may be used by later instructions
// of the same loop or of loops inside it. Loops open with Loop and close with End. There is no other control flow.
//
// Arguments. Everything that is not structure is an argument, so that one kernel serves all sizes: `Arg` reads 64-bit integers
// (extents, strides, offsets), `Scalar` reads scalar operands by bits, Load and Store go through `Buffer`s. A launch passes one block
// of 64-bit words: buffers (pointers), then integers, then scalars. Beside it, a word `streams`: where bit b is set, buffer b, a large
// one, is written and not soon read, so stores to it may pass the caches; where kNear is, loops do not prefetch beyond what they access. It
// changes no result. A scratch buffer is memory of the running thread's own, in which a run of the kernel finds nothing and leaves nothing.
//
// Loops.
//   Parallel  the outermost loop, at most one. A launch runs any sub-range of its iterations, in order, on any thread (a run). Results do
//             not depend on where ranges begin and end; `Range` says it, for what one iteration leaves to the next of its run.
//   Serial    iterations in order. May stand inside a Vector loop: each lane then carries its own values.
//   Vector    iterations in lanes. Not inside another Vector loop.
// A loop's index (int64) is the Loop's own Ref. Iterations run from in[0] to in[1] (exclusive), step 1.
//
// Carried values. Carry instructions stand right after their Loop: in[0] is the initial value, in[1] the value for the next iteration
// (defined inside the loop). Inside the loop the Ref is the current value, after the loop the final one. In a Vector loop the initial
// value is the identity of the fold, and the carried value has `lanes * unroll` copies (partials): iteration i updates copy
// (i - begin) mod (lanes * unroll). After the loop only Combine may read it: it folds the partials with `op` in a fixed tree, by
// halves: unrolled parts first (p and p + unroll/2), then lanes (l and l + lanes/2), until one is left. Lanes that ran no iteration
// hold the identity. This, and nothing else, fixes the order of a reduction.
//
// Values are per lane inside a Vector loop if they depend on its index or on a carried value; otherwise uniform.
// Arithmetic on int64 indices uses the ordinary operations (add, multiply, floor_divide, ...); it does not overflow by construction. What
// is compared with an Arg or divided by one is such an index, from 0 on, and that difference does not overflow; a divisor is at least 1.
// Load and Store take the element index (not bytes). Out-of-range addresses are undefined, but for a Load where its condition is false:
// lowering clamps computed indices.
// A Tile stands in a Vector loop. It reads in[3] elements, at least kTile, from each lane's index on, all in range, and stores element n at
// in[1] + n * in[2] of a scratch buffer: so lanes that go through memory in large steps read whole lines of it. The index goes on by one
// step from lane to lane, in[1] by 1. Where in[4] is there, an index of each lane too, which may be out of range, every second lane asks
// for as many elements from there on: what a later Tile reads. That changes nothing.
// A Store must not write what another lane or iteration of the same kernel reads, unless at the same index in the same iteration, or, of
// one buffer, in a later iteration of a Serial loop on the same lane (each instruction runs on all lanes before the next one), or in a
// later Vector loop of the same iteration of the Parallel loop; or, of one buffer, what earlier iterations of the same Vector loop have
// read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace sinter::kernel {

using Ref = std::uint32_t;
inline constexpr Ref kNone = ~Ref{0};
inline constexpr int kTile = 16;

enum class Code : std::uint8_t {
  Arg,       // integer argument number imm: int64
  Range,     // of the run: the first iteration of the Parallel loop (imm 0), or the one past its last (1): int64
  Scalar,    // scalar argument number imm, of `dtype`
  Const,     // literal of `dtype`: the bits of its stored form in imm
  Loop,      // in[0] begin, in[1] end; kind; unroll (Vector only; a power of two, 1 to 8)
  Carry,     // in[0] initial, in[1] next; dtype
  End,       // closes the innermost open loop
  Compute,   // op on in[0..operands), which have `dtype` (Where: in[0] is bool); the result has result_dtype(op, dtype)
  Cast,      // in[0] to `dtype`
  Load,      // buffer imm at index in[0], where in[1] (bool; kNone: everywhere), else zero bits; dtype is the buffer's
  Store,     // buffer imm at index in[0], value in[1] of the buffer's dtype
  Tile,      // in[3] elements of buffer imm, from index in[0] on, to buffer `to`, in[1] on in steps of in[2]; asks at in[4], or kNone
  Prefetch,  // changes nothing: buffer imm is soon used at index in[0], which may be out of range; for writing if the buffer is written
  Combine,   // in[0] is a Carry of a closed Vector loop; op is a commutative binary operation
};
enum class LoopKind : std::uint8_t { Parallel, Serial, Vector };

struct Inst {
  Code code;
  LoopKind kind = LoopKind::Serial;  // Loop
  ops::Op op{};                      // Compute, Combine
  Dtype dtype = Dtype::int64;        // Compute: the compute dtype (that of the operands); others: of the result
  std::uint8_t unroll = 1;           // Loop
  std::uint16_t prefetch = 0;        // Loop, Vector: bytes ahead of contiguous accesses to prefetch; 0: none
  std::uint16_t to = 0;              // Tile: buffer; Prefetch: 1 if not so soon that it should be in the first-level cache
  Ref in[5] = {kNone, kNone, kNone, kNone, kNone};
  std::int64_t imm = 0;  // Arg, Scalar, Range: number; Const: bits; Load, Store, Prefetch, Tile: buffer
  bool operator==(const Inst&) const = default;
};

struct Buffer {
  Dtype dtype;
  bool written;          // by a Store or Tile; a buffer may be read and written
  bool scratch = false;  // the running thread's own
  bool large = false;    // a launch may say that it streams; the kernel writes it and does not read it
  bool operator==(const Buffer&) const = default;
};

/// Of a launch's streams: buffers below kMostStreams have a bit each. kNear: arrays are small.
inline constexpr std::size_t kMostStreams = 63;
inline constexpr std::uint64_t kNear = std::uint64_t{1} << kMostStreams;

struct Kernel {
  std::string name;  // of its operations, for people: "exp_add"; not part of its identity
  std::vector<Buffer> buffers;
  int integers = 0;  // Arg numbers are below this
  int scalars = 0;   // Scalar numbers are below this
  std::vector<Inst> body;
};

/// The dtype of an instruction's result (bool for comparisons). Meaningless for End, Store, Tile, Prefetch.
Dtype result_dtype(const Kernel& k, Ref r);

/// Whether an instruction reads this buffer.
bool reads(const Kernel& k, std::size_t buffer);

std::string print(const Kernel& k);
/// Appends the text without the name: all that code depends on, the key of caches.
void append_key(const Kernel& k, std::string& out);
/// The inverse of print. Throws Error with line and column.
Kernel parse(std::string_view text);
/// Throws InternalError that names the instruction and the rule it breaks.
void verify(const Kernel& k);

/// Builds a kernel in order. `add` returns the Ref; loops are closed by `end`, which sets the next values of the carries.
class Builder {
 public:
  Kernel kernel;
  Ref add(Inst i);
  Ref buffer(Dtype t, bool written, bool scratch = false);  // returns its number
  Ref arg();                                                // a new integer argument
  Ref range(int end);                                       // 0: the first, 1: past the last
  Ref scalar(Dtype t);                                      // a new scalar argument
  Ref constant(Dtype t, std::uint64_t bits);
  Ref index(std::int64_t v) { return constant(Dtype::int64, static_cast<std::uint64_t>(v)); }
  Ref loop(LoopKind kind, Ref begin, Ref end, int unroll = 1, int prefetch = 0);
  Ref carry(Dtype t, Ref initial);
  void next(Ref carry, Ref value);  // before end()
  void end();
  Ref compute(ops::Op op, Dtype dtype, Ref a, Ref b = kNone, Ref c = kNone);
  Ref cast(Ref a, Dtype to);
  Ref load(int buffer, Ref index, Ref condition = kNone);
  void store(int buffer, Ref index, Ref value);
  void prefetch(int buffer, Ref index, bool far = false);
  void tile(int buffer, Ref index, int to, Ref place, Ref step, Ref count, Ref later = kNone);
  Ref combine(ops::Op op, Ref carry);
};

/// The arguments of a launch, as one block of words: buffers, integers, scalars.
using Block = std::vector<std::uint64_t>;

/// Runs iterations [begin, end) of the Parallel loop (all of a kernel without one: 0, 1) one instruction after the other, on `lanes`
/// lanes, through ops/lanes.h. The oracle for every backend, and what runs where there is no code generator.
void interpret(const Kernel& k, int lanes, std::int64_t begin, std::int64_t end, const std::uint64_t* block);

}  // namespace sinter::kernel
