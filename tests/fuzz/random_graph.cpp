#include "fuzz/random_graph.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "fuzz/sizes.h"
#include "graph/bodies.h"
#include "graph/build.h"

namespace sinter::fuzz {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;
using ops::OpKind;

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  Graph run(int size) {
    int inputs = 1 + pick(4);
    Shape base = shape();
    for (int i = 0; i < inputs; ++i) {
      Shape s = pick(4) == 0 ? Shape{} : pick(3) == 0 ? shape() : base;
      pool_.push_back(g_.add({Op::Input, {}, {i}, {dtype(), s}}));
    }
    while (static_cast<int>(pool_.size()) < size) {
      Id before = g_.size();
      Id made = step();
      if (made >= before && elements(made) <= kMostElements) pool_.push_back(made);
      if (++tries_ > 50 * size) break;
    }
    std::vector<Id> outputs{pool_.back()};
    for (int i = pick(5); i > 0; --i) outputs.push_back(any());
    g_.set_outputs(outputs);
    return graph::rewrite(g_, [](Graph&, const Node&) { return graph::kKeep; });
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  Id any() { return pool_[static_cast<std::size_t>(pick(static_cast<int>(pool_.size())))]; }
  Id recent() { return pool_[pool_.size() - 1 - static_cast<std::size_t>(pick(std::min<int>(4, static_cast<int>(pool_.size()))))]; }
  const graph::Type& type(Id id) const { return g_[id].type; }
  std::int64_t elements(Id id) const { return type(id).shape.product(); }
  Dtype dtype() { return pick(3) == 0 ? static_cast<Dtype>(pick(kDtypeCount)) : Dtype::float32; }
  Shape shape() {
    Shape s;
    for (std::int64_t n : sizes_.of(static_cast<std::size_t>(pick(4)))) s.push_back(n);
    return s;
  }
  // Whether an array of shape `from` may be broadcast to `s`.
  static bool spreads(const Shape& from, const Shape& s) {
    if (from.size() > s.size()) return false;
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != 1 && from[i] != s[s.size() - from.size() + i]) return false;
    return true;
  }
  // Something of this shape (or 0-d), of this dtype; now and then broadcast to it.
  Id like(const Shape& s, Dtype t) {
    std::vector<Id> fits;
    const bool wider = pick(2) == 0;
    for (Id id : pool_)
      if (type(id).shape == s || type(id).shape.empty() || (wider && spreads(type(id).shape, s))) fits.push_back(id);
    std::int64_t n = s.product();
    if (n > 1 && n <= 16 && pick(4) == 0) {
      ops::Attrs bits;
      for (std::int64_t i = 0; i < n; ++i) bits.push_back(t == Dtype::bool_ ? random_() & 1 : random_() & 3);
      return g_.add({Op::Constant, {}, bits, {t, s}});
    }
    if (fits.empty() || pick(6) == 0)
      return graph::constant(g_, t,
                             t == Dtype::bool_     ? random_() & 1
                             : t == Dtype::float32 ? 0x3F800000u + (random_() & 0x7FFFFF)
                                                   : random_() & 3);
    const Id id = graph::cast(g_, fits[static_cast<std::size_t>(pick(static_cast<int>(fits.size())))], t);
    return type(id).shape.empty() ? id : broadcast_to(id, s);
  }

  Id step() {
    const Id x = pick(3) ? recent() : any();
    int kind = pick(15);
    while (off_ >> kind & 1) kind = pick(15);
    switch (kind) {
      case 0: return view(x);
      case 1: return view(x);
      case 2: return reduce(x);
      case 3: return graph::cast(g_, x, dtype());
      case 4: return gather(x);
      case 5: return join(x);
      case 6: return pick(3) == 0 ? product(x) : elementwise(x);
      case 7: return cumulative(x);
      case 8: return spread(x);
      case 9: return region(x);
      default: return elementwise(x);
    }
  }

