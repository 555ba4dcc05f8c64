// Body: the computation of a group at one point of its space. Layer: kernel.
#pragma once
#include <algorithm>
#include <unordered_map>
#include <utility>
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
  /// Computes these members, which are in order, and reads what reductions among them fold. What they read of other members must be known.
  void emit(const std::vector<graph::Id>& members);
  /// Where a member lies in memory: an output's, or scratch memory of one row along `lanes` (after the nest has formed its axes).
  struct Place {
    int buffer;
    std::size_t access;
  };
  Place place_of(graph::Id output) const;
  Place scratch_row(Dtype t, const Axis& lanes);
  /// Stores a pointwise member; at the same point, loads it from there in a later loop.
  void store(graph::Id member, Place place);
  void load_kept(graph::Id member, Place place);
  /// A member, or the element of an array, at the current point; for a view of a member, the member.
  Ref value(graph::Id id);
  /// The member whose value this operand is, as it is or of its row through views; the operand if there is none.
  graph::Id under(graph::Id operand) const;
  /// Says what a row value is, until the scope ends; returns what it was, kNone if nothing yet.
  Ref define(graph::Id member, Ref result);
  /// Between these, what is computed and loaded is forgotten at the end, as by a loop that closes. Scopes nest.
  void open_scope();
  void close_scope();
  /// The axis of these, if any, along which arrays lie that lanes along `lanes` could only gather; and the bytes of an element of them all.
  const Axis* tiled_axis(const std::vector<const Axis*>& axes, const Axis& lanes) const;
  std::int64_t across_bytes(const Axis& tiled, const Axis& lanes) const;
  /// Arrays that lie across the lanes and are read from no scratch buffer, if they are large.
  std::vector<graph::Id> left_across(const Axis& lanes) const;
  struct Across {
    int buffer;
    std::size_t access;
    int panel;  // the scratch buffer from which they are read instead
  };
  /// Reads such arrays from scratch buffers, by this access, from now on.
  std::vector<Across> read_across(const Axis& tiled, const Axis& lanes, std::size_t panels);
  /// Asks for the arrays that all of `axes` together move through, at the current point: those that are read, or the outputs.
  void prefetch_inputs(const std::vector<const Axis*>& rows, const Axis& lanes);
  void prefetch_outputs();
  /// Tells that the array of this operand is read after the first output was stored, so that they cannot share memory.
  void keep_apart(graph::Id operand);

  double cost = 0;  // instructions a point, about
  /// Vectors in flight that suit this body: several hide latency; many values at once, or many operations, ask for fewer, for the stack
  /// that spilled values take and for the time that code generation takes. `of_light`: for bodies that wait for memory.
  int unroll(int of_light = 1) const;
  /// The same for a pointwise kernel.
  int pointwise_unroll() const;
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
    Place place;
  };
  bool is_member(graph::Id id) const { return std::binary_search(group_.members.begin(), group_.members.end(), id); }
  /// Whether the leaf, new or there before, is read by these strides.
  bool add_leaf(graph::Id id, graph::Strides strides);
  int add_buffer(graph::Id id, bool written);
  Ref load(graph::Id operand);
  Ref compute(graph::Id id);
  Ref arange(graph::Id id);
  Ref gather(graph::Id id);
  Ref inside(graph::Id pad);
  Ref pad(graph::Id id);
  Ref random_bits(graph::Id id);

  int computes_ = 0;
  int functions_ = 0;  // members of many instructions
  int live_ = 0;       // values that are alive at once, at most
  void count_live();
  const graph::Graph& g_;
  const graph::Group& group_;
  LayoutOf layout_of_;
  Builder& b_;
  Nest& nest_;
  std::unordered_map<graph::Id, Ref> values_;  // members and constants
  std::unordered_map<graph::Id, Leaf> leaves_;
  std::unordered_map<graph::Id, Leaf> gathers_;       // by member: the array that it reads at a computed place
  std::unordered_map<graph::Id, Leaf> indices_;       // by member: its indices, where their array is a leaf that is walked another way
  std::unordered_map<graph::Id, std::size_t> walks_;  // by member: the access of arange, random_bits
  struct Position {                                   // along an axis of arrays of this shape
    const Shape* shape;
    std::size_t axis, access;
  };
  std::vector<Position>::const_iterator find_position(const Shape& shape, std::size_t axis) const;
  std::vector<Position> positions_;
  std::vector<std::pair<graph::Id, Ref>> insides_;  // of pads, at the current point
  std::vector<Store> stores_;
  bool is_across(const Leaf& leaf, const Axis& tiled, const Axis& lanes) const;
  struct Scope {
    std::vector<graph::Id> members, leaves;
  };
  std::vector<Scope> scopes_;
};

}  // namespace sinter::kernel
