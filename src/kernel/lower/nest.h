// Nest: the loop axes of a kernel, and the element index of each access as loops open. Layer: kernel.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel/lower/lower.h"

namespace sinter::kernel {

/// A loop axis: one or several axes of the space, iterated as one, row-major.
struct Axis {
  Dim extent = 1;
  bool reduced = false;
  std::vector<std::size_t> dims;  // of the space, without those of size 1
};

/// One way of walking through memory (or through a range, as arange does): a stride for each axis of the space.
struct Access {
  graph::Strides strides;
  Ref base = kNone;  // element index so far; kNone: 0
};

class Nest {
 public:
  Nest(const Shape& space, const std::vector<std::int64_t>& reduced) : space_(space), reduced_(space.size(), 0) {
    for (std::int64_t d : reduced) reduced_[static_cast<std::size_t>(d)] = 1;
  }

  /// Strides over the space from those over `shape`, which is the space or has its kept axes' sizes (axes of size 1 aside).
  graph::Strides spread(const Shape& shape, const graph::Strides& strides) const;
  /// Over how many elements of memory an access goes, at most: the space's, or more if rows along this axis are far apart.
  Dim reach(const Axis& axis) const;
  /// Registers an access; returns its number.
  std::size_t add(graph::Strides strides) {
    accesses_.push_back({std::move(strides)});
    return accesses_.size() - 1;
  }
  /// Registers a walk that tells how far one is along axis d of an array of this shape (the space's, or its rows'): the index is at least
  /// n * unit() if, and only if, the place along d is at least n. It may be walked together with the axes behind d.
  std::size_t add_position(const Shape& shape, std::size_t d);
  const Dim& unit(std::size_t position) const { return positions_.at(position).unit; }
  /// Registers an access that walks these joined axes by these steps, and no others; before any loop.
  std::size_t add_walk(const std::vector<std::pair<const Axis*, std::int64_t>>& steps);
  /// Where an access begins.
  void start(std::size_t access, Ref base) { accesses_[access].base = base; }
  /// Joins neighbouring axes: kept ones where every access allows it; reduced ones always, for the order of a reduction must not
  /// depend on layouts. Accesses that cannot walk a joined axis by one stride compute their index.
  void form_axes();
  std::vector<Axis> axes;

  /// An integer argument of this value.
  Ref arg(Builder& b, const Dim& value);
  graph::Strides integers;

  /// Adds the axis' part to every access, given the axis' index. In lanes, a stride of 1 is structure; elsewhere it is an argument.
  void open(Builder& b, const Axis& axis, Ref index, bool lanes);
  /// The same for these accesses alone.
  void open(Builder& b, const Axis& axis, Ref index, bool lanes, const std::vector<std::size_t>& accesses);
  /// The positions at `count` indices that follow each other, from `index` on, outside lanes; opens nothing.
  std::vector<std::vector<Ref>> positions(Builder& b, const Axis& axis, Ref index, int count);
  /// Splits a row number into the indices of `outer` axes and opens them.
  void open_rows(Builder& b, const std::vector<const Axis*>& outer, Ref row);
  /// The access' element index.
  Ref index(Builder& b, std::size_t access) const;
  /// How far the accesses have come, to return to when loops have closed.
  std::vector<Ref> position() const;
  void return_to(const std::vector<Ref>& position);
  /// The one stride with which the access walks the axis; -1 where it takes several, or has a negative one.
  Dim stride(std::size_t access, const Axis& axis) const;
  /// Whether lanes along the axis go through memory in large steps, beside a long axis along which memory runs on.
  bool is_across(std::size_t access, const Axis& lanes) const;
  /// No axis in the list moves the access.
  bool is_still(std::size_t access, const std::vector<const Axis*>& axes) const;
  bool walks(std::size_t access, const graph::Strides& strides) const { return accesses_[access].strides == strides; }
  bool same_walk(std::size_t a, std::size_t b) const { return accesses_[a].strides == accesses_[b].strides; }

 private:
  struct Run {  // neighbouring axes of the space that an access walks by one stride
    Dim extent, stride;
  };
  std::vector<Run> runs(const Access& a, const Axis& axis) const;
  void shorten_positions();
  void open(Builder& b, const Axis& axis, Ref index, bool lanes, Access& access);

  Shape space_;
  std::vector<char> reduced_;
  std::vector<Access> accesses_;
  struct Position {
    std::size_t dim;  // of the space; past its end: an axis of size 1
    Dim unit;
  };
  std::map<std::size_t, Position> positions_;  // by access
};

}  // namespace sinter::kernel
