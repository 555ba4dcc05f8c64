// Bodies: nodes that hold graphs. Their operands, what their graphs take and give, and their results. Layer: graph.
//
// Such a node has several results; its own type is bool[0], and a `get` node is one result. Inputs of a body are numbered by slot, in the
// order below. A body uses nothing of the graph around it: what it needs besides its arguments are operands too, its constants.
//
//   checkpoint    operands: arguments. The body's outputs for them. Derivatives compute the body again.
//   cond          operands: a bool[] and arguments. The outputs of body 0 where it is true, else those of body 1.
//   while_loop    operands: constants, then carries. While body 0 (constants, carries) gives true, body 1 (constants, carries) gives the
//                 next carries. Results: the last carries.
//   scan          operands: constants, carries, then sequences, of `length` elements along axis 0. Body (constants, carries, one element of
//                 each sequence) gives the next carries and one element of each output, for element 0, 1, ...; from the last to the first
//                 where reverse = 1. Results: the last carries; the outputs, stacked along axis 0, each element at the place of those it
//                 was made from; the carries with which each step began, stacked in the same way.
//
//   blocks        work by parts whose intermediate arrays are small enough for a cache. Every array has `grid` first axes, whose sizes
//                 are those of the grid (an operand may have 1 where all points share it), and axes of its own. For each point of the
//                 grid and each block, the block's body gets of every operand a window: elements [start, start + size) of the first axis
//                 of its own. Its outputs go to windows of the results; to each of the last results, `sums` in number, they are added, in
//                 the order of the blocks. Each body has `count` blocks in a row, maybe none. An operand may be cut into parts: windows
//                 of the same body lie side by side, and those of all blocks cover the axis, each element once; so they do for results
//                 that are no sums. Other operands and sums: all blocks of a body have one window, which is whole for the first block.
//                 windows: whether each operand is cut (1); the size of each result's axis; for each body its count, then start and size
//                 of the window of each operand and of each result in the first of its blocks. All may follow changing sizes, and a body
//                 without blocks has whatever windows. Sums are float32, float64 or complex64. Bodies have no branches and loops.
//
//   debug_print   operands: any array, then values. Holds no body. Writes a line to standard output when it runs: the text, in which each
//                 `{}` is replaced by a value; one line for each element of their first `depth` axes, which all values have. depth = -1:
//                 no line; it waits until operand 1 is computed. Result: operand 0. What shall come later, and what shall not be dropped,
//                 has an operand that is made so.
//
// The results of the others are their first operands, the outputs, unchanged; only transforms look at what else they hold.
//
//   custom_vjp    operands: outputs, residuals, arguments, constants. Body (residuals, cotangents of the outputs, constants) gives the
//                 cotangents of the arguments.
//   custom_jvp    operands: outputs, arguments, constants. Body (arguments, their tangents, constants) gives the tangents of the outputs.
//   custom_vmap   operands: outputs, arguments, constants. A body for each size of batch (arguments with the batch along axis 0, constants)
//                 gives the outputs with the batch along axis 0.
//
// Cotangents and tangents are those of floating and complex outputs and arguments alone.
#pragma once
#include <span>
#include <vector>

#include "graph/graph.h"

namespace sinter::graph {

/// The number in an attribute that is a count: "constants", "carries", "outputs", ... by its place in structured.def.
inline std::size_t count_attribute(const Node& n, std::size_t i) { return static_cast<std::size_t>(n.attrs[i]); }

/// What is where among the operands and results of a scan.
struct ScanParts {
  explicit ScanParts(const Node& n)
      : constants(count_attribute(n, 0)),
        carries(count_attribute(n, 1)),
        sequences(n.in.size() - constants - carries),
        outputs(n.bodies[0]->outputs().size() - carries),
        length(n.attrs[2]),
        reverse(n.attrs[3] != 0) {}
  std::size_t constants, carries, sequences, outputs;
  Dim length;
  bool reverse;
};

/// What the attributes of a blocks node say. Arrays are numbered: operands, then results.
class BlocksParts {
 public:
  struct Window {
    Dim start, size;
  };
  struct Block {
    std::size_t body;
    std::int64_t number;  // among those of the body
  };
  explicit BlocksParts(const Node& n)
      : grid(count_attribute(n, 0)),
        operands(n.in.size()),
        results(n.bodies[0]->outputs().size()),
        sums(count_attribute(n, 1)),
        bodies(n.bodies.size()),
        attrs_(n.attrs) {}
  bool is_sum(std::size_t result) const { return result + sums >= results; }
  /// Whether the windows of an array lie side by side.
  bool is_cut(std::size_t array) const { return array < operands ? attrs_[2 + array] != 0 : !is_sum(array - operands); }
  const Dim& extent(std::size_t result) const { return attrs_[2 + operands + result]; }
  const Dim& count(std::size_t body) const { return attrs_[first_of(body)]; }
  /// In the first block of the body.
  Window window(std::size_t body, std::size_t array) const {
    const std::size_t at = first_of(body) + 1 + 2 * array;
    return {attrs_[at], attrs_[at + 1]};
  }
  Window operand(std::size_t body, std::size_t i) const { return window(body, i); }
  Window result(std::size_t body, std::size_t i) const { return window(body, operands + i); }

  /// All blocks, for the numbers of now; and where the window of one begins.
  std::vector<Block> blocks() const;
  std::int64_t start(const Block& b, std::size_t array) const;

  /// How many attributes there are.
  std::size_t words() const { return first_of(bodies); }

  std::size_t grid, operands, results, sums, bodies;

 private:
  std::size_t first_of(std::size_t body) const { return 2 + operands + results + body * (1 + 2 * (operands + results)); }
  ops::Attrs attrs_;
};
/// The sizes of the grid of a blocks node.
Shape grid_of(const Graph& g, const Node& n);
/// Elements from the beginning of an array of this shape to the part that belongs to point number `point` of the grid.
std::int64_t grid_offset(const Shape& grid, const Shape& shape, std::int64_t point);
/// The type of a window on what belongs to one point of the grid.
Type window_type(const Type& whole, std::size_t grid, const Dim& size);

/// Whether a derivative belongs to an array of this dtype.
inline bool is_differentiable(Dtype t) { return is_floating(t) || is_complex(t); }

/// The types of a node's results. The operands' types are read in g.
std::vector<Type> result_types(const Graph& g, const Node& n);
/// Of a body's outputs.
std::vector<Type> output_types(const Graph& body);
/// A `get` node.
Id result(Graph& g, Id node, std::size_t index);
/// The type without, or with, a first axis.
Type element_of(const Type& t);
Type stacked(const Type& t, const Dim& length);

/// Adds what the body computes from these nodes, one an input slot; returns its outputs.
std::vector<Id> inline_body(Graph& g, const Graph& body, std::span<const Id> inputs);
/// The input nodes, by slot; kKeep: there is none.
std::vector<Id> inputs_of(const Graph& g);

/// The attributes of a debug_print node, and the text in them.
ops::Attrs print_attributes(std::int64_t depth, std::string_view text);
std::string print_text(const Node& n);
/// Whether the graph, or a body in it, shows values; and the same graph without that.
bool prints(const Graph& g);
Graph without_prints(const Graph& g);

/// Throws InternalError when bodies do not fit the node.
void verify_bodies(const Graph& g, const Node& n);

}  // namespace sinter::graph
