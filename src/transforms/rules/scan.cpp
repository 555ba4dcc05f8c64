// Scan: going back is a scan in the other direction over the carries with which each step began; a step is computed again on the way.
// Layer: transforms.
#include <algorithm>

#include "transforms/rules/bodies.h"

namespace sinter::transforms::rules {

using graph::ScanParts;

namespace {

// Indices 0, ..., count - 1, moved by `by`, for which `f` holds.
template <class F>
std::vector<std::size_t> chosen(std::size_t count, F f) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < count; ++i)
    if (f(i)) indices.push_back(i);
  return indices;
}
Slots slots_from(std::size_t first, const std::vector<std::size_t>& indices) {
  Slots slots;
  for (std::size_t i : indices) slots.push_back(static_cast<std::int64_t>(first + i));
  return slots;
}

}  // namespace

// The scan back carries the cotangents of the carries and the sums of the cotangents of the constants, halves in float32.
void Scan::vjp(const Call& c, std::span<const Sym> g, Cotangents& to) {
  const ScanParts p(c.node);
  const Graph& body = *c.node.bodies[0];
  Graph& all = *c.graph;
  auto type_of = [&](std::size_t operand) { return Type(all[c.node.in[operand]].type); };
  auto cotangent = [&](std::size_t result) { return result < g.size() ? g[result] : kZero; };

  const auto carries = chosen(p.carries, [&](std::size_t i) { return is_differentiable(type_of(p.constants + i).dtype); });
  const auto constants = chosen(p.constants, [&](std::size_t i) { return to.wanted(i); });
  const auto sequences = chosen(p.sequences, [&](std::size_t i) { return to.wanted(p.constants + p.carries + i); });
  const auto outputs = chosen(p.outputs, [&](std::size_t i) { return static_cast<bool>(cotangent(p.carries + i)); });
  const auto begins = chosen(p.carries, [&](std::size_t i) { return static_cast<bool>(cotangent(p.carries + p.outputs + i)); });

  // Operands: constants; cotangents of carries, sums; carries at each step, sequences, cotangents of outputs and of the carries at each
  // step.
  std::vector<Id> operands(c.node.in.begin(), c.node.in.begin() + static_cast<std::ptrdiff_t>(p.constants));
  for (std::size_t i : carries) operands.push_back((cotangent(i) ? cotangent(i) : zeros(all, type_of(p.constants + i))).id);
  for (std::size_t i : constants) {
    Type wide = type_of(i);
    wide.dtype = wide_dtype(wide.dtype);
    operands.push_back(zeros(all, wide).id);
  }
  for (std::size_t i = 0; i < p.carries; ++i) operands.push_back(graph::result(all, c.id, p.carries + p.outputs + i));
  append(operands, part(c.node.in, p.constants + p.carries, p.sequences));
  for (std::size_t i : outputs) operands.push_back(cotangent(p.carries + i).id);
  for (std::size_t i : begins) operands.push_back(cotangent(p.carries + p.outputs + i).id);

  NewBody back(body.name + "_back");
  std::vector<Id> in;
  const std::size_t whole = p.constants + carries.size() + constants.size();
  for (std::size_t i = 0; i < operands.size(); ++i)
    in.push_back(back.input(i < whole ? Type(all[operands[i]].type) : graph::element_of(all[operands[i]].type)));
  std::vector<std::size_t> of = carries;
  for (std::size_t i : outputs) of.push_back(p.carries + i);
  Slots wrt = slots_from(p.constants, carries);
  for (std::int64_t s : slots_from(0, constants)) wrt.push_back(s);
  for (std::int64_t s : slots_from(p.constants + p.carries, sequences)) wrt.push_back(s);
  std::vector<Id> inputs;
  append(inputs, part(in, 0, p.constants));
  append(inputs, part(in, whole, p.carries + p.sequences));
  append(inputs, part(in, p.constants, carries.size()));
  append(inputs, part(in, whole + p.carries + p.sequences, outputs.size()));
  std::vector<Id> results = graph::inline_body(back.g, gradients_of(body, of, wrt), inputs);
  for (std::size_t k = 0; k < begins.size(); ++k) {
    const auto at = static_cast<std::size_t>(std::find(carries.begin(), carries.end(), begins[k]) - carries.begin());
    results[at] = (Sym{&back.g, results[at]} + Sym{&back.g, in[in.size() - begins.size() + k]}).id;
  }
  for (std::size_t k = 0; k < constants.size(); ++k) {
    const Sym sum{&back.g, in[p.constants + carries.size() + k]}, more{&back.g, results[carries.size() + k]};
    results[carries.size() + k] = (sum + cast(more, sum.dtype())).id;
  }
  const Sym scan = add_bodies(all, Op::Scan, std::move(operands),
                              {static_cast<std::int64_t>(p.constants), static_cast<std::int64_t>(carries.size() + constants.size()),
                               p.length, Dim(int{!p.reverse})},
                              {back.finish(std::move(results))});
  for (std::size_t k = 0; k < carries.size(); ++k) to.add(p.constants + carries[k], result(scan, k));
  for (std::size_t k = 0; k < constants.size(); ++k)
    to.add(constants[k], cast(result(scan, carries.size() + k), type_of(constants[k]).dtype));
  for (std::size_t k = 0; k < sequences.size(); ++k)
    to.add(p.constants + p.carries + sequences[k], result(scan, carries.size() + constants.size() + k));
}

