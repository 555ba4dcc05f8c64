// Interpret: a slow evaluation of a graph, node by node, each operation written from its definition. Layer: graph.
//
// The oracle for graph passes and for whole programs: exact, except that sums, products and matrix products are computed in float64 (or
// exact integers) and rounded once, so compare those within a tolerance.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sinter::graph {

/// Row-major elements in their stored form.
struct Tensor {
  Dtype dtype = Dtype::float32;
  Shape shape;
  std::vector<std::byte> bytes;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// An element's stored form in the low bytes of a word, one an element; and the reverse.
std::vector<std::uint64_t> to_words(const Tensor& t);
Tensor from_words(Dtype dtype, Shape shape, std::span<const std::uint64_t> words);

/// The outputs, given the inputs by slot. Throws InternalError when an input does not have the type that the graph says.
std::vector<Tensor> interpret(const Graph& g, std::span<const Tensor> inputs);

/// Inputs for comparing graphs: small numbers, mixed with special values (-0, NaN, infinities, extremes).
std::vector<Tensor> sample_inputs(const Graph& g, std::uint32_t seed);
/// The first element in which the tensors differ, in words; empty if none does. All NaNs are equal. A floating element may differ by
/// `tolerance` relative to the larger of its magnitude and 1.
std::string difference(std::span<const Tensor> a, std::span<const Tensor> b, double tolerance = 0);

}  // namespace sinter::graph
