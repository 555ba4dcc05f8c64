// decompose: operations that are defined by others are written out. Runs in regular and compiled evaluation alike. Layer: passes.
#pragma once
#include "graph/graph.h"

namespace sinter::passes {

/// ArgMax and ArgMin (a fold, then the least position that equals it); AddMM (a product and a sum; halves in float32, rounded once);
/// StopGradient (its operand); Matmul in dtypes for which `has_product` says that no library serves (halves in float32; others as a sum of
/// products); convolutions likewise.
graph::Graph decompose(const graph::Graph& g, FunctionRef<bool(Dtype)> has_product);

}  // namespace sinter::passes
