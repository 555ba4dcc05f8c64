#include "graph/bodies.h"
#include "graph/graph.h"
#include "ops/infer.h"

namespace sinter::graph {
namespace {

using ops::Op;

void verify_node(const Graph& g, Id id, std::vector<bool>& slots) {
  const Node& n = g[id];
  const ops::OpInfo& op = ops::info(n.op);
  auto require = [](bool ok, const char* rule) {
    if (!ok) throw InternalError(rule);
  };
  require(op.operands < 0 || n.in.size() == static_cast<std::size_t>(op.operands), "the number of operands is wrong");
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  for (Id in : n.in) {
    require(in < id, "an operand comes after its use");
    shapes.push_back(g[in].type.shape);
    dtypes.push_back(g[in].type.dtype);
  }
  for (const Dim& d : n.type.shape) require(d >= 0, "a negative size");
  require(ops::for_each_attribute(n.op, n.attrs, n.type.shape.size(), [](const ops::Attribute&) {}), "the number of attributes is wrong");
  const auto shape = ops::infer_shape(n.op, shapes, n.attrs);
  require(!shape || *shape == n.type.shape, "the shape is not that of the operation");
  const auto dtype = ops::infer_dtype(n.op, dtypes, n.attrs);
  require(!dtype || *dtype == n.type.dtype, "the dtype is not that of the operation");
  verify_bodies(g, n);
  if (n.op == Op::Arange) require(n.attrs[0] >= 0 && n.attrs[0] < static_cast<std::int64_t>(n.type.shape.size()), "there is no such axis");
  if (n.op == Op::RandomBits) {
    const Shape& keys = shapes[0];
    require(keys.size() <= n.type.shape.size() + 1, "more axes of keys than of the result");
    for (std::size_t i = 0; i + 1 < keys.size(); ++i) require(keys[i] == n.type.shape[i], "the keys' axes are not the result's first axes");
  }
  if (n.op == Op::Input) {
    const auto slot = static_cast<std::size_t>(n.attrs[0]);
    require(slot < slots.size() && !slots[slot], "the slots of inputs are not 0, 1, ...");
    slots[slot] = true;
  }
  if (n.op == Op::Constant) {
    const std::size_t count = n.attrs.size();
    require(count >= 1 && count <= 16, "a constant has 1 to 16 elements");
    require(count == 1 || static_cast<std::int64_t>(count) == n.type.shape.product(), "the elements do not fill the shape");
    for (std::int64_t bits : n.attrs) {
      require(size_of(n.type.dtype) == 8 || static_cast<std::uint64_t>(bits) >> (8 * size_of(n.type.dtype)) == 0,
              "a literal has bits beyond its dtype");
    }
  }
}

}  // namespace

void verify(const Graph& g) {
  std::size_t inputs = 0;
  for (Id id = 0; id < g.size(); ++id) inputs += g[id].op == Op::Input;
  std::vector<bool> slots(inputs, false);
  for (Id id = 0; id < g.size(); ++id) {
    try {
      verify_node(g, id, slots);
    } catch (const std::exception& e) {  // an Error of elementwise_type, too: whatever it is, the graph is wrong
      throw InternalError(str("internal: graph ", g.name, ": %", id, " = ", ops::info(g[id].op).name, ": ", e.what()));
    }
  }
  for (Id id : g.outputs()) {
    if (id >= g.size()) throw InternalError(str("internal: graph ", g.name, ": an output is not in the graph"));
  }
}

}  // namespace sinter::graph
