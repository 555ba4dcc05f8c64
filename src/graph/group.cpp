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
}  // namespace sinter::graph
