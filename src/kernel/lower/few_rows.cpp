// Products with few rows. Element k of a sum goes to partial k mod lanes, and partials are folded by halves, as Combine does, whichever way
// the matrix lies in memory: so the bits do not depend on layouts. (bits) Layer: kernel.
#include "kernel/lower/parts.h"

namespace sinter::kernel {
namespace {

using ops::Op;

constexpr Dtype i64 = Dtype::int64;
// One column at a time, one vector after the other: as fast as a summing read (40 GB/s on one thread, 72 on two; two columns at once 28).
constexpr std::int64_t kColumnsOfTask = 16;
constexpr int kFarAhead = 4096;  // bytes: 1.2 times as fast as 2048 with two threads
// Rows of the matrix are read in runs of so many vectors: 24 GB/s, twice the library's; 18 with 2, 28 with 8.
constexpr int kRun = 4;

class Lowering {
 public:
  Lowering(const FewRows& f, int lanes) : f_(f), lanes_(lanes), sum_(is_half(f.dtype) ? Dtype::float32 : f.dtype) {
    b_.kernel.name = "matmul";
    auto batches = [&](std::int64_t step) { return step == 0 ? 1 : f.batch; };
    const std::int64_t elements[] = {batches(f.few.batch) * f.rows * f.k, batches(f.matrix.batch) * f.k * f.n, f.batch * f.rows * f.n};
    for (graph::Id i = 0; i < 3; ++i) {
      b_.buffer(f.dtype, i == 2);
      out_.buffers.push_back({i, elements[i], false});
    }
    identity_ = b_.constant(sum_, fold_of(Op::Sum).identity(sum_));
  }

  Lowered run() {
    const bool along = f_.matrix.k == 1;
    const std::int64_t size = along ? kColumnsOfTask : kRun * lanes_, blocks = ceil_div(f_.n, size);
    out_.tasks = f_.batch * blocks;
    const Ref tasks = arg(out_.tasks), extent = arg(f_.n), size_arg = arg(size), blocks_arg = arg(blocks);
    const Ref task = b_.loop(LoopKind::Parallel, b_.index(0), tasks);
    const auto [batch, block] = split(b_, task, blocks_arg);
    few_ = times(b_, batch, arg(f_.few.batch));
    matrix_ = times(b_, batch, arg(f_.matrix.batch));
    result_ = times(b_, batch, arg(f_.out.batch));
    const auto [begin, end] = block_range(b_, block, size_arg, extent);
    along ? columns(begin, end) : runs(task, begin, end, size);
    b_.end();
    out_.kernel = std::move(b_.kernel);
    out_.work = (1 + 3.0 * static_cast<double>(f_.rows)) * static_cast<double>(f_.batch) * static_cast<double>(f_.n * f_.k);
    return std::move(out_);
  }

 private:
  // Each column of the matrix lies in one piece: lanes along it.
  void columns(Ref begin, Ref end) {
    const Ref k = arg(f_.k), step = arg(f_.matrix.n), result_step = arg(f_.out.n);
    std::vector<Ref> few{few_}, result{result_}, sums;  // by row
    for (std::int64_t r = 1; r < f_.rows; ++r) {
      few.push_back(plus(b_, few_, arg(r * f_.few.row)));
      result.push_back(plus(b_, result_, arg(r * f_.out.row)));
    }
    const Ref column = b_.loop(LoopKind::Serial, begin, end);
    const Ref at = plus(b_, matrix_, times(b_, column, step));
    const Ref lane = b_.loop(LoopKind::Vector, b_.index(0), k, 1, kFarAhead);
    for (std::int64_t r = 0; r < f_.rows; ++r) sums.push_back(b_.carry(sum_, identity_));
    const Ref w = load(1, plus(b_, at, lane)), along = f_.few.k == 1 ? lane : times(b_, lane, arg(f_.few.k));
    for (std::size_t r = 0; r < sums.size(); ++r) b_.next(sums[r], added(sums[r], load(0, plus(b_, few[r], along)), w));
    b_.end();
    for (Ref& s : sums) s = b_.combine(Op::Add, s);
    for (std::size_t r = 0; r < sums.size(); ++r) store(plus(b_, result[r], times(b_, column, result_step)), sums[r]);
    b_.end();
  }

