// Moves reads at other places to operands: take(f(a, b), i) becomes f(take(a, i), take(b, i)), so that f is computed where it is read and
// its result is never stored; pad and the parts of concatenate likewise. Layer: passes.
//
// A pad whose operand is computed becomes where(inside, f(pad(a), pad(b)), value): what f makes of the padding is not taken. A concatenate
// that a kernel reads becomes such a choice between its parts; one that nothing but memory waits for stays, and each part is stored there.
#include <algorithm>

#include "base/symbols.h"
#include "graph/build.h"
#include "graph/group.h"
#include "ops/expand.h"
#include "passes/operand_walk.h"
#include "passes/pass.h"
#include "passes/views.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

constexpr int kStored = 40;             // instructions that take the time of storing an element and loading it again
constexpr std::size_t kMostParts = 4;   // of a concatenate: each element is looked for in all of them
constexpr int kMostSlices = 8;          // of a padded array: each is a load with a condition, which takes longer than one without
constexpr std::int64_t kShortest = 32;  // elements: shorter runs of parts do not fill the lanes

// Of nodes that kernels read at the places that they compute.
std::vector<bool> read_in_kernels(const Graph& g) {
  std::vector<bool> reads(g.size(), false);
  for (Id id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (!graph::is_in_kernel(n)) continue;
    for (std::size_t i = 0; i < n.in.size(); ++i)
      if (!graph::is_read_elsewhere(n.op, i)) reads[n.in[i]] = true;
  }
  return reads;
}

// A slice of a padded array as the padded slice; kKeep where steps are not 1, or nothing of the array is in it.
Id pad_of_slice(Graph& g, const Node& slice) {
  const Node pad = g[slice.in[0]];
  if (pad.op != Op::Pad || base::changes(slice.attrs) || base::changes(pad.attrs) || !g[pad.in[1]].type.shape.empty()) return graph::kKeep;
  const Shape within = g[pad.in[0]].type.shape;
  const std::size_t rank = within.size();
  View inner{Op::Slice, ops::Attrs(3 * rank, 1), within, within};
  ops::Attrs around(2 * rank, 0);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t start = slice.attrs[d], size = slice.attrs[rank + d], low = pad.attrs[d], n = within[d];
    const std::int64_t begin = std::max<std::int64_t>(low - start, 0), end = std::min(size, low + n - start);
    if (slice.attrs[2 * rank + d] != 1 || begin >= end) return graph::kKeep;
    inner.attrs[d] = std::max<std::int64_t>(start - low, 0);
    inner.attrs[rank + d] = inner.to[d] = end - begin;
    around[d] = begin, around[rank + d] = size - end;
  }
  const Id x = add_view(g, pad.in[0], std::move(inner));
  if (g[x].type.shape == slice.type.shape) return x;
  return g.add({Op::Pad, {x, pad.in[1]}, std::move(around), slice.type});
}

// Few slices of a padded array that nothing else reads, as stencils have them: each is computed in the kernel that reads it.
Graph pad_slices(const Graph& source) {
  const std::vector<bool> in_kernels = read_in_kernels(source);
  std::vector<int> others = graph::count_uses(source), slices(source.size(), 0);
  for (Id id = 0; id < source.size(); ++id)
    if (source[id].op == Op::Slice && in_kernels[id]) --others[source[id].in[0]], ++slices[source[id].in[0]];
  return graph::rewrite_with_source(source, [&](Graph& target, const Node& node, Id id, const std::vector<Id>& copies) -> Id {
    if (is_product(node.op)) {
      Node product = node;
      for (std::size_t i = 0; i < product.in.size(); ++i) product.in[i] = product_operand(target, source, source[id].in[i], copies);
      return target.add(std::move(product));
    }
    if (node.op != Op::Slice || !in_kernels[id]) return graph::kKeep;
    const Id pad = source[id].in[0];
    return others[pad] == 0 && slices[pad] <= kMostSlices ? pad_of_slice(target, node) : graph::kKeep;
  });
}

class Sinker {
 public:
  explicit Sinker(const Graph& g)
      : g_(g),
        uses_(graph::count_uses(g)),
        in_kernel_(read_in_kernels(g)),
        stored_(g.size(), false),
        taken_(g.size(), false),
        plans_(g.size()) {}

