// Blocks: making the node (graph/bodies.h) of a function on windows of arrays. Layer: engine.
#pragma once
#include <span>
#include <vector>

#include "base/check.h"
#include "graph/bodies.h"
#include "sinter/array.h"

namespace sinter::engine {

/// Blocks in a row that do the same to windows of equal sizes.
struct Blocks {
  Dim count;
  std::vector<graph::BlocksParts::Window> windows;  // in the first of them: of each operand, then of the result
};

/// f(windows) -> what goes to the windows of the result, whose axis has `extent` elements. Every operand has `grid` first axes, of the
/// grid's sizes or 1, which f does not see. f is traced once for each list entry that may have blocks, uses nothing besides, and draws no
/// random numbers. `cut`: for each operand, whether its windows lie side by side. Windows are as graph/bodies.h says.
Array blocks(const char* what, std::size_t grid, std::span<const Array> operands, std::span<const char> cut, const Dim& extent,
             std::span<const Blocks> list, FunctionRef<Array(std::span<const Array> windows)> f);

}  // namespace sinter::engine
