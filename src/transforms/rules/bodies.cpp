#include "transforms/rules/bodies.h"

#include <algorithm>

namespace sinter::transforms {

Sym add_bodies(Graph& g, Op op, std::vector<Id> operands, ops::Attrs attrs, std::vector<Body> bodies) {
  return {&g, g.add({op, std::move(operands), std::move(attrs), {Dtype::bool_, Shape{0}}, std::move(bodies)})};
}
std::vector<Sym> results_of(const Sym& node, std::size_t count) {
  std::vector<Sym> results;
  for (std::size_t i = 0; i < count; ++i) results.push_back(result(node, i));
  return results;
}
std::vector<Sym> tangents_in_place(const Sym& node, const Graph& body) {
  std::vector<Sym> tangents(body.outputs().size());
  const std::vector<std::size_t> outputs = differentiable_outputs(body);
  for (std::size_t i = 0; i < outputs.size(); ++i) tangents[outputs[i]] = result(node, i);
  return tangents;
}
std::vector<Id> ids_of(std::span<const Sym> list) {
  std::vector<Id> ids;
  for (const Sym& s : list) ids.push_back(s.id);
  return ids;
}
Sym zeros(Graph& g, const Type& t) { return literal({&g, 0}, t.dtype, 0, t.shape); }

Slots wanted_slots(const Cotangents& to, std::size_t operand, std::size_t count, std::size_t first) {
  Slots slots;
  for (std::size_t i = 0; i < count; ++i)
    if (to.wanted(operand + i)) slots.push_back(static_cast<std::int64_t>(first + i));
  return slots;
}

Graph gradients_of(const Graph& body, std::span<const std::size_t> outputs, std::span<const std::int64_t> wrt) {
  Graph some = graph::without_prints(body);  // they have been shown
  std::vector<Id> chosen;
  for (std::size_t i : outputs) chosen.push_back(some.outputs()[i]);
  some.set_outputs(std::move(chosen));
  Graph g = vjp(some, wrt);
  g.set_outputs({g.outputs().end() - static_cast<std::ptrdiff_t>(wrt.size()), g.outputs().end()});
  return g;
}

Graph tangents_of(const Graph& body, std::span<const std::int64_t> wrt) {
  Graph g = jvp(graph::without_prints(body), wrt);
  g.set_outputs({g.outputs().begin() + static_cast<std::ptrdiff_t>(body.outputs().size()), g.outputs().end()});
  return g;
}

std::vector<std::size_t> differentiable_outputs(const Graph& body) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < body.outputs().size(); ++i)
    if (is_differentiable(body[body.outputs()[i]].type.dtype)) indices.push_back(i);
  return indices;
}

std::vector<char> reached_carries(const Graph& body, std::size_t first, std::size_t carries, Slots of) {
  std::vector<char> reached(carries, 0);
  for (std::int64_t s : of)
    if (const auto i = static_cast<std::size_t>(s); i >= first && i < first + carries) reached[i - first] = 1;
  for (bool more = true; more;) {
    more = false;
    const std::vector<bool> outputs = depends_on(body, of);
    for (std::size_t i = 0; i < carries; ++i) {
      if (!outputs[i] || reached[i]) continue;
      reached[i] = 1;
      of.push_back(static_cast<std::int64_t>(first + i));
      more = true;
    }
  }
  return reached;
}

std::vector<std::int64_t> batch_axes(std::span<const char> batched) {
  std::vector<std::int64_t> axes;
  for (char b : batched) axes.push_back(b ? 0 : kNotBatched);
  return axes;
}

}  // namespace sinter::transforms
