// What the loop structures of kernels share: sizes, index arithmetic, how reductions fold. Layer: kernel.
#pragma once
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/lower/body.h"
#include "ops/expand.h"

namespace sinter::kernel {

// Sizes that the schedule is made of. Those marked (bits) fix the order of reductions, so that changing them changes results.
inline constexpr std::int64_t kPointwiseBlock = 16384;  // elements of a task: 64 KiB of float32, a multiple of all lanes * unroll
inline constexpr int kInnerUnroll = 4;                  // (bits) partials of an inner reduction: lanes * this
inline constexpr std::int64_t kInnerBlock = 32768;      // (bits) elements of a reduced inner axis that one task folds
inline constexpr std::int64_t kOuterBlock = 1024;       // (bits) rows of a reduced outer axis that one task folds
inline constexpr std::int64_t kColumns = 1024;          // columns of a task of an outer reduction
// An outer reduction folds bands of rows. What counts is how many reads wait for memory at once, so a light element's rows are written out:
// the processor looks some 450 instructions ahead, and its prefetching follows each row's loads by their place in the code. (Sum of 4096
// columns of 64 MB, one thread: a loop over 16 rows 0.65 of a summing read, 8 rows written out 0.97; 16 do not have enough registers.)
inline constexpr double kLightBand = 16;            // instructions an element
inline constexpr std::int64_t kUncached = 1 << 20;  // elements of memory; within fewer a loop is as fast, and half the code
inline constexpr int kLightRows = 8;
inline constexpr int kLightUnroll = 2;
inline constexpr std::int64_t kBand = 16;                      // rows of others
inline constexpr int kBandUnroll = 4;                          // and vectors of columns whose folds are in registers; 2 are 25 % slower
inline constexpr std::int64_t kChunk = 512, kLeastChunk = 64;  // columns of a task that passes over them
// Of a task of panels: what it reads through them, 32 KiB of float32, is asked for while the task before fills its panel and computes, so
// that a second-level cache has it by then. Only while it computes: 1.15 times as long on one thread; only while it fills: 1.1.
inline constexpr std::int64_t kPanelColumns = 128;
inline constexpr std::int64_t kPanelBytes = 36 << 10;  // strips of 64 rows of float32
inline constexpr int kPanelUnroll = 8;                 // of light bodies: a whole row; 4 take 1.07 times as long
// Of panels of whole rows: what stays in a second-level cache of 1 MiB beside other arrays; and what one tile of rows may take.
inline constexpr std::int64_t kRowPanelBytes = 576 << 10;
inline constexpr std::int64_t kMostPanelBytes = 1 << 20;
inline constexpr std::int64_t kFewTasks = 16;     // below so many strips, lower ones
inline constexpr std::int64_t kRowsAhead = 4;     // beside a panel: rows ahead to prefetch
inline constexpr int kPrefetch = 2048;            // bytes ahead
inline constexpr int kKept = 12;                  // instructions from which an element is kept for a later pass over its row
inline constexpr std::int64_t kAlignedRow = 512;  // elements from which a row's first line is stored by itself
inline constexpr std::int64_t kManyRows = 64;     // from which what passes keep lies in scratch memory, and rows overlap
inline constexpr int kLineBytes = 64;
// Elements of a row that leave place for the next row, and for an output's, in a second-level cache of 1 MiB: there asking for the next row
// during the pass that computes most took softmax from 0.72 to 0.85 of the copy on one thread (from 0.80 to 0.86 on rows of 50257, with
// two).
inline constexpr std::int64_t kPrefetchedRow = 65536;

/// The operations' names, for people.
std::string name_of(const graph::Graph& g, const graph::Group& group);

inline Dim ceil_div(const Dim& a, const Dim& b) { return (a + b - 1) / b; }
inline Ref times(Builder& b, Ref x, Ref y) { return b.compute(ops::Op::Multiply, Dtype::int64, x, y); }
inline Ref plus(Builder& b, Ref x, Ref y) { return b.compute(ops::Op::Add, Dtype::int64, x, y); }
/// Splits a task number into (row, block) of `blocks` blocks a row.
std::pair<Ref, Ref> split(Builder& b, Ref task, Ref blocks);
/// [begin, end) of a block of an axis.
std::pair<Ref, Ref> block_range(Builder& b, Ref block, Ref size, Ref extent);
/// A loop over the whole bands of `height` rows of an axis, from row `from` to row `end`, with its rows written out: `band` is given the
/// band's first row, and the nest's position in each. Returns the row behind them.
using EachRow = std::vector<std::vector<Ref>>;
Ref each_band(Builder& b, Nest& nest, const Axis& axis, Ref from, Ref end, int height, FunctionRef<void(Ref top, const EachRow&)> band);

Lowered finish(Builder& b, Nest& nest, Body& body, const Dim& tasks, double work);

/// How a Reduce operation folds.
struct Fold {
  ops::Op op;
  std::uint64_t (*identity)(Dtype);  // bits of the stored form
};
Fold fold_of(ops::Op op);
/// Half dtypes accumulate in float32 and round once, at the end.
Dtype accumulator(const graph::Node& n);

/// A group of reductions and what they fold; two kernels for a long one (reduction.cpp).
std::vector<Lowered> lower_reduction(const graph::Graph& g, const graph::Group& group, LayoutOf layout_of);
/// Whether a band of rows is written out: memory is waited for, as its elements are light and no cache holds them, and a row's folds do not
/// wait long for those of the row before.
template <class Parts>
bool is_light(double cost, const Dim& reach, const Parts& parts) {
  return cost <= kLightBand && reach >= kUncached &&
         std::all_of(parts.begin(), parts.end(), [](const auto& p) { return ops::cost(p.fold.op, p.accumulator) <= 1; });
}
/// Kernels over the rows of a group's space that hold row values between passes (rows.cpp).
Lowered lower_rows(const graph::Graph& g, const graph::Group& group, LayoutOf layout_of);

/// The kernel of a group with the Cumulative operation `scan` (cumulative.cpp).
Lowered lower_cumulative(const graph::Graph& g, const graph::Group& group, graph::Id scan, LayoutOf layout_of);

}  // namespace sinter::kernel
