// Transforms: functions from graph to graph that differentiate and batch. Layer: transforms.
//
// A graph is a function from its inputs (by slot) to its outputs. No transform recurses; each takes time linear in the graph. Cotangents
// and tangents that are zero everywhere are never computed. Integers and bool carry no derivative. For complex64 the gradient of a real
// loss L with respect to a + ib is dL/da + i dL/db.
#pragma once
#include <span>
#include <vector>

#include "graph/graph.h"

namespace sinter::transforms {

/// Gradients in a graph under construction: appends the nodes that carry `cotangents` of `outputs` back to `wrt`, and returns the
/// cotangent of each of `wrt`; kKeep: zero. `outputs` and `wrt` are any nodes, floating or complex; a cotangent has its output's type, or
/// is kKeep: zero. Gradients of the result come from calling this again.
std::vector<graph::Id> pull_back(graph::Graph& g, std::span<const graph::Id> outputs, std::span<const graph::Id> cotangents,
                                 std::span<const graph::Id> wrt);

/// Derivatives along a direction in a graph under construction: appends the nodes that carry `tangents` of `wrt` on to `outputs`, and
/// returns the tangent of each output; kKeep: zero. Types as in pull_back.
std::vector<graph::Id> push_forward(graph::Graph& g, std::span<const graph::Id> wrt, std::span<const graph::Id> tangents,
                                    std::span<const graph::Id> outputs);

/// (inputs, a cotangent for each floating or complex output) -> (outputs, the gradient of each input slot of `wrt`).
graph::Graph vjp(const graph::Graph& g, std::span<const std::int64_t> wrt);

/// (inputs, a tangent for each input slot of `wrt`) -> (outputs, the tangent of each floating or complex output).
graph::Graph jvp(const graph::Graph& g, std::span<const std::int64_t> wrt);

inline constexpr std::int64_t kNotBatched = -1;
/// The graph on a batch of `size` examples at once. Input i has the batch axis at in_axes[i], or kNotBatched; output i gets it at
/// out_axes[i]; kNotBatched where no example matters to it. A batched random key gives each example the bits that its key gives alone.
graph::Graph vmap(const graph::Graph& g, const Dim& size, std::span<const std::int64_t> in_axes, std::span<const std::int64_t> out_axes);

/// Whether each output depends on one of these input slots: when they are batched, which outputs of vmap need an axis.
std::vector<bool> depends_on(const graph::Graph& g, std::span<const std::int64_t> slots);

}  // namespace sinter::transforms
