#include "kernel/lower/lower.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

#include "kernel/lower/body.h"
#include "ops/expand.h"

namespace sinter::kernel {
namespace {

using graph::Graph;
using graph::Group;
using graph::Id;
using graph::Node;
using ops::Op;

// Sizes that the schedule is made of. Those marked (bits) fix the order of reductions, so that changing them changes results.
constexpr std::int64_t kPointwiseBlock = 16384;  // elements of a task: 64 KiB of float32, a multiple of all lanes * unroll
constexpr int kInnerUnroll = 4;                  // (bits) partials of an inner reduction: lanes * this
constexpr std::int64_t kInnerBlock = 32768;      // (bits) elements of a reduced inner axis that one task folds
constexpr std::int64_t kOuterBlock = 1024;       // (bits) rows of a reduced outer axis that one task folds
constexpr std::int64_t kColumns = 1024;          // columns of a task of an outer reduction
constexpr int kPrefetch = 2048;                  // bytes ahead

std::string name_of(const Graph& g, const Group& group) {
  std::string name;
  for (Id id : group.members) {
    if (g[id].op == Op::Constant && group.members.size() > 1) continue;
    if (name.size() > 60) return name.append("_etc");
    if (!name.empty()) name += '_';
    name += ops::info(g[id].op).name;
  }
  return name;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Lowered finish(Builder& b, Nest& nest, Body& body, std::int64_t tasks, double work) {
  Lowered out;
  out.kernel = std::move(b.kernel);
  out.buffers = std::move(body.buffers);
  out.integers = std::move(nest.integers);
  out.scalars = std::move(body.scalars);
  out.tasks = tasks;
  out.work = work;
  return out;
}

Ref times(Builder& b, Ref x, Ref y) { return b.compute(Op::Multiply, Dtype::int64, x, y); }
Ref plus(Builder& b, Ref x, Ref y) { return b.compute(Op::Add, Dtype::int64, x, y); }

// Splits a task number into (row, block) of `blocks` blocks a row.
std::pair<Ref, Ref> split(Builder& b, Ref task, Ref blocks) {
  return {b.compute(Op::FloorDivide, Dtype::int64, task, blocks), b.compute(Op::Remainder, Dtype::int64, task, blocks)};
}
// [begin, end) of a block of an axis.
std::pair<Ref, Ref> block_range(Builder& b, Ref block, Ref size, Ref extent) {
  Ref begin = times(b, block, size);
  return {begin, b.compute(Op::Minimum, Dtype::int64, plus(b, begin, size), extent)};
}

// ---- pointwise ------------------------------------------------------------------------------------------------------------------------

Lowered lower_pointwise(const Graph& g, const Group& group, LayoutOf layout_of) {
  Builder b;
  b.kernel.name = name_of(g, group);
  Nest nest(space_of(g, group), std::vector<char>(space_of(g, group).size(), 0));
  Body body(g, group, layout_of, b, nest);
  nest.form_axes();
  Axis inner = nest.axes.empty() ? Axis{} : nest.axes.back();
  std::vector<const Axis*> outer;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < nest.axes.size(); ++i) {
    outer.push_back(&nest.axes[i]);
    rows *= nest.axes[i].extent;
  }
  std::int64_t block = rows == 1 ? kPointwiseBlock : 4 * kPointwiseBlock, blocks = ceil_div(inner.extent, block);
  Ref extent = nest.arg(b, inner.extent), size = nest.arg(b, block), tasks = nest.arg(b, rows * blocks);
  Ref task = b.loop(LoopKind::Parallel, b.index(0), tasks);
  Ref place = task;
  if (!outer.empty()) {
    auto [row, part] = split(b, task, nest.arg(b, blocks));
    nest.open_rows(b, outer, row);
    place = part;
  }
  auto [begin, end] = block_range(b, place, size, extent);
  body.preload({&inner});
  Ref lane = b.loop(LoopKind::Vector, begin, end, body.unroll(), kPrefetch);
  nest.open(b, inner, lane, true);
  body.emit();
  b.end();
  b.end();
  return finish(b, nest, body, rows * blocks, (body.cost + 2) * static_cast<double>(rows * inner.extent));
}

// ---- reductions -----------------------------------------------------------------------------------------------------------------------

struct Fold {
  Op op;
  std::uint64_t (*identity)(Dtype);  // bits of the stored form
};

template <class T>
std::uint64_t bits_of(T v) {
  std::uint64_t b = 0;
  std::memcpy(&b, &v, sizeof v);
  return b;
}
// The value of `integers(signed)` for integers, `real` for floats.
std::uint64_t number_bits(Dtype t, double real, std::int64_t integer) {
  switch (t) {
    case Dtype::float32: return bits_of(static_cast<float>(real));
    case Dtype::float64: return bits_of(real);
    case Dtype::float16: return real == 0 ? 0 : real == 1 ? 0x3C00 : real > 0 ? 0x7C00 : 0xFC00;
    case Dtype::bfloat16: return real == 0 ? 0 : real == 1 ? 0x3F80 : real > 0 ? 0x7F80 : 0xFF80;
    case Dtype::complex64: return bits_of(static_cast<float>(real));
    default: return bits_of(integer) & (size_of(t) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(t))) - 1);
  }
}
constexpr double kInfinity = std::numeric_limits<double>::infinity();
std::int64_t lowest(Dtype t) { return is_signed(t) ? static_cast<std::int64_t>(~std::uint64_t{0} << (8 * size_of(t) - 1)) : 0; }
std::int64_t highest(Dtype t) { return t == Dtype::bool_ ? 1 : is_signed(t) ? ~lowest(t) : -1; }

