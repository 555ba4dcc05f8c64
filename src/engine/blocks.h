// Blocks: making the node (graph/bodies.h) of a function on windows of arrays. Layer: engine.
#pragma once
#include <span>
#include <vector>

#include "base/check.h"
#include "sinter/detail/bodies.h"

namespace sinter::engine {

struct Block {
  struct Window {
    std::int64_t start, size;
  };
  std::vector<Window> windows;  // of each operand, then of each result
  std::size_t body = 0;         // blocks that compute the same have the same number; counted from 0 in order of appearance
};

/// f(windows) -> what goes to the windows of the results. Every operand has `grid` first axes, of the grid's sizes or 1, which f does
/// not see. f is traced once for each body, uses nothing besides, and draws no random numbers. Windows are as graph/bodies.h says.
detail::Leaves blocks(const char* what, std::size_t grid, std::span<const Array> operands, std::span<const Block> list,
                      FunctionRef<detail::Leaves(std::span<const Array> windows)> f);

}  // namespace sinter::engine