  Graph run() {
    for (Id id : g_.outputs()) stored_[graph::under_views(g_, id)] = true;
    for (Id id = 0; id < g_.size(); ++id) {
      const Node& n = g_[id];
      const bool kernel = graph::is_in_kernel(n);
      for (std::size_t i = 0; i < n.in.size(); ++i) {
        if (!kernel && !is_view(n.op) && n.op != Op::Concatenate) stored_[graph::under_views(g_, n.in[i])] = true;
      }
    }
    for (Id id = g_.size(); id-- > 0;)
      if (!taken_[id]) plan(id);
    return build();
  }

 private:
  // What one read of an operand takes along, ascending. Empty: the operand is read from memory.
  using Region = std::vector<Id>;
  struct Plan {
    bool chosen = false;  // a concatenate that becomes a choice
    std::vector<Region> regions;
  };

  static std::int64_t elements(const Shape& s) { return base::peek(s.product()); }

  void plan(Id id) {
    const Node& n = g_[id];
    switch (n.op) {
      case Op::Take:
      case Op::TakeAlong:
      case Op::Pad: plans_[id].regions.push_back(grow(id, n.in[0])); return;
      case Op::Concatenate: {
        const Shape& s = n.type.shape;
        std::int64_t run = 1;
        for (std::size_t d = static_cast<std::size_t>(n.attrs[0]); d < s.size(); ++d) run *= base::peek(s[d]);
        if (!in_kernel_[id] || n.in.size() > kMostParts || run < kShortest) return;
        plans_[id].chosen = true;
        for (Id in : n.in) plans_[id].regions.push_back(grow(id, in));
        return;
      }
      default: return;
    }
  }

  // Elementwise nodes that only this read uses, in the operand's shape; none where computing them at each place read takes longer than
  // loading what is stored once, or where one of their operands would have to be stored in their place.
  Region grow(Id reader, Id operand) {
    const Shape& shape = g_[operand].type.shape;
    const std::int64_t stored = elements(shape), more = elements(g_[reader].type.shape) - stored;
    OperandWalk walk;
    Region region, leaves;
    std::int64_t cost = 0;
    for (walk.see(operand); !walk.done();) {
      const Id id = walk.next();
      const Node& n = g_[id];
      const bool moves = (ops::is_elementwise(n.op) || n.op == Op::Cast) && walk.uses(id) == uses_[id];
      if (!moves) {
        leaves.push_back(id);
        continue;
      }
      cost += graph::cost(g_, id);
      if (region.size() >= kMostNodes || (more > 0 && cost * more > kStored * stored)) return {};
      region.push_back(id);
      for (Id in : n.in)
        if (!graph::is_scalar_constant(g_[in]) && !(g_[in].type.shape.empty() && !shape.empty())) walk.see(in);
    }
    for (Id leaf : leaves) {
      const Id made = graph::under_views(g_, leaf);
      if (graph::is_pointwise(g_[made]) && !graph::is_scalar_constant(g_[made]) && !stored_[made]) return {};
    }
    std::reverse(region.begin(), region.end());
    for (Id id : region) taken_[id] = true;
    return region;
  }

  // ---- building ---------------------------------------------------------------------------------------------------------------------

  using Read = FunctionRef<Id(Id x)>;  // of an array of the operand's shape in the target

  // The operand as it is read, in this shape.
  Id read(Id operand, const Region& region, const Shape& shape, Read at) {
    if (region.empty()) return at(copy_[operand]);
    for (Id id : region) {
      Node n = g_[id];
      for (Id& in : n.in) {
        const Node& source = g_[in];
        if (std::binary_search(region.begin(), region.end(), in))
          in = copy_[in];
        else if (source.type.shape.empty() && !n.type.shape.empty())
          in = copy_[in];
        else
          in = graph::is_scalar_constant(source) ? graph::constant(target_, source.type.dtype, source.attrs[0], shape) : at(copy_[in]);
      }
      n.type.shape = shape;
      copy_[id] = target_.add(std::move(n));
    }
    return copy_[operand];
  }

