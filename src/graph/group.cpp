#include "graph/group.h"

namespace sinter::graph {
bool is_pointwise(ops::Op op) {
  switch (ops::info(op).kind) {
    case ops::OpKind::Elementwise: return true;
    case ops::OpKind::Source: return op == ops::Op::Constant;
    case ops::OpKind::Map: return op != ops::Op::Concatenate && op != ops::Op::Pad;
    default: return false;
  }
}
bool is_read_elsewhere(ops::Op op, std::size_t operand) {
  return op == ops::Op::Take || op == ops::Op::RandomBits || (op == ops::Op::TakeAlong && operand == 0);
}

}  // namespace sinter::graph
