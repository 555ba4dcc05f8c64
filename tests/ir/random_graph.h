// Random valid graphs over all operations, for round trips and for passes.
#pragma once
#include <algorithm>
#include <random>

#include "graph/build.h"
#include "graph/graph.h"
#include "ops/infer.h"

namespace sinter::graph {

class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : random_(seed) {}

  Graph make(int nodes) {
    g_.name = "random";
    const Shape shapes[] = {{}, {3}, {2, 3}, {3, 2}, {2, 1}, {1, 4}};
    for (std::int64_t slot = 0; slot < 6; ++slot) {
      g_.add({ops::Op::Input, {}, {slot}, {dtype(), shapes[pick(std::size(shapes))]}});
    }
    while (static_cast<int>(g_.size()) < nodes) add();
    std::vector<Id> outputs;
    for (int i = 0; i < 3; ++i) outputs.push_back(any());
    outputs.push_back(g_.size() - 1);
    g_.set_outputs(std::move(outputs));
    return std::move(g_);
  }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  Id any() { return static_cast<Id>(pick(g_.size())); }
  Dtype dtype() {
    static constexpr Dtype kSome[] = {Dtype::float32, Dtype::float32, Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16,
                                      Dtype::int32,   Dtype::int8,    Dtype::uint64,  Dtype::bool_,   Dtype::complex64};
    return kSome[pick(std::size(kSome))];
  }

  void add() {
    const Id x = any();
    const Shape shape = g_[x].type.shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    switch (pick(12)) {
      case 0: g_.add({ops::Op::Constant, {}, {static_cast<std::int64_t>(pick(3))}, {dtype(), pick(2) ? shape : Shape{}}}); break;
      case 1: cast(g_, x, dtype()); break;
      case 2: {
        ops::Attrs axes;
        for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back(i);
        std::shuffle(axes.begin(), axes.end(), random_);
        transpose(g_, x, axes);
        break;
      }
      case 3: reshape(g_, x, pick(2) ? Shape{shape.product()} : Shape{1, shape.product()}); break;
      case 4: {
        Shape to = shape;
        for (Dim& d : to) {
          if (d == 1) d = 3;
        }
        if (to.product() * 2 > 64) break;
        if (pick(2)) to.insert(0, 2);
        broadcast(g_, x, to);
        break;
      }
      case 5: {
        if (rank == 0 || shape.product() == 0) break;
        ops::Attrs attrs(static_cast<std::size_t>(3 * rank));
        Shape to;
        for (std::size_t i = 0; i < shape.size(); ++i) {
          const bool back = pick(2) != 0;
          attrs[i] = back ? shape[i] - 1 : Dim(0);
          const std::int64_t size = 1 + static_cast<std::int64_t>(pick(static_cast<std::size_t>(static_cast<std::int64_t>(shape[i]))));
          attrs[shape.size() + i] = size;
          attrs[2 * shape.size() + i] = back ? -1 : 1;
          to.push_back(size);
        }
        g_.add({ops::Op::Slice, {x}, attrs, {g_[x].type.dtype, to}});
        break;
      }
      case 6: {
        if (is_complex(g_[x].type.dtype) || rank == 0) break;
        reduce(g_, pick(2) ? ops::Op::Max : ops::Op::Min, x, {static_cast<std::int64_t>(pick(shape.size()))}, g_[x].type.dtype);
        break;
      }
      default: elementwise_node(x);
    }
  }

  // Operands of x's dtype: of its shape, or 0-d.
  void elementwise_node(Id x) {
    std::vector<ops::Op> elementwise_ops;
    for (std::size_t i = 0; i < ops::all_ops().size(); ++i) {
      if (ops::is_elementwise(static_cast<ops::Op>(i))) elementwise_ops.push_back(static_cast<ops::Op>(i));
    }
    static constexpr ops::Op kCommon[] = {ops::Op::Add,      ops::Op::Subtract, ops::Op::Multiply,
                                          ops::Op::Negative, ops::Op::Where,    ops::Op::LogicalNot};
    const ops::Op op = pick(2) ? kCommon[pick(std::size(kCommon))] : elementwise_ops[pick(elementwise_ops.size())];
    const bool where = ops::info(op).rule == ops::Rule::Where;
    std::vector<Id> in(static_cast<std::size_t>(ops::info(op).operands), x);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Dtype t = where && i == 0 ? Dtype::bool_ : g_[x].type.dtype;
      in[i] = cast(g_, x, t);
      for (int tries = 0; tries < 10; ++tries) {
        const Id y = any();
        if (g_[y].type.dtype == t && (g_[y].type.shape == g_[x].type.shape || g_[y].type.shape.empty())) in[i] = y;
      }
    }
    std::vector<Dtype> dtypes;
    for (Id i : in) dtypes.push_back(g_[i].type.dtype);
    try {
      ops::infer_dtype(op, dtypes, {});
    } catch (const std::exception&) {
      return;  // the operation does not take the dtype
    }
    elementwise(g_, op, in);
  }

  std::mt19937 random_;
  Graph g_;
};

}  // namespace sinter::graph