  Op any_of(OpKind kind) {
    std::vector<Op> all;
    for (std::size_t i = 0; i < ops::all_ops().size(); ++i)
      if (ops::all_ops()[i].kind == kind) all.push_back(static_cast<Op>(i));
    return all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }
  Id elementwise(Id x) {
    const Op op = any_of(OpKind::Elementwise);
    Shape s = type(x).shape;
    std::vector<Dtype> dtypes(static_cast<std::size_t>(ops::info(op).operands), type(x).dtype);
    if (op == Op::Where) dtypes[0] = Dtype::bool_;
    Dtype compute;
    try {
      compute = ops::elementwise_type(op, dtypes).compute;
    } catch (const Error&) {
      return x;
    }
    std::vector<Id> in;
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      Dtype t = op == Op::Where && i == 0 ? Dtype::bool_ : compute;
      in.push_back(i == 0 ? graph::cast(g_, x, t) : like(s, t));
    }
    return graph::elementwise(g_, op, in);
  }

  Id view(Id x) {
    Shape s = type(x).shape;
    std::int64_t rank = static_cast<std::int64_t>(s.size());
    switch (pick(5)) {
      case 0: {
        ops::Attrs axes;
        for (std::int64_t i = 0; i < rank; ++i) axes.push_back(i);
        std::shuffle(axes.begin(), axes.end(), random_);
        return rank < 2 ? x : graph::transpose(g_, x, axes);
      }
      case 1: {
        std::int64_t n = s.product();
        Shape to;
        for (std::int64_t d : {2, 3, 5})
          if (n > 0 && n % d == 0 && pick(2)) {
            to.push_back(d);
            n /= d;
          }
        to.insert(static_cast<std::size_t>(pick(static_cast<int>(to.size()) + 1)), n);
        return graph::reshape(g_, x, to);
      }
      case 2: {
        for (std::size_t d = 0; d < s.size(); ++d)
          if (s[d] == 1 && pick(2)) s[d] = 3;
        if (pick(2) && s.size() < 4) s.insert(0, 2);
        return graph::broadcast(g_, x, s);
      }
      default: {
        if (rank == 0) return x;
        ops::Attrs start, size, step;
        Shape out;
        for (std::int64_t d = 0; d < rank; ++d) {
          std::int64_t n = s[static_cast<std::size_t>(d)], by = pick(3) == 0 ? -1 - pick(2) : 1 + pick(2);
          std::int64_t first = n == 0 ? 0 : pick(static_cast<int>(n)), room = n == 0   ? 0
                                                                              : by > 0 ? (n - 1 - first) / by + 1
                                                                                       : first / -by + 1;
          std::int64_t count = room == 0 ? 0 : 1 + pick(static_cast<int>(room));
          if (pick(3) == 0) first = 0, by = 1, count = n;
          start.push_back(first), size.push_back(count), step.push_back(by);
          out.push_back(count);
        }
        start.insert(start.end(), size.begin(), size.end());
        start.insert(start.end(), step.begin(), step.end());
        return g_.add({Op::Slice, {x}, start, {type(x).dtype, out}});
      }
    }
  }

  Id reduce(Id x) {
    const Shape s = type(x).shape;
    ops::Attrs axes;
    bool empty = false;
    const std::uint32_t reduced = pick(3) ? reduced_ : random_();
    for (std::size_t d = 0; d < s.size(); ++d)
      if (reduced >> d & 1) {
        axes.push_back(static_cast<std::int64_t>(d));
        empty = empty || s[d] == 0;
      }
    if (axes.empty()) return x;
    Dtype t = type(x).dtype;
    switch (pick(7)) {
      case 0: return graph::reduce(g_, pick(2) ? Op::All : Op::Any, x, axes, Dtype::bool_);
      case 1:
      case 2:
        if (empty || is_complex(t)) return x;
        return graph::reduce(g_, pick(2) ? Op::Max : Op::Min, x, axes, t);
      case 3: {
        if (empty || is_complex(t)) return x;
        if (axes.size() > 1) {
          axes.clear();
          for (std::size_t d = 0; d < s.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
          if (s.product() == 0) return x;
        }
        return graph::reduce(g_, pick(2) ? Op::ArgMax : Op::ArgMin, x, axes, Dtype::uint32);
      }
      default: {
        Dtype result =
            t == Dtype::bool_ || (is_integer(t) && size_of(t) < 4) ? (kind(t) == Kind::Unsigned ? Dtype::uint32 : Dtype::int32) : t;
        return graph::reduce(g_, pick(4) ? Op::Sum : Op::Prod, x, axes, result);
      }
    }
  }

  // Any operation of the kind; one of two operands takes something else for the second.
  Id cumulative(Id x) {
    const Shape s = type(x).shape;
    const Dtype t = type(x).dtype;
    const Op op = any_of(OpKind::Cumulative);
    if (s.empty() || (op == Op::LogCumSumExp && !is_floating(t)) || ((op == Op::CumMax || op == Op::CumMin) && is_complex(t))) return x;
    ops::Attrs attrs{pick(static_cast<int>(s.size())), pick(2)};
    std::vector<Id> in{x};
    if (ops::info(op).operands == 2)
      in.push_back(broadcast_to(like(s, t), s));
    else
      attrs.push_back(pick(2));
    return g_.add({op, std::move(in), std::move(attrs), type(x)});
  }
  Id broadcast_to(Id x, const Shape& s) { return type(x).shape == s ? x : graph::broadcast(g_, x, s); }
  // Something that a reduction gives for each place, at all of the places again, next to what was reduced: rows, or columns.
  Id spread(Id x) {
    const Shape s = type(x).shape;
    const Id r = reduce(x);
    if (r == x || s.product() == 0 || type(r).shape.size() == s.size()) return x;
    const ops::Attrs& attrs = g_[r].attrs;
    Shape kept = s;
    for (std::size_t i = 1; i < attrs.size(); ++i) kept[static_cast<std::size_t>(attrs[i])] = 1;
    Id y = graph::cast(g_, graph::reshape(g_, r, kept), pick(3) ? type(x).dtype : type(r).dtype);
    if (pick(2)) y = elementwise(y);
    if (type(y).shape != kept) return y;
    pool_.push_back(y);
    y = graph::broadcast(g_, y, s);
    pool_.push_back(y);
    return elementwise(pick(2) ? x : y);
  }

  Id gather(Id x) {
    const Shape s = type(x).shape;
    if (s.empty() || s.product() == 0) return x;
    std::size_t axis = static_cast<std::size_t>(pick(static_cast<int>(s.size())));
    if (pick(6) == 0 && !is_complex(type(x).dtype)) {
      const Id order = g_.add({Op::ArgSort, {x}, {static_cast<std::int64_t>(axis)}, {Dtype::uint32, s}});
      return pick(2) ? order : g_.add({Op::TakeAlong, {x, order}, {static_cast<std::int64_t>(axis)}, type(x)});
    }
    if (pick(2)) {
      if (!indices_ || pick(3)) indices_ = graph::cast(g_, any(), pick(2) ? Dtype::int32 : Dtype::uint8);
      const Id index = *indices_;  // often those of another read, which may be along another axis
      Shape out;
      for (std::size_t d = 0; d < s.size(); ++d) {
        if (d != axis)
          out.push_back(s[d]);
        else
          for (const Dim& n : type(index).shape) out.push_back(n);
      }
      if (out.size() > 5) return x;
      return g_.add({Op::Take, {x, index}, {static_cast<std::int64_t>(axis)}, {type(x).dtype, out}});
    }
    for (Id id : pool_)
      if (type(id).shape == s && id != x) {
        Id index = graph::cast(g_, id, Dtype::int32);
        if (pick(3) == 0)
          return g_.add({pick(2) ? Op::ScatterAdd : Op::PutAlong,
                         {x, index, graph::cast(g_, id, type(x).dtype)},
                         {static_cast<std::int64_t>(axis)},
                         type(x)});
        return g_.add({Op::TakeAlong, {x, index}, {static_cast<std::int64_t>(axis)}, type(x)});
      }
    return x;
  }

  Id join(Id x) {
    const Shape s = type(x).shape;
    Dtype t = type(x).dtype;
    if (s.empty()) {
      Id start = graph::cast(g_, x, Dtype::float32), step = graph::constant(g_, Dtype::float32, 0x3F000000);
      return g_.add({Op::Arange, {start, step}, {0}, {Dtype::float32, Shape{1 + pick(40)}}});
    }
    std::size_t axis = static_cast<std::size_t>(pick(static_cast<int>(s.size())));
    if (pick(2)) {
      std::vector<Id> in{x, x};
      Shape out = s;
      out[axis] *= 2;
      for (Id id : pool_)
        if (type(id) == type(x) && id != x) {
          in.push_back(id);
          out[axis] += s[axis];
          break;
        }
      return g_.add({Op::Concatenate, in, {static_cast<std::int64_t>(axis)}, {t, out}});
    }
    ops::Attrs low, high;
    Shape out = s;
    for (std::size_t d = 0; d < s.size(); ++d) {
      low.push_back(pick(3)), high.push_back(pick(3));
      out[d] += low.back() + high.back();
    }
    low.insert(low.end(), high.begin(), high.end());
    return g_.add({Op::Pad, {x, like(Shape{}, t)}, low, {t, out}});
  }

  Id product(Id x) {
    const Shape s = type(x).shape;
    if (s.size() < 2) return x;
    ops::Attrs axes;
    for (std::size_t d = 0; d < s.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    Id y = graph::transpose(g_, x, axes);
    Shape out = s;
    out[s.size() - 1] = s[s.size() - 2];
    if (out.product() > kMostElements) return x;
    const Id p = g_.add({Op::Matmul, {x, y}, {}, {type(x).dtype, out}});
    const Dtype t = type(x).dtype;
    if (pick(3) || (!is_floating(t) && !is_complex(t))) return p;
    // Of a matrix that has an inverse: x x^T + 1.
    const Id zero = graph::constant(g_, Dtype::int32, 0), one = graph::constant(g_, Dtype::int32, 1);
    const auto walk = [&](std::size_t from_last) {
      return g_.add({Op::Arange, {zero, one}, {static_cast<std::int64_t>(s.size() - from_last)}, {Dtype::int32, out}});
    };
    const Id unit = graph::cast(g_, graph::elementwise(g_, Op::Equal, {walk(1), walk(2)}), t);
    return g_.add({Op::Solve, {graph::elementwise(g_, Op::Add, {p, unit}), x}, {}, type(x)});
  }

  // A graph that takes these and gives those types.
  Graph body(std::span<const graph::Type> inputs, std::span<const graph::Type> outputs) {
    for (const graph::Type& t : inputs) pool_.push_back(g_.add({Op::Input, {}, {static_cast<std::int64_t>(pool_.size())}, t}));
    for (int i = 1 + pick(4); i > 0; --i) {
      Id made = step();
      if (elements(made) <= kMostElements) pool_.push_back(made);
    }
    std::vector<Id> results;
    for (const graph::Type& t : outputs) {
      std::vector<Id> fits;
      for (Id id : pool_)
        if (type(id).shape == t.shape) fits.push_back(id);
      Id id = fits.empty() ? like(t.shape, t.dtype)
                           : graph::cast(g_, fits[static_cast<std::size_t>(pick(static_cast<int>(fits.size())))], t.dtype);
      results.push_back(graph::broadcast(g_, id, t.shape));
    }
    g_.set_outputs(std::move(results));
    return graph::rewrite(g_, [](Graph&, const Node&) { return graph::kKeep; });
  }
  Graph body_like(std::span<const graph::Type> inputs, std::span<const graph::Type> outputs) {
    Generator inner(random_());
    inner.depth_ = depth_ + 1;
    return inner.body(inputs, outputs);
  }
  // A graph like that without branches and loops.
  Graph part_like(std::span<const graph::Type> inputs, std::span<const graph::Type> outputs) {
    Generator inner(random_());
    inner.depth_ = 2;
    return inner.body(inputs, outputs);
  }
  // Of x, rows in parts and all of them: rows in parts, and a sum. The parts are of one size, up to the first; maybe there are none such.
  Node blocks(Id x) {
    const graph::Type t = type(x);
    const std::int64_t rows = t.shape[1], size = 1 + pick(static_cast<int>(rows)), rest = rows % size;
    Node n{Op::Blocks, {x, x}, {1, 1, 1, 0, rows, rows}, {Dtype::bool_, Shape{0}}};
    const auto add = [&](std::int64_t count, std::int64_t start, std::int64_t each) {
      n.attrs.insert(n.attrs.end(), {count, start, each, 0, rows, start, each, 0, rows});
      const graph::Type part = graph::window_type(t, 1, each), all = graph::window_type(t, 1, rows);
      n.bodies.push_back(part_like(std::vector{part, all}, std::vector{part, graph::Type{Dtype::float32, all.shape}}));
    };
    if (rest > 0 || pick(4) == 0) add(rest > 0, rows - rest, rest);
    add(rows / size, 0, size);
    return n;
  }
  // A checkpoint, a branch, blocks, or a scan over x; all results enter the pool.
  Id region(Id x) {
    if (depth_ > 1 || elements(x) > 512) return x;
    const Id y = any();
    const graph::Type tx = type(x), ty = type(y);
    if (elements(y) > 512) return x;
    Node n{Op::Checkpoint, {x, y}, {}, {Dtype::bool_, Shape{0}}};
    const std::vector<graph::Type> both{tx, ty};
    switch (pick(4)) {
      case 0: n.bodies = {body_like(both, both)}; break;
      case 2: {
        if (tx.shape.size() < 2 || tx.shape[1] < 2) return x;
        n = blocks(x);
        break;
      }
      case 1: {
        n.op = Op::Cond;
        n.in.insert(n.in.begin(), like(Shape{}, Dtype::bool_));
        const graph::Body yes = body_like(both, both), no = body_like(both, both);
        n.bodies = {yes, no};
        break;
      }
      default: {
        if (tx.shape.empty() || tx.shape[0] > 7) return x;
        const graph::Type element = graph::element_of(tx);
        n = {Op::Scan, {y, y, x}, {1, 1, tx.shape[0], pick(2)}, {Dtype::bool_, Shape{0}}};
        n.bodies = {body_like(std::vector{ty, ty, element}, std::vector{ty, element})};
      }
    }
    const Id node = g_.add(std::move(n));
    const std::size_t results = graph::result_types(g_, g_[node]).size();
    for (std::size_t i = 1; i < results; ++i) pool_.push_back(graph::result(g_, node, i));
    return graph::result(g_, node, 0);
  }

  int depth_ = 0;
  std::mt19937 random_;
  Sizes sizes_{random_};
  const std::uint32_t reduced_ = random_();  // the axes of most reductions, by bits: those along the same ones share a kernel
  // Kinds of steps, by bits, that the graph goes without: half of the graphs have few kinds, which meet more often.
  const std::uint32_t off_ = pick(2) ? 0 : (random_() | random_()) & 0x3FF;
  Graph g_;
  std::vector<Id> pool_;
  std::optional<Id> indices_;
  int tries_ = 0;
};

}  // namespace

Graph random_graph(std::uint32_t seed, int size) { return Generator(seed).run(size); }

}  // namespace sinter::fuzz
