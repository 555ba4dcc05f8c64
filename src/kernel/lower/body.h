// Body: the computation of a group at one point of its space. Layer: kernel.
#pragma once
#include <unordered_map>
#include <vector>

#include "kernel/lower/nest.h"

namespace sinter::kernel {

class Body {
 public:
  /// Registers the group's accesses with the nest and its constants with the builder (before any loop).
  Body(const graph::Graph& g, const graph::Group& group, LayoutOf layout_of, Builder& b, Nest& nest);

  /// Loads what none of the axes still to be opened moves: once, outside their loops.
  void preload(const std::vector<const Axis*>& inner);
  /// Computes every pointwise member, and stores those that are outputs.
  void emit();
  /// A pointwise member or a leaf, at the current point. After emit().
  Ref value(graph::Id id);

  double cost = 0;  // instructions a point, about
  /// Vectors in flight that suit this body: several hide latency; many values at once, or many operations, ask for fewer, for the stack
  /// that spilled values take and for the time that code generation takes.
  int unroll() const;
  std::vector<Binding> buffers;
  std::vector<graph::Id> scalars;
  /// A buffer for a reduction's result, and the access that walks it over the kept axes.
  std::size_t add_result(graph::Id id, int& buffer);

 private:
  struct Leaf {
    int buffer;
    std::size_t access;
    Ref loaded = kNone;
  };
  struct Store {
    graph::Id id;
    int buffer;
    std::size_t access;
  };
  void add_leaf(graph::Id id, std::vector<std::int64_t> strides);
  int add_buffer(graph::Id id, bool written);
  Ref load(Leaf& leaf);
  Ref compute(graph::Id id);
  Ref arange(graph::Id id);
  Ref gather(graph::Id id);
  Ref random_bits(graph::Id id);

  int computes_ = 0;
  int live_ = 0;  // values that are alive at once, at most
  void count_live();
  const graph::Graph& g_;
  const graph::Group& group_;
  LayoutOf layout_of_;
  Builder& b_;
  Nest& nest_;
  Shape space_;
  std::unordered_map<graph::Id, Ref> values_;  // members and constants
  std::unordered_map<graph::Id, Leaf> leaves_;
  std::unordered_map<graph::Id, Leaf> gathers_;       // by member: the array that it reads at a computed place
  std::unordered_map<graph::Id, std::size_t> walks_;  // by member: the access of arange, random_bits
  std::vector<Store> stores_;
};

/// The space of a group: the shape of its pointwise members, and of its reductions' operand.
const Shape& space_of(const graph::Graph& g, const graph::Group& group);

}  // namespace sinter::kernel