  // x at low in the shape, and there what `other` is elsewhere. What is the same along the axes needs no padding, where anything will do.
  Id place(Id x, const ops::Attrs& attrs, const Shape& shape, Id other, bool anything) {
    const Node n = target_[x];
    if (anything && graph::is_scalar_constant(n)) return graph::constant(target_, n.type.dtype, n.attrs[0], shape);
    if (anything && n.op == Op::Broadcast) {
      const Shape& from = target_[n.in[0]].type.shape;
      const std::size_t lead = shape.size() - from.size();
      bool same = true;
      for (std::size_t d = 0; d < shape.size(); ++d)
        same = same && (base::same(n.type.shape[d], shape[d]) || d < lead || base::same(from[d - lead], 1));
      if (same) return graph::broadcast(target_, n.in[0], shape);
    }
    return target_.add({Op::Pad, {x, other}, attrs, {n.type.dtype, shape}});
  }
  Id place_anything(Id x, const ops::Attrs& attrs, const Shape& shape) {
    return place(x, attrs, shape, graph::constant(target_, target_[x].type.dtype, 0), true);
  }
  Id inside(const Shape& part, const ops::Attrs& attrs, const Shape& shape) {
    const Id no = graph::constant(target_, Dtype::bool_, 0);
    return place(graph::constant(target_, Dtype::bool_, 1, part), attrs, shape, no, false);
  }
  // The operand at low in the shape, `other` elsewhere.
  Id choose(Id operand, const Region& region, const ops::Attrs& attrs, const Shape& shape, Id other) {
    if (region.empty()) return place(copy_[operand], attrs, shape, other, false);
    const Id x = read(operand, region, shape, [&](Id leaf) { return place_anything(leaf, attrs, shape); });
    return graph::elementwise(target_, Op::Where, {inside(g_[operand].type.shape, attrs, shape), x, other});
  }

  Id concatenate(const Node& n, const std::vector<Region>& regions) {
    const Shape& shape = n.type.shape;
    const auto axis = static_cast<std::size_t>(n.attrs[0]);
    Dim behind = 0;
    Id chosen = graph::kKeep;
    for (std::size_t i = n.in.size(); i-- > 0;) {
      const Dim size = g_[n.in[i]].type.shape[axis];
      ops::Attrs attrs(2 * shape.size(), 0);
      attrs[axis] = shape[axis] - size - behind;
      attrs[shape.size() + axis] = behind;
      if (chosen == graph::kKeep)
        chosen = read(n.in[i], regions[i], shape, [&](Id leaf) { return place_anything(leaf, attrs, shape); });
      else
        chosen = choose(n.in[i], regions[i], attrs, shape, chosen);
      behind += size;
    }
    return chosen;
  }

  // What `like` takes of its operand, of x; which is the same everywhere if x is the same along the axis.
  Id take(Id x, const Node& like) {
    const Node n = target_[x];
    const Shape& shape = like.type.shape;
    if (n.op == Op::Broadcast) {
      const Shape& from = target_[n.in[0]].type.shape;
      const std::size_t axis = static_cast<std::size_t>(like.attrs[0]), lead = n.type.shape.size() - from.size();
      if (axis < lead || (shape.size() == n.type.shape.size() && base::same(from[axis - lead], 1)))
        return graph::broadcast(target_, n.in[0], shape);
    }
    return target_.add({like.op, {x, copy_[like.in[1]]}, like.attrs, {n.type.dtype, shape}});
  }

  Id build_node(Id id) {
    Node n = g_[id];
    const Plan& plan = plans_[id];
    if (plan.chosen) return concatenate(n, plan.regions);
    if (is_product(n.op)) {
      for (Id& in : n.in) in = product_operand(target_, g_, in, copy_);
      return target_.add(std::move(n));
    }
    if (!plan.regions.empty() && !plan.regions[0].empty()) {
      const Region& region = plan.regions[0];
      if (n.op == Op::Pad) return choose(n.in[0], region, n.attrs, n.type.shape, copy_[n.in[1]]);
      return read(n.in[0], region, n.type.shape, [&](Id leaf) { return take(leaf, n); });
    }
    for (Id& in : n.in) in = copy_[in];
    return target_.add(std::move(n));
  }

  Graph build() {
    target_.name = g_.name;
    target_.reserve(g_.size());
    copy_.assign(g_.size(), graph::kKeep);
    for (Id id = 0; id < g_.size(); ++id)
      if (!taken_[id]) copy_[id] = build_node(id);
    std::vector<Id> outputs = g_.outputs();
    for (Id& id : outputs) id = copy_[id];
    target_.set_outputs(std::move(outputs));
    return std::move(target_);
  }

  static constexpr std::size_t kMostNodes = 64;  // of a region: growing it takes time quadratic in them
  const Graph& g_;
  std::vector<int> uses_;
  std::vector<bool> in_kernel_;  // a kernel reads it at the places that it computes
  std::vector<bool> stored_;     // in any case: it, or a view of it, is an output, or read by what is no kernel
  std::vector<bool> taken_;      // it is built where it is read
  std::vector<Plan> plans_;
  Graph target_;
  std::vector<Id> copy_;
};

}  // namespace

Graph sink_reads(const Graph& g, Context& context) { return Sinker(drop_dead(pad_slices(g), context)).run(); }

}  // namespace sinter::passes