// How each Reduce operation folds.
Fold fold_of(Op op) {
  switch (op) {
    case Op::Sum: return {Op::Add, [](Dtype t) { return number_bits(t, 0, 0); }};
    case Op::Prod: return {Op::Multiply, [](Dtype t) { return number_bits(t, 1, 1); }};
    case Op::Max: return {Op::Maximum, [](Dtype t) { return number_bits(t, -kInfinity, lowest(t)); }};
    case Op::Min: return {Op::Minimum, [](Dtype t) { return number_bits(t, kInfinity, highest(t)); }};
    case Op::All: return {Op::LogicalAnd, [](Dtype t) { return number_bits(t, 1, 1); }};
    case Op::Any: return {Op::LogicalOr, [](Dtype t) { return number_bits(t, 0, 0); }};
    default: throw InternalError("internal: lower: not a reduction");
  }
}
// Half dtypes accumulate in float32 and round once, at the end.
Dtype accumulator(const Node& n) {
  Dtype t = static_cast<Dtype>(n.attrs[0]);
  return is_half(t) && n.op != Op::Max && n.op != Op::Min ? Dtype::float32 : t;
}

class Reduction {
 public:
  Reduction(const Graph& g, const Group& group, LayoutOf layout_of)
      : g_(g), group_(group), nest_(space_of(g, group), reduced_flags(g, group)), body_(g, group, layout_of, b_, nest_) {
    b_.kernel.name = name_of(g, group);
    for (Id id : group.members)
      if (!graph::is_pointwise(g[id])) {
        Part p{id, fold_of(g[id].op), accumulator(g[id])};
        p.identity = b_.constant(p.accumulator, p.fold.identity(p.accumulator));
        parts_.push_back(p);
      }
    body_.cost += 2 * static_cast<double>(parts_.size());
  }

  std::vector<Lowered> run() {
    for (Part& p : parts_) p.access = body_.add_result(p.id, p.buffer);
    nest_.form_axes();
    for (const Axis& a : nest_.axes) {
      if (a.reduced)
        folded_.push_back(&a);
      else
        kept_.push_back(&a);
    }
    for (const Axis* a : kept_) kept_count_ *= a->extent;
    if (folded_.empty()) folded_.push_back(&unit_);  // only axes of size 1 are reduced
    bool inner = !nest_.axes.empty() && nest_.axes.back().reduced;
    blocks_ = std::max<std::int64_t>(1, ceil_div(folded_.back()->extent, inner ? kInnerBlock : kOuterBlock));
    Lowered first = inner || kept_.empty() ? fold_inner() : fold_outer();
    std::vector<Lowered> out;
    out.push_back(std::move(first));
    if (blocks_ > 1) {
      for (const Part& p : parts_) out[0].scratch_bytes += blocks_ * kept_count_ * size_of(p.accumulator);
      out.push_back(fold_blocks());
    }
    return out;
  }

 private:
  struct Part {
    Id id;
    Fold fold;
    Dtype accumulator;
    Ref identity = kNone;
    int buffer = 0;
    std::size_t access = 0;
    Ref carry = kNone;
  };

  static std::vector<char> reduced_flags(const Graph& g, const Group& group) {
    std::vector<char> flags(space_of(g, group).size(), 0);
    for (Id id : group.members)
      if (!graph::is_pointwise(g[id]))
        for (std::size_t i = 1; i < g[id].attrs.size(); ++i) flags[static_cast<std::size_t>(g[id].attrs[i])] = 1;
    return flags;
  }

  Ref element(const Part& p) { return b_.cast(body_.value(g_[p.id].in[0]), p.accumulator); }

