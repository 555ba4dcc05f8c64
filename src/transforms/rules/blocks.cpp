// Blocks: derivatives are blocks again, which compute the values anew, and a batch is one more axis of the grid. Layer: transforms.
#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

using graph::BlocksParts;

namespace {

using WindowOf = FunctionRef<BlocksParts::Window(std::size_t body)>;

// Blocks on the same grid, as many.
class NewBlocks {
 public:
  NewBlocks(std::size_t grid, const BlocksParts& like) : grid_(grid), parts_(like), windows_(like.bodies) {}
  void operand(Id id, bool cut, WindowOf window) {
    operands_.push_back(id);
    cut_.push_back(Dim(int{cut}));
    add(window);
  }
  // Those that are sums come last.
  void result(const Dim& extent, bool is_sum, WindowOf window) {
    extents_.push_back(extent);
    sums_ += is_sum;
    add(window);
  }
  Sym finish(Graph& g, std::vector<Body> bodies) {
    ops::Attrs attrs{static_cast<std::int64_t>(grid_), sums_};
    const auto append = [&](const ops::Attrs& more) { attrs.insert(attrs.end(), more.begin(), more.end()); };
    append(cut_), append(extents_);
    for (std::size_t b = 0; b < windows_.size(); ++b) attrs.push_back(parts_.count(b)), append(windows_[b]);
    return add_bodies(g, Op::Blocks, std::move(operands_), std::move(attrs), std::move(bodies));
  }

 private:
  void add(WindowOf window) {
    for (std::size_t b = 0; b < windows_.size(); ++b) {
      const auto [start, size] = window(b);
      windows_[b].insert(windows_[b].end(), {start, size});
    }
  }
  const std::size_t grid_;
  const BlocksParts& parts_;
  std::int64_t sums_ = 0;
  std::vector<Id> operands_;
  ops::Attrs cut_, extents_;
  std::vector<ops::Attrs> windows_;  // by body
};

}  // namespace

// The gradient of an operand that is cut into parts comes in parts, that of another as a sum; halves are added up in float32.
void Blocks::vjp(const Call& c, std::span<const Sym> g, Cotangents& to) {
  const BlocksParts p(c.node);
  Graph& all = *c.graph;
  std::vector<std::size_t> outputs, cut, summed;  // results with a cotangent; operands whose gradients are wanted
  for (std::size_t i = 0; i < g.size(); ++i)
    if (g[i]) outputs.push_back(i);
  for (std::size_t i = 0; i < p.operands; ++i)
    if (to.wanted(i)) (p.is_cut(i) ? cut : summed).push_back(i);
  Slots wrt;
  for (const auto* list : {&cut, &summed})
    for (std::size_t i : *list) wrt.push_back(static_cast<std::int64_t>(i));
  if (wrt.empty()) return;

  NewBlocks back(p.grid, p);
  for (std::size_t i = 0; i < p.operands; ++i) back.operand(c.node.in[i], p.is_cut(i), [&](std::size_t b) { return p.operand(b, i); });
  for (std::size_t i : outputs) back.operand(g[i].id, !p.is_sum(i), [&](std::size_t b) { return p.result(b, i); });
  for (const auto* list : {&cut, &summed})
    for (std::size_t i : *list) back.result(c.in(i).size(p.grid), list == &summed, [&](std::size_t b) { return p.operand(b, i); });
  std::vector<Body> bodies;
  for (const Body& body : c.node.bodies) {
    NewBody b(body->name + "_back");
    const Graph gradients = gradients_of(*body, outputs, wrt);
    std::vector<Id> in;
    const std::vector<Id> like = graph::inputs_of(gradients);
    for (std::size_t i = 0; i < p.operands + outputs.size(); ++i) in.push_back(b.input(gradients[like[i]].type));
    std::vector<Id> results = graph::inline_body(b.g, gradients, in);
    for (std::size_t k = cut.size(); k < results.size(); ++k) {
      const Sym more{&b.g, results[k]};
      results[k] = cast(more, wide_dtype(more.dtype())).id;
    }
    bodies.push_back(b.finish(std::move(results)));
  }
  const Sym node = back.finish(all, std::move(bodies));
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    const auto i = static_cast<std::size_t>(wrt[k]);
    to.add(i, cast(sum_to(result(node, k), c.in(i).shape()), c.in(i).dtype()));
  }
}

std::vector<Sym> Blocks::jvp(const Call& c, std::span<const Sym> t) {
  const BlocksParts p(c.node);
  NewBlocks along(p.grid, p);
  Slots given;
  for (std::size_t i = 0; i < p.operands; ++i) along.operand(c.node.in[i], p.is_cut(i), [&](std::size_t b) { return p.operand(b, i); });
  for (std::size_t i = 0; i < p.operands; ++i) {
    if (!t[i]) continue;
    given.push_back(static_cast<std::int64_t>(i));
    along.operand(t[i].id, p.is_cut(i), [&](std::size_t b) { return p.operand(b, i); });
  }
  for (std::size_t i : differentiable_outputs(*c.node.bodies[0]))
    along.result(p.extent(i), p.is_sum(i), [&](std::size_t b) { return p.result(b, i); });
  std::vector<Body> bodies;
  for (const Body& body : c.node.bodies) bodies.push_back(tangents_of(*body, given));
  return tangents_in_place(along.finish(*c.graph, std::move(bodies)), *c.node.bodies[0]);
}

std::vector<Sym> Blocks::batch(const BatchCall& c) {
  const BlocksParts p(c.node);
  NewBlocks more(p.grid + 1, p);
  for (std::size_t i = 0; i < p.operands; ++i) {
    Sym x = c.in(i);
    if (!c.is_batched(i)) {
      Shape s = x.shape();
      s.insert(0, 1);
      x = reshape(x, s);
    }
    more.operand(x.id, p.is_cut(i), [&](std::size_t b) { return p.operand(b, i); });
  }
  for (std::size_t i = 0; i < p.results; ++i) more.result(p.extent(i), p.is_sum(i), [&](std::size_t b) { return p.result(b, i); });
  return results_of(more.finish(*c.graph, c.node.bodies), p.results);
}

}  // namespace sinter::transforms::rules