std::vector<Sym> Scan::jvp(const Call& c, std::span<const Sym> t) {
  const ScanParts p(c.node);
  const Graph& body = *c.node.bodies[0];
  Graph& all = *c.graph;
  const std::size_t operands_count = c.node.in.size();
  const auto given = chosen(operands_count, [&](std::size_t i) { return static_cast<bool>(t[i]); });
  const std::vector<char> moved = reached_carries(body, p.constants, p.carries, slots_from(0, given));
  auto is_active = [&](std::size_t i) {
    if (i < p.constants || i >= p.constants + p.carries) return static_cast<bool>(t[i]);
    return moved[i - p.constants] && is_differentiable(all[c.node.in[i]].type.dtype);
  };
  const auto active = chosen(operands_count, is_active);

  // Each part with its tangents behind it.
  std::vector<Id> operands;
  std::vector<std::size_t> primal, along;  // places among the operands
  std::size_t counts[3] = {0, 0, 0};
  const std::size_t begins[4] = {0, p.constants, p.constants + p.carries, operands_count};
  for (std::size_t k = 0; k < 3; ++k) {
    const std::size_t before = operands.size();
    for (std::size_t i = begins[k]; i < begins[k + 1]; ++i) {
      primal.push_back(operands.size());
      operands.push_back(c.node.in[i]);
    }
    for (std::size_t i : active) {
      if (i < begins[k] || i >= begins[k + 1]) continue;
      along.push_back(operands.size());
      operands.push_back((t[i] ? t[i] : zeros(all, Type(all[c.node.in[i]].type))).id);
    }
    counts[k] = operands.size() - before;
  }
  NewBody b(body.name);
  std::vector<Id> in, inputs;
  for (std::size_t i = 0; i < operands.size(); ++i)
    in.push_back(b.input(i < counts[0] + counts[1] ? Type(all[operands[i]].type) : graph::element_of(all[operands[i]].type)));
  for (std::size_t i : primal) inputs.push_back(in[i]);
  const std::vector<Id> values = graph::inline_body(b.g, body, inputs);
  for (std::size_t i : along) inputs.push_back(in[i]);
  const std::vector<Id> tangents = graph::inline_body(b.g, tangents_of(body, slots_from(0, active)), inputs);
  const std::vector<std::size_t> floating = differentiable_outputs(body);
  std::vector<Id> results(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(p.carries));
  std::vector<std::size_t> carries, outputs;
  for (std::size_t k = 0; k < floating.size(); ++k)
    if (floating[k] < p.carries && moved[floating[k]]) {
      carries.push_back(floating[k]);
      results.push_back(tangents[k]);
    }
  append(results, part(values, p.carries, p.outputs));
  for (std::size_t k = 0; k < floating.size(); ++k)
    if (floating[k] >= p.carries) {
      outputs.push_back(floating[k]);
      results.push_back(tangents[k]);
    }
  const Sym scan = add_bodies(all, Op::Scan, std::move(operands),
                              {static_cast<std::int64_t>(counts[0]), static_cast<std::int64_t>(counts[1]), p.length, Dim(int{p.reverse})},
                              {b.finish(std::move(results))});
  std::vector<Sym> moving(2 * p.carries + p.outputs);
  const std::size_t stacks = counts[1] + p.outputs + outputs.size();  // where the carries at each step begin
  for (std::size_t k = 0; k < carries.size(); ++k) {
    moving[carries[k]] = result(scan, p.carries + k);
    moving[p.carries + p.outputs + carries[k]] = result(scan, stacks + p.carries + k);
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) moving[outputs[k]] = result(scan, counts[1] + p.outputs + k);
  return moving;
}

std::vector<Sym> Scan::batch(const BatchCall& c) {
  const ScanParts p(c.node);
  const Graph& body = *c.node.bodies[0];
  const auto given = chosen(c.batched.size(), [&](std::size_t i) { return c.is_batched(i); });
  std::vector<char> batched = c.batched;
  const std::vector<char> moved = reached_carries(body, p.constants, p.carries, slots_from(0, given));
  std::copy(moved.begin(), moved.end(), batched.begin() + static_cast<std::ptrdiff_t>(p.constants));
  std::vector<Id> operands;
  for (std::size_t i = 0; i < batched.size(); ++i) {
    Sym x = batched[i] ? c.spread(i) : c.in(i);
    if (batched[i] && i >= p.constants + p.carries) x = move_axis(x, 0, 1);
    operands.push_back(x.id);
  }
  Slots out_axes(p.carries + p.outputs, 0);
  for (std::size_t i = 0; i < p.carries; ++i)
    if (!moved[i]) out_axes[i] = kNotBatched;
  const Sym scan = add_bodies(*c.graph, Op::Scan, std::move(operands), c.node.attrs, {vmap(body, c.size, batch_axes(batched), out_axes)});
  std::vector<Sym> results;
  for (std::size_t i = 0; i < 2 * p.carries + p.outputs; ++i) {
    const bool stack = i >= p.carries;
    const std::size_t carry = stack ? i - p.carries - p.outputs : i;
    Sym r = result(scan, i);
    if (carry < p.carries && !moved[carry])
      r = broadcast(r, c.with_batch(r.shape()));
    else if (stack)
      r = move_axis(r, 1, 0);
    results.push_back(r);
  }
  return results;
}

}  // namespace sinter::transforms::rules
