#include "kernel/lower/body.h"

#include <algorithm>

#include "base/symbols.h"

namespace sinter::kernel {

using graph::Id;
using graph::Node;
using ops::Op;
using ops::OpKind;

namespace {
constexpr std::int64_t kCopied = 16384;  // elements from which a copy for the sake of its order takes less time than gathers
constexpr int kFunction = 12;            // instructions of a member that is more than arithmetic
}  // namespace

Body::Body(const graph::Graph& g, const graph::Group& group, LayoutOf layout_of, Builder& b, Nest& nest)
    : g_(g), group_(group), layout_of_(layout_of), b_(b), nest_(nest) {
  for (Id id : group.members) {
    const Node& n = g[id];
    const Shape& shape = graph::is_pointwise(n) ? n.type.shape : g[n.in[0]].type.shape;
    const std::size_t rank = shape.size();
    for (std::size_t i = 0; i < n.in.size(); ++i) {
      Id u = n.in[i];
      const Node& operand = g[u];
      const bool scalar = graph::is_scalar_constant(operand);
      if (!graph::is_read_elsewhere(n.op, i) || (n.op == Op::Pad && scalar)) {
        if (scalar) {
          if (!values_.contains(u)) {
            values_[u] = b_.scalar(operand.type.dtype);
            scalars.push_back(u);
          }
        } else if (!is_member(under(u))) {
          const bool one = operand.type.shape.empty();
          add_leaf(u, one ? graph::Strides(group.space.size(), 0) : nest.spread(shape, layout_of(u).strides));
        }
        continue;
      }
      // Operands at a computed place: their strides over the space, without the computed axis.
      graph::Strides strides(rank, 0);
      const graph::Strides& own = layout_of(u).strides;
      if (n.op == Op::TakeAlong) {
        for (std::size_t d = 0; d < rank; ++d) strides[d] = static_cast<std::int64_t>(d) == n.attrs[0] ? Dim(0) : own[d];
      } else if (n.op == Op::RandomBits) {
        std::copy(own.begin(), own.end() - 1, strides.begin());
      } else if (n.op == Op::Take) {
        if (i == 1) continue;  // below
        std::size_t axis = static_cast<std::size_t>(n.attrs[0]), width = g[n.in[1]].type.shape.size();
        for (std::size_t d = 0; d < own.size(); ++d)
          if (d != axis) strides[d < axis ? d : d + width - 1] = own[d];
      } else if (n.op == Op::Pad) {
        strides = own;
      }
      gathers_[id] = {add_buffer(u, false), nest.add(nest.spread(shape, strides))};
    }
    if (n.op == Op::Arange) {
      graph::Strides strides(rank, 0);
      strides[static_cast<std::size_t>(n.attrs[0])] = 1;
      walks_[id] = nest.add(nest.spread(shape, strides));
    } else if (n.op == Op::RandomBits) {
      graph::Strides strides = graph::row_major(shape);  // within the block of a key
      std::fill_n(strides.begin(), g[n.in[0]].type.shape.size() - 1, 0);
      walks_[id] = nest.add(nest.spread(shape, strides));
    }
    if (n.op == Op::Pad)
      for (std::size_t d = 0; d < rank; ++d)
        if (shape[d] != g[n.in[0]].type.shape[d] && find_position(shape, d) == positions_.end())
          positions_.push_back({&shape, d, nest.add_position(shape, d)});
    if (n.op == Op::Constant && !values_.contains(id)) {
      values_[id] = b_.scalar(n.type.dtype);
      scalars.push_back(id);
    }
    cost += graph::cost(g, id);
    functions_ += graph::cost(g, id) >= kFunction;
    computes_ += n.op == Op::RandomBits ? 100 : 1;
  }
  // Indices of a Take lie along its axis. An array that is walked another way too, by another Take or as an operand, is read anew.
  for (Id id : group.members) {
    const Node& n = g[id];
    if (n.op != Op::Take) continue;
    const graph::Strides& own = layout_of(n.in[1]).strides;
    graph::Strides strides(n.type.shape.size(), 0);
    std::copy(own.begin(), own.end(), strides.begin() + static_cast<std::ptrdiff_t>(n.attrs[0]));
    strides = nest.spread(n.type.shape, strides);
    if (!add_leaf(n.in[1], strides)) indices_[id] = {add_buffer(n.in[1], false), nest.add(strides)};
  }
  for (Id id : group.outputs)
    if (graph::is_pointwise(g[id]) || ops::info(g[id].op).kind == OpKind::Cumulative) {
      std::size_t access = nest.add(nest.spread(g[id].type.shape, layout_of(id).strides));
      stores_.push_back({id, {add_buffer(id, true), access}});
    }
  count_live();
  // A leaf that is read only where outputs are written may share their memory; but what an output of fewer axes is written over may be read
  // again along the others.
  const auto fills = [&](const Store& s) { return g[s.id].type.shape.product() == group.space.product(); };
  for (auto& [id, leaf] : leaves_) {
    bool same = !stores_.empty();
    for (const Store& s : stores_) same = same && nest.same_walk(leaf.access, s.place.access) && fills(s);
    buffers[static_cast<std::size_t>(leaf.buffer)].same_index = same;
  }
  for (const Store& s : stores_) buffers[static_cast<std::size_t>(s.place.buffer)].same_index = true;
}

void Body::count_live() {
  std::unordered_map<Id, int> uses;
  auto in_body = [&](Id u) { return values_.contains(u) || leaves_.contains(u) || is_member(u); };
  for (Id id : group_.members)
    for (Id u : g_[id].in) uses[under(u)] += in_body(under(u));
  for (Id id : group_.outputs) ++uses[id];  // stored at the end
  int live = 0;
  std::unordered_map<Id, bool> seen;
  for (Id id : group_.members) {
    for (Id u : g_[id].in) {
      if (leaves_.contains(u) && !seen[u]) seen[u] = true, ++live;
    }
    live_ = std::max(live_, ++live);
    for (Id u : g_[id].in)
      if (--uses[under(u)] == 0 && !values_.contains(under(u))) --live;
  }
}

// Measured on an x86-64-v4 machine: out of cache, a body of up to 20 instructions gains nothing from more vectors in flight; a chain of
// functions runs three times as fast with four. Code generation takes twice as long with four as with one. A long chain in which each
// operation waits for the one before runs half as fast again with eight.
int Body::unroll(int of_light) const {
  constexpr int kLight = 20, kMedium = 30, kLong = 1000, kManyOperations = 400, kManyValues = 64, kChainValues = 4;
  int n = cost <= kLight ? of_light : cost <= kMedium ? 2 : cost > kLong && live_ <= kChainValues ? 8 : 4;
  while (n > 1 && (computes_ > kManyOperations || live_ > kManyValues)) n /= 2;
  return n;
}

// One function and what surrounds it is a chain that leaves registers for eight vectors: gelu by erf takes 0.89 of its time with two, by
// tanh 0.86 of that with four, in cache and out of it, and 1.5 ms more to compile. With two functions, eight take 1.1 times as long as
// four.
int Body::pointwise_unroll() const {
  constexpr int kLeast = 20, kMost = 60, kOperations = 3;
  return functions_ == 1 && computes_ >= kOperations && cost > kLeast && cost <= kMost ? 8 : unroll();
}

int Body::add_buffer(Id id, bool written) {
  buffers.push_back({id, graph::distinct_elements(g_[id].type.shape, layout_of_(id).strides), false});
  return static_cast<int>(b_.buffer(g_[id].type.dtype, written));
}
bool Body::add_leaf(Id id, graph::Strides strides) {
  if (auto it = leaves_.find(id); it != leaves_.end()) return nest_.walks(it->second.access, strides);
  int buffer = add_buffer(id, false);
  leaves_[id] = {buffer, nest_.add(std::move(strides))};
  return true;
}
std::size_t Body::add_result(Id id, int& buffer) {
  buffer = add_buffer(id, true);
  const Node& n = g_[id];
  graph::Strides own = graph::row_major(n.type.shape), strides(group_.space.size(), 0);
  for (std::size_t d = 0, k = 0; d < strides.size(); ++d)
    if (std::find(n.attrs.begin() + 1, n.attrs.end(), static_cast<std::int64_t>(d)) == n.attrs.end()) strides[d] = own[k++];
  return nest_.add(std::move(strides));
}

Id Body::under(Id operand) const {
  if (is_member(operand)) return operand;
  const Id made = graph::under_views(g_, operand);
  return is_member(made) ? made : operand;
}

void Body::keep_apart(Id operand) {
  if (auto it = leaves_.find(operand); it != leaves_.end()) buffers[static_cast<std::size_t>(it->second.buffer)].same_index = false;
}

bool Body::is_across(const Leaf& leaf, const Axis& tiled, const Axis& lanes) const {
  return nest_.stride(leaf.access, lanes) > 1 && nest_.stride(leaf.access, tiled) == 1;  // one step: a tile has but one
}
const Axis* Body::tiled_axis(const std::vector<const Axis*>& axes, const Axis& lanes) const {
  for (Id id : group_.members)
    for (Id u : g_[id].in)
      if (auto it = leaves_.find(u); it != leaves_.end())
        for (const Axis* axis : axes)
          if (axis->extent >= kTile && is_across(it->second, *axis, lanes)) return axis;
  return nullptr;
}
std::int64_t Body::across_bytes(const Axis& tiled, const Axis& lanes) const {
  std::int64_t bytes = 0;
  for (const auto& [id, leaf] : leaves_)
    if (is_across(leaf, tiled, lanes)) bytes += size_of(g_[id].type.dtype);
  return bytes;
}
std::vector<Id> Body::left_across(const Axis& lanes) const {
  std::vector<Id> list;
  for (const auto& [id, leaf] : leaves_)
    if (nest_.is_across(leaf.access, lanes) && g_[id].type.shape.product() >= kCopied) list.push_back(id);
  for (const auto& [id, read] : gathers_)
    if (const Id source = g_[id].in[0];
        g_[id].op == Op::Pad && nest_.is_across(read.access, lanes) && g_[source].type.shape.product() >= kCopied)
      list.push_back(source);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}
std::vector<Body::Across> Body::read_across(const Axis& tiled, const Axis& lanes, std::size_t panels) {
  std::vector<Across> list;
  for (Id id : group_.members)
    for (Id u : g_[id].in)
      if (auto it = leaves_.find(u); it != leaves_.end() && is_across(it->second, tiled, lanes)) {
        Leaf& leaf = it->second;
        keep_apart(u);  // read before what is stored at other points
        const Ref panel = b_.buffer(g_[u].type.dtype, true, true);
        list.push_back({leaf.buffer, leaf.access, static_cast<int>(panel)});
        buffers.push_back({});
        leaf = {static_cast<int>(panel), panels, kNone};
      }
  return list;
}

void Body::prefetch_inputs(const std::vector<const Axis*>& rows, const Axis& lanes) {
  std::vector<Id> done;
  for (Id id : group_.members)
    for (Id u : g_[id].in)
      if (auto it = leaves_.find(u); it != leaves_.end() && std::find(done.begin(), done.end(), u) == done.end()) {
        done.push_back(u);
        const std::size_t access = it->second.access;
        const bool scratch = b_.kernel.buffers[static_cast<std::size_t>(it->second.buffer)].scratch;
        if (!scratch && !nest_.is_still(access, {&lanes}) && !nest_.is_still(access, rows))
          b_.prefetch(it->second.buffer, nest_.index(b_, access));
      }
}
void Body::prefetch_outputs() {
  for (const Store& s : stores_) b_.prefetch(s.place.buffer, nest_.index(b_, s.place.access));
}

Ref Body::load(Id id) {
  Leaf& leaf = leaves_.at(id);
  if (leaf.loaded == kNone) {
    leaf.loaded = b_.load(leaf.buffer, nest_.index(b_, leaf.access));
    if (!scopes_.empty()) scopes_.back().leaves.push_back(id);
  }
  return leaf.loaded;
}
void Body::preload(const std::vector<const Axis*>& inner) {
  // In member order, so that the text does not depend on a hash table.
  for (Id id : group_.members)
    for (Id u : g_[id].in)
      if (auto it = leaves_.find(u); it != leaves_.end() && nest_.is_still(it->second.access, inner)) load(u);
}

Ref Body::value(Id id) {
  id = under(id);
  if (auto it = values_.find(id); it != values_.end()) return it->second;
  return load(id);
}

void Body::emit() {
  emit(group_.members);
  for (const Store& s : stores_) store(s.id, s.place);
}
void Body::emit(const std::vector<Id>& members) {
  for (Id id : members)
    if (!graph::is_pointwise(g_[id])) {
      value(g_[id].in[0]);  // a reduction's operand: read before stores, which may share its memory
    } else if (g_[id].op != Op::Constant) {
      values_[id] = compute(id);
      if (!scopes_.empty()) scopes_.back().members.push_back(id);
    }
}
Body::Place Body::place_of(Id output) const {
  return std::find_if(stores_.begin(), stores_.end(), [&](const Store& s) { return s.id == output; })->place;
}
Body::Place Body::scratch_row(Dtype t, const Axis& lanes) {
  buffers.push_back({});
  return {static_cast<int>(b_.buffer(t, true, true)), nest_.add_walk({{&lanes, 1}})};
}
void Body::store(Id member, Place place) { b_.store(place.buffer, nest_.index(b_, place.access), values_.at(member)); }
void Body::load_kept(Id member, Place place) {
  values_[member] = b_.load(place.buffer, nest_.index(b_, place.access));
  scopes_.back().members.push_back(member);
}
Ref Body::define(Id member, Ref result) {
  if (!scopes_.empty()) scopes_.back().members.push_back(member);
  return std::exchange(values_.try_emplace(member, kNone).first->second, result);
}
void Body::open_scope() {
  scopes_.emplace_back();
  insides_.clear();
}
void Body::close_scope() {
  for (Id id : scopes_.back().members) values_.erase(id);
  for (Id id : scopes_.back().leaves) leaves_.at(id).loaded = kNone;
  scopes_.pop_back();
  insides_.clear();
}

Ref Body::compute(Id id) {
  const Node& n = g_[id];
  switch (n.op) {
    case Op::Cast: return b_.cast(value(n.in[0]), n.type.dtype);
    case Op::Copy: return value(n.in[0]);
    case Op::Arange: return arange(id);
    case Op::RandomBits: return random_bits(id);
    case Op::Take:
    case Op::TakeAlong: return gather(id);
    case Op::Pad: return pad(id);
    default: break;
  }
  Ref in[3] = {kNone, kNone, kNone};
  for (std::size_t i = 0; i < n.in.size(); ++i) in[i] = value(n.in[i]);
  return b_.compute(n.op, g_[n.in[n.op == Op::Where ? 1 : 0]].type.dtype, in[0], in[1], in[2]);
}

Ref Body::arange(Id id) {
  const Node& n = g_[id];
  Dtype t = n.type.dtype;
  Ref i = b_.cast(nest_.index(b_, walks_.at(id)), t);
  return b_.compute(Op::Add, t, value(n.in[0]), b_.compute(Op::Multiply, t, i, value(n.in[1])));
}

// Indices count from the end when negative, and clamp to the axis.
Ref Body::gather(Id id) {
  const Node& n = g_[id];
  constexpr Dtype i64 = Dtype::int64;
  const Node& source = g_[n.in[0]];
  std::size_t axis = static_cast<std::size_t>(n.attrs[0]);
  Ref size = nest_.arg(b_, source.type.shape[axis]), last = nest_.arg(b_, source.type.shape[axis] - 1);
  const auto index_leaf = n.op == Op::Take ? indices_.find(id) : indices_.end();
  Ref i = index_leaf == indices_.end() ? value(n.in[1]) : b_.load(index_leaf->second.buffer, nest_.index(b_, index_leaf->second.access));
  Ref zero = b_.index(0);
  Dtype index = g_[n.in[1]].type.dtype;
  // Of uint64, what no axis is as long as must not turn negative.
  if (index == Dtype::uint64) i = b_.compute(Op::Minimum, index, i, b_.constant(index, std::uint64_t{1} << 62));
  i = b_.cast(i, i64);
  if (is_signed(index)) i = b_.compute(Op::Where, i64, b_.compute(Op::Less, i64, i, zero), b_.compute(Op::Add, i64, i, size), i);
  i = b_.compute(Op::Minimum, i64, b_.compute(Op::Maximum, i64, i, zero), last);
  Leaf& leaf = gathers_.at(id);
  Ref place = b_.compute(Op::Multiply, i64, i, nest_.arg(b_, layout_of_(n.in[0]).strides[axis]));
  return b_.load(leaf.buffer, b_.compute(Op::Add, i64, nest_.index(b_, leaf.access), place));
}

std::vector<Body::Position>::const_iterator Body::find_position(const Shape& shape, std::size_t d) const {
  return std::find_if(positions_.begin(), positions_.end(), [&](const Position& p) { return p.axis == d && base::same(*p.shape, shape); });
}

// Whether the point lies in the operand of a pad; kNone: all do.
Ref Body::inside(Id id) {
  constexpr Dtype i64 = Dtype::int64;
  const Node& n = g_[id];
  const Shape &shape = n.type.shape, &within = g_[n.in[0]].type.shape;
  for (const auto& [other, known] : insides_)
    if (base::same(g_[other].type.shape, shape) && base::same(g_[g_[other].in[0]].type.shape, within) &&
        base::same(g_[other].attrs, n.attrs))
      return known;
  Ref all = kNone;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == within[d]) continue;
    const std::size_t position = find_position(shape, d)->access;
    const Ref at = nest_.index(b_, position);
    auto require = [&](Op op, const Dim& bound) {
      const Ref holds = b_.compute(op, i64, at, nest_.arg(b_, bound * nest_.unit(position)));
      all = all == kNone ? holds : b_.compute(Op::LogicalAnd, Dtype::bool_, all, holds);
    };
    if (n.attrs[d] != 0) require(Op::GreaterEqual, n.attrs[d]);
    if (n.attrs[shape.size() + d] != 0) require(Op::Less, n.attrs[d] + within[d]);
  }
  insides_.emplace_back(id, all);
  return all;
}

