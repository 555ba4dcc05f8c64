#include "passes/views.h"

#include "base/symbols.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using graph::Type;
using ops::Op;

// The axis of `v.to` along which axis `axis` of `v.from` runs; the others stand still. None if that is not so.
std::optional<std::size_t> axis_after(const View& v, std::size_t axis) {
  const std::size_t n = v.to.size();
  switch (v.op) {
    case Op::Transpose:
      for (std::size_t i = 0; i < n; ++i) {
        if (v.attrs[i] == static_cast<std::int64_t>(axis)) return i;
      }
      return {};
    case Op::Broadcast: {
      const std::size_t i = n - v.from.size() + axis;
      if (v.from[axis] == v.to[i]) return i;
      return {};
    }
    case Op::Reshape:  // all other axes have size 1, so that the elements of the whole are those of this axis
      if (v.from.product() != v.from[axis]) return {};
      for (std::size_t i = 0; i < n; ++i) {
        if (v.to[i] == v.from[axis]) return i;
      }
      return {};
    default: return {};
  }
}

// Reshape that only puts axes of size 1 in front.
bool adds_leading(const View& v) {
  if (v.op != Op::Reshape || v.to.size() < v.from.size()) return false;
  const std::size_t extra = v.to.size() - v.from.size();
  for (std::size_t i = 0; i < v.to.size(); ++i) {
    if (v.to[i] != (i < extra ? Dim(1) : v.from[i - extra])) return false;
  }
  return true;
}

ops::Attrs sizes(const Shape& s) { return ops::Attrs(s.begin(), s.end()); }

}  // namespace

bool changes_nothing(const View& v) {
  // Of a slice only what is certain: whether a part is the whole must not become a question of sizes.
  if (v.op == Op::Slice ? !base::same(v.from, v.to) : v.from != v.to) return false;
  const std::size_t n = v.to.size();
  switch (v.op) {
    case Op::Reshape:
    case Op::Broadcast: return true;
    case Op::Transpose:
      for (std::size_t i = 0; i < n; ++i) {
        if (v.attrs[i] != static_cast<std::int64_t>(i)) return false;
      }
      return true;
    case Op::Slice:  // of all elements, in order
      for (std::size_t i = 0; i < n; ++i) {
        if (v.to[i] > 1 && v.attrs[2 * n + i] != 1) return false;
      }
      return true;
    default: return false;
  }
}

std::optional<View> compose(const View& first, const View& second) {
  if (second.op == Op::Broadcast && adds_leading(first)) return View{Op::Broadcast, second.attrs, first.from, second.to};
  if (first.op != second.op) return {};
  View v{second.op, second.attrs, first.from, second.to};
  const std::size_t n = second.to.size();
  switch (v.op) {
    case Op::Reshape:
    case Op::Broadcast: return v;
    case Op::Transpose:
      for (Dim& a : v.attrs) a = first.attrs[static_cast<std::size_t>(a)];
      return v;
    case Op::Slice:
      for (std::size_t i = 0; i < n; ++i) {
        const Dim start = first.attrs[i], step = first.attrs[2 * n + i];
        v.attrs[i] = v.to[i] == 0 ? Dim(0) : start + second.attrs[i] * step;
        v.attrs[2 * n + i] = v.to[i] <= 1 ? Dim(1) : step * second.attrs[2 * n + i];
      }
      return v;
    default: return {};
  }
}

Id add_view(Graph& g, Id x, View v) {
  for (;;) {
    if (changes_nothing(v)) return x;
    const Node& n = g[x];
    if (graph::is_scalar_constant(n)) return g.add({Op::Constant, {}, n.attrs, {n.type.dtype, v.to}});
    if (n.op == Op::Arange) {
      if (const auto axis = axis_after(v, static_cast<std::size_t>(n.attrs[0]))) {
        return g.add({Op::Arange, n.in, {static_cast<std::int64_t>(*axis)}, {n.type.dtype, v.to}});
      }
    }
    if (!is_view(n.op)) break;
    std::optional<View> both = compose(view_of(g, n), v);
    if (!both) break;
    v = std::move(*both);
    x = n.in[0];
  }
  if (v.op == Op::Reshape || v.op == Op::Broadcast) v.attrs = sizes(v.to);
  return g.add({v.op, {x}, std::move(v.attrs), {g[x].type.dtype, std::move(v.to)}});
}

std::vector<graph::Layout> layouts_of(const Graph& g) {
  std::vector<graph::Layout> layouts;
  for (Id id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    std::optional<graph::Layout> view;
    if (is_view(n.op)) view = graph::view_layout(n.op, n.attrs, n.type.shape, g[n.in[0]].type.shape, layouts[n.in[0]]);
    layouts.push_back(view ? *std::move(view) : graph::Layout{0, graph::row_major(n.type.shape)});
  }
  return layouts;
}

Id product_operand(Graph& target, const Graph& source, Id operand, const std::vector<Id>& copies) {
  std::vector<Id> views;
  for (; is_view(source[operand].op); operand = source[operand].in[0]) views.push_back(operand);
  Id x = copies[operand];
  const Node& n = target[x];
  if (source[operand].op != Op::Input && (is_view(n.op) || n.op == Op::Input)) x = target.add({Op::Copy, {x}, {}, Type(n.type)});
  for (std::size_t i = views.size(); i-- > 0;) {
    Node view = source[views[i]];
    view.in[0] = x;
    x = target.add(std::move(view));
  }
  return x;
}

Graph rewrite_around_products(const Graph& source, FunctionRef<Id(Graph& target, const Node& node)> f) {
  return graph::rewrite_with_source(source, [&](Graph& target, const Node& node, Id id, const std::vector<Id>& copies) -> Id {
    if (!is_product(node.op)) return f(target, node);
    Node product = node;
    for (std::size_t i = 0; i < product.in.size(); ++i) product.in[i] = product_operand(target, source, source[id].in[i], copies);
    return target.add(std::move(product));
  });
}

}  // namespace sinter::passes