  // Each row of the matrix lies in one piece: lanes along it. One partial after the other goes to scratch memory, which stays in the
  // nearest cache: with a loop for each, or a carry, there is four times as much code.
  void runs(Ref task, Ref begin, Ref end, std::int64_t size) {
    const int scratch = b_.buffer(sum_, true);
    out_.buffers.push_back({graph::kKeep, 0, false});
    out_.scratch_bytes = out_.tasks * size * lanes_ * size_of(sum_);
    const Ref k = arg(f_.k), rows = arg(f_.rows), few_row = arg(f_.few.row), few_k = arg(f_.few.k), matrix_k = arg(f_.matrix.k),
              result_row = arg(f_.out.row), size_arg = arg(size), lanes = b_.index(lanes_);
    const Ref kept = b_.compute(Op::Subtract, i64, times(b_, task, arg(size * lanes_)), begin);  // the first partial of column 0
    const Ref row = b_.loop(LoopKind::Serial, b_.index(0), rows);
    const Ref few = plus(b_, few_, times(b_, row, few_row)), result = plus(b_, result_, times(b_, row, result_row));

    const Ref i = b_.loop(LoopKind::Serial, b_.index(0), lanes);
    const Ref parts = b_.compute(Op::FloorDivide, i64, b_.compute(Op::Subtract, i64, plus(b_, k, b_.index(lanes_ - 1)), i), lanes);
    const Ref to = plus(b_, kept, times(b_, i, size_arg));
    Ref lane = b_.loop(LoopKind::Vector, begin, end, kRun);
    const Ref part = b_.loop(LoopKind::Serial, b_.index(0), parts);
    const Ref sum = b_.carry(sum_, identity_);
    const Ref at = plus(b_, times(b_, part, lanes), i);
    const Ref x = load(0, plus(b_, few, times(b_, at, few_k)));
    b_.next(sum, added(sum, x, load(1, plus(b_, plus(b_, matrix_, times(b_, at, matrix_k)), lane))));
    b_.end();
    b_.store(scratch, plus(b_, to, lane), sum);
    b_.end();
    b_.end();

    lane = b_.loop(LoopKind::Vector, begin, end);
    std::vector<Ref> sums;
    const Ref column = plus(b_, kept, lane);
    for (int p = 0; p < lanes_; ++p) sums.push_back(b_.load(scratch, plus(b_, column, b_.index(p * size))));
    for (std::size_t half = sums.size() / 2; half > 0; half /= 2)
      for (std::size_t p = 0; p < half; ++p) sums[p] = b_.compute(Op::Add, sum_, sums[p], sums[p + half]);
    store(plus(b_, result, f_.out.n == 1 ? lane : times(b_, lane, arg(f_.out.n))), sums[0]);
    b_.end();
    b_.end();
  }

  Ref arg(std::int64_t value) {
    out_.integers.push_back(value);
    return b_.arg();
  }
  Ref load(int buffer, Ref index) { return b_.cast(b_.load(buffer, index), sum_); }
  Ref added(Ref sum, Ref x, Ref w) { return b_.compute(Op::Add, sum_, sum, b_.compute(Op::Multiply, sum_, x, w)); }
  void store(Ref at, Ref sum) { b_.store(2, at, b_.cast(sum, f_.dtype)); }

  const FewRows& f_;
  const int lanes_;
  const Dtype sum_;
  Builder b_;
  Lowered out_;
  Ref identity_, few_ = kNone, matrix_ = kNone, result_ = kNone;  // where those of a task's batch begin
};

}  // namespace

Lowered lower_few_rows(const FewRows& f, int lanes) { return Lowering(f, lanes).run(); }

}  // namespace sinter::kernel