Ref Body::pad(Id id) {
  const Node& n = g_[id];
  const Ref reads = inside(id);
  Ref x = kNone;
  if (const auto gather = gathers_.find(id); gather != gathers_.end()) {
    const graph::Strides& own = layout_of_(n.in[0]).strides;
    Dim before = 0;
    for (std::size_t d = 0; d < own.size(); ++d) before -= n.attrs[d] * own[d];
    Ref index = nest_.index(b_, gather->second.access);
    if (before != 0) index = b_.compute(Op::Add, Dtype::int64, index, nest_.arg(b_, before));
    x = b_.load(gather->second.buffer, index, reads);
  } else {
    x = value(n.in[0]);  // a constant
  }
  return reads == kNone ? x : b_.compute(Op::Where, n.type.dtype, reads, x, value(n.in[1]));
}

// Threefry 2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). Of the n words, word i < n / 2 is
// the first half of hash(i, i + (n + 1) / 2), whose second half is word i + (n + 1) / 2; an odd middle word is the first of hash(n / 2, 0).
Ref Body::random_bits(Id id) {
  const Node& n = g_[id];
  constexpr Dtype u32 = Dtype::uint32, i64 = Dtype::int64;
  auto literal = [&](std::uint64_t v) { return b_.constant(u32, v); };
  auto op = [&](Op o, Ref x, Ref y) { return b_.compute(o, u32, x, y); };
  const Shape& key_shape = g_[n.in[0]].type.shape;
  std::int64_t width = n.attrs[0], elements = 1;
  for (std::size_t d = key_shape.size() - 1; d < n.type.shape.size(); ++d) elements *= n.type.shape[d];
  std::int64_t words = (elements * width + 3) / 4, half = words / 2, high = half + words % 2;
  check(width == 1 || width == 2 || width == 4, "lower: random_bits of a width that is not 1, 2 or 4");
  Ref element = nest_.index(b_, walks_.at(id)), word = element, per_word = kNone;
  if (width < 4) {
    per_word = b_.index(4 / width);
    word = b_.compute(Op::FloorDivide, i64, element, per_word);
  }
  Ref half_arg = nest_.arg(b_, half), high_arg = nest_.arg(b_, high);
  Ref second = b_.compute(Op::GreaterEqual, i64, word, high_arg);
  Ref first_count = b_.compute(Op::Where, i64, second, b_.compute(Op::Subtract, i64, word, high_arg), word);
  // The odd middle word counts (half, 0); every other pair (i, i + high).
  Ref middle = b_.compute(Op::Equal, i64, first_count, half_arg);
  Ref second_count = b_.compute(Op::Where, i64, middle, b_.index(0), b_.compute(Op::Add, i64, first_count, high_arg));
  Leaf& key = gathers_.at(id);
  Ref k0 = b_.load(key.buffer, nest_.index(b_, key.access));
  Ref k1 = b_.load(key.buffer, b_.compute(Op::Add, i64, nest_.index(b_, key.access), nest_.arg(b_, layout_of_(n.in[0]).strides.back())));
  Ref k2 = op(Op::BitwiseXor, op(Op::BitwiseXor, k0, k1), literal(0x1BD11BDA));
  Ref keys[3] = {k0, k1, k2};
  Ref x = op(Op::Add, b_.cast(first_count, u32), k0), y = op(Op::Add, b_.cast(second_count, u32), k1);
  static constexpr std::uint64_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint64_t r : kRotations[round % 2]) {
      x = op(Op::Add, x, y);
      y = op(Op::BitwiseXor, x, op(Op::BitwiseOr, op(Op::LeftShift, y, literal(r)), op(Op::RightShift, y, literal(32 - r))));
    }
    x = op(Op::Add, x, keys[(round + 1) % 3]);
    y = op(Op::Add, y, op(Op::Add, keys[(round + 2) % 3], literal(round + 1)));
  }
  Ref bits = b_.compute(Op::Where, u32, second, y, x);
  if (width == 4) return bits;
  Ref byte = b_.compute(Op::Multiply, i64, b_.compute(Op::Remainder, i64, element, per_word), b_.index(8 * width));
  return b_.cast(op(Op::RightShift, bits, b_.cast(byte, u32)), n.type.dtype);
}

}  // namespace sinter::kernel