  // Where a task's results go: the outputs, or its block's row of the scratch memory, [blocks][kept].
  void store(Part& p, Ref value, Ref block, Ref kept) {
    if (blocks_ == 1) {
      b_.store(p.buffer, nest_.index(b_, p.access), b_.cast(value, g_[p.id].type.dtype));
    } else {
      b_.store(p.buffer, plus(b_, times(b_, block, kept_arg_), kept), value);
    }
  }
  void begin_arguments() {
    if (blocks_ == 1) return;
    kept_arg_ = nest_.arg(b_, kept_count_);
    for (Part& p : parts_) {  // the same buffer number now means scratch memory
      b_.kernel.buffers[static_cast<std::size_t>(p.buffer)].dtype = p.accumulator;
      body_.buffers[static_cast<std::size_t>(p.buffer)] = {graph::kKeep, false};
    }
  }

  // A serial loop that carries every part; returns its index. `initial` may be the carries of a loop around it.
  Ref open_serial(Ref begin, Ref end) {
    Ref index = b_.loop(LoopKind::Serial, begin, end);
    for (Part& p : parts_) p.carry = b_.carry(p.accumulator, p.carry == kNone ? p.identity : p.carry);
    return index;
  }

  // The innermost axis is reduced: lanes along it, partials combined at the end of each block.
  Lowered fold_inner() {
    begin_arguments();
    const Axis& lanes = *folded_.back();
    Ref extent = nest_.arg(b_, lanes.extent), size = nest_.arg(b_, kInnerBlock), tasks = nest_.arg(b_, kept_count_ * blocks_);
    Ref task = b_.loop(LoopKind::Parallel, b_.index(0), tasks);
    Ref row = task, block = kNone, begin = b_.index(0), end = extent;
    if (blocks_ > 1) {
      std::tie(row, block) = split(b_, task, nest_.arg(b_, blocks_));
      std::tie(begin, end) = block_range(b_, block, size, extent);
    }
    nest_.open_rows(b_, kept_, row);
    std::vector<std::vector<Ref>> outer;  // carries of the serial loops over the other reduced axes
    std::vector<Ref> at_row = nest_.position();
    for (std::size_t i = 0; i + 1 < folded_.size(); ++i) {
      Ref index = open_serial(b_.index(0), nest_.arg(b_, folded_[i]->extent));
      outer.push_back({});
      for (Part& p : parts_) outer.back().push_back(p.carry);
      nest_.open(b_, *folded_[i], index, false);
    }
    body_.preload({&lanes});
    Ref lane = b_.loop(LoopKind::Vector, begin, end, kInnerUnroll, kPrefetch);
    std::vector<Ref> partials;
    for (Part& p : parts_) partials.push_back(b_.carry(p.accumulator, p.identity));
    nest_.open(b_, lanes, lane, true);
    body_.emit();
    for (std::size_t i = 0; i < parts_.size(); ++i)
      b_.next(partials[i], b_.compute(parts_[i].fold.op, parts_[i].accumulator, partials[i], element(parts_[i])));
    b_.end();
    std::vector<Ref> totals;
    for (std::size_t i = 0; i < parts_.size(); ++i) totals.push_back(b_.combine(parts_[i].fold.op, partials[i]));
    for (std::size_t level = outer.size(); level-- > 0;) {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        Ref next = level + 1 == outer.size() ? b_.compute(parts_[i].fold.op, parts_[i].accumulator, outer[level][i], totals[i])
                                             : outer[level + 1][i];
        b_.next(outer[level][i], next);
      }
      b_.end();
    }
    nest_.return_to(at_row);
    for (std::size_t i = 0; i < parts_.size(); ++i) store(parts_[i], outer.empty() ? totals[i] : outer[0][i], block, row);
    b_.end();
    return finish(b_, nest_, body_, kept_count_ * blocks_, work());
  }

  // The innermost axis is kept: lanes along it, each folding its own column in order.
  Lowered fold_outer() {
    begin_arguments();
    const Axis& lanes = *kept_.back();
    std::vector<const Axis*> rows(kept_.begin(), kept_.end() - 1);
    std::int64_t row_count = lanes.extent == 0 ? 0 : kept_count_ / lanes.extent, columns = ceil_div(lanes.extent, kColumns);
    Ref extent = nest_.arg(b_, lanes.extent), size = nest_.arg(b_, kColumns), parts = nest_.arg(b_, columns);
    Ref tasks = nest_.arg(b_, row_count * columns * blocks_);
    Ref task = b_.loop(LoopKind::Parallel, b_.index(0), tasks);
    Ref block = kNone, begin = b_.index(0), end = nest_.arg(b_, folded_.back()->extent);
    if (blocks_ > 1) {
      std::tie(task, block) = split(b_, task, nest_.arg(b_, blocks_));
      std::tie(begin, end) = block_range(b_, block, nest_.arg(b_, kOuterBlock), end);
    }
    auto [row, column] = split(b_, task, parts);
    nest_.open_rows(b_, rows, row);
    auto [first, last] = block_range(b_, column, size, extent);
    Ref lane = b_.loop(LoopKind::Vector, first, last, body_.unroll(), 0);
    nest_.open(b_, lanes, lane, true);
    body_.preload(folded_);
    std::vector<Ref> at_column = nest_.position();
    std::vector<std::vector<Ref>> carries;
    for (std::size_t i = 0; i < folded_.size(); ++i) {
      bool innermost = i + 1 == folded_.size();
      Ref index = open_serial(innermost ? begin : b_.index(0), innermost ? end : nest_.arg(b_, folded_[i]->extent));
      carries.push_back({});
      for (Part& p : parts_) carries.back().push_back(p.carry);
      nest_.open(b_, *folded_[i], index, false);
    }
    body_.emit();
    for (std::size_t level = carries.size(); level-- > 0;) {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        Part& p = parts_[i];
        b_.next(carries[level][i],
                level + 1 == carries.size() ? b_.compute(p.fold.op, p.accumulator, p.carry, element(p)) : carries[level + 1][i]);
      }
      b_.end();
    }
    nest_.return_to(at_column);
    Ref kept = plus(b_, times(b_, row, extent), lane);
    for (std::size_t i = 0; i < parts_.size(); ++i) store(parts_[i], carries[0][i], block, kept);
    b_.end();
    b_.end();
    return finish(b_, nest_, body_, row_count * columns * blocks_, work());
  }

  // The second kernel of a long reduction: folds the blocks of the scratch memory in order.
  Lowered fold_blocks() {
    Builder b;
    b.kernel.name = name_of(g_, group_) + "_blocks";
    Lowered out;
    auto arg = [&](std::int64_t v) {
      out.integers.push_back(v);
      return b.arg();
    };
    std::int64_t tasks = ceil_div(kept_count_, kColumns);
    Ref kept = arg(kept_count_), size = arg(kColumns), count = arg(tasks), blocks = arg(blocks_);
    std::vector<int> in, result;
    std::vector<Ref> identity;
    for (const Part& p : parts_) {
      in.push_back(static_cast<int>(b.buffer(p.accumulator, false)));
      result.push_back(static_cast<int>(b.buffer(g_[p.id].type.dtype, true)));
      out.buffers.push_back({graph::kKeep, false});
      out.buffers.push_back({p.id, false});
      identity.push_back(b.constant(p.accumulator, p.fold.identity(p.accumulator)));
    }
    Ref task = b.loop(LoopKind::Parallel, b.index(0), count);
    auto [first, last] = block_range(b, task, size, kept);
    Ref lane = b.loop(LoopKind::Vector, first, last);
    Ref block = b.loop(LoopKind::Serial, b.index(0), blocks);
    std::vector<Ref> carry;
    for (std::size_t i = 0; i < parts_.size(); ++i) carry.push_back(b.carry(parts_[i].accumulator, identity[i]));
    Ref place = plus(b, times(b, block, kept), lane);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      b.next(carry[i], b.compute(parts_[i].fold.op, parts_[i].accumulator, carry[i], b.load(in[i], place)));
    b.end();
    for (std::size_t i = 0; i < parts_.size(); ++i) b.store(result[i], lane, b.cast(carry[i], g_[parts_[i].id].type.dtype));
    b.end();
    b.end();
    out.kernel = std::move(b.kernel);
    out.tasks = tasks;
    out.work = static_cast<double>(kept_count_ * blocks_);
    return out;
  }

  double work() const {
    double n = static_cast<double>(kept_count_);
    for (const Axis* a : folded_) n *= static_cast<double>(a->extent);
    return n * (body_.cost + 2);
  }

  const Graph& g_;
  const Group& group_;
  Builder b_;
  Nest nest_;
  Body body_;
  std::vector<Part> parts_;
  std::vector<const Axis*> kept_, folded_;
  Axis unit_{1, true, {}};
  std::int64_t kept_count_ = 1, blocks_ = 1;
  Ref kept_arg_ = kNone;
};

}  // namespace

std::vector<Lowered> lower(const Graph& g, const Group& group, LayoutOf layout_of) {
  bool reduces = std::any_of(group.members.begin(), group.members.end(), [&](Id id) { return !graph::is_pointwise(g[id]); });
  if (reduces) return Reduction(g, group, layout_of).run();
  std::vector<Lowered> out;
  out.push_back(lower_pointwise(g, group, layout_of));
  return out;
}

}  // namespace sinter::kernel
