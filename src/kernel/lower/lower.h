// lower: a group of graph nodes becomes a kernel, or two for a long reduction. Layer: kernel.
#pragma once
#include <vector>

#include "graph/group.h"
#include "graph/layout.h"
#include "kernel/kernel.h"

namespace sinter::kernel {

/// What a kernel buffer is bound to.
struct Binding {
  graph::Id node = graph::kKeep;  // memory of this node; kKeep: scratch memory between two kernels of one group
  std::int64_t elements = 0;      // of memory, that the kernel moves at least
  bool same_index = false;        // a pointwise output, or what is read only where those are written: the same memory may serve both, if
                                  // elements are of one size
};

struct Lowered {
  Kernel kernel;
  std::vector<Binding> buffers;         // one a kernel buffer
  graph::Strides integers;              // values of the Args for these shapes and layouts
  std::vector<graph::Id> scalars;       // the Constant node behind each Scalar
  std::vector<graph::Id> across;        // arrays that lanes go through in large steps: a row-major copy is read in less time than they
  Dim tasks = 0;                        // iterations of the Parallel loop
  double work = 0;                      // instructions in all, about
  Dim scratch_bytes = 0;                // of the scratch memory that this kernel writes for the next
  std::vector<std::int64_t> own_bytes;  // of each scratch buffer (kernel.h), which are the last buffers
};

/// Layouts of the nodes that the group reads and of those it stores (row-major unless the caller placed them elsewhere).
using LayoutOf = FunctionRef<const graph::Layout&(graph::Id)>;

std::vector<Lowered> lower(const graph::Graph& g, const graph::Group& group, LayoutOf layout_of);

/// A Scatter operation whose result's memory holds operand 0 already: adds or stores the updates, along the axis one after the other.
Lowered lower_scatter(const graph::Graph& g, graph::Id id, LayoutOf layout_of);

/// A product of `rows` rows, at most 4, by a matrix: out[b, r, n] = sum over k of few[b, r, k] * matrix[b, k, n]. Strides in elements; one
/// of the matrix' is 1. Buffers 0, 1 and 2 are few, matrix and out. Halves are added up in float32.
struct FewRows {
  Dtype dtype;
  std::int64_t batch, rows, n, k;
  struct {
    std::int64_t batch, row, k;
  } few;
  struct {
    std::int64_t batch, k, n;
  } matrix;
  struct {
    std::int64_t batch, row, n;
  } out;
};
/// For a target of so many lanes.
Lowered lower_few_rows(const FewRows& f, int lanes);

}  // namespace sinter::kernel
