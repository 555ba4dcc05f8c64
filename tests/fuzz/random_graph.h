// Random typed graphs, and ways to run them. Used by the fuzzer.
#pragma once
#include <random>
#include <vector>

#include "graph/graph.h"
#include "graph/interpret.h"

namespace sinter::fuzz {

/// A graph of about `size` operations over every table: elementwise, views, reductions, gathers, products.
graph::Graph random_graph(std::uint32_t seed, int size);

/// What the paths give for a graph: `regular` evaluates each node on its own; `compiled` fuses; `interpreted` runs the compiled kernels
/// on the interpreter; `unfused` compiles without fusion. All must agree in every bit.
enum class Path { regular, compiled, unfused, interpreted };
std::vector<graph::Tensor> run(const graph::Graph& g, std::span<const graph::Tensor> inputs, Path path);

/// The first difference between the paths, and (where no sum or product is rounded) the reference; empty if there is none. An exception
/// counts as a difference.
std::string disagreement(const graph::Graph& g, std::uint32_t input_seed);

/// A smaller graph that still disagrees.
graph::Graph shrink(const graph::Graph& g, std::uint32_t input_seed);

}  // namespace sinter::fuzz
