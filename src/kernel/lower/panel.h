// Panel: arrays that lie across the lanes, brought by tiles into scratch memory, in rows along the lanes. Layer: kernel.
//
// Lanes that go through memory in large steps use one element of each line that they touch. So a task takes a strip of the axis along which
// such arrays do lie (`tiled`), reads its part of them in whole lines, and then goes over the strip's rows as if they had lain that way.
#pragma once
#include <vector>

#include "kernel/lower/body.h"

namespace sinter::kernel {

class Panel {
 public:
  /// After the nest has formed its axes, before loops open. `height`: rows of a strip; `width`: columns that are filled at once. Constants
  /// of the kernel if they are `fixed`, a power of two of rows then, no more than there are.
  Panel(Builder& b, Nest& nest, Body& body, const Axis& tiled, const Axis& lanes, std::int64_t height, std::int64_t width,
        bool fixed = false);

  std::int64_t strips() const { return strips_; }
  /// The rows of this strip; rows [top, bottom), at most `height`.
  void open(Ref strip);
  void open(Ref top, Ref bottom);
  /// What `fill` reads later: from row `top` and column `first` on, where the other axes are at `position`.
  struct Later {
    std::vector<Ref> position;
    Ref top, first;
  };
  /// Reads the tiles of columns [first, last), at most `width`, of the strip. Asks for half of what is read later.
  void fill(Ref first, Ref last, const Later* later = nullptr);
  /// Asks for one row's share of the other half.
  void ask(const Later& later, Ref row);
  /// The first row of a strip.
  Ref top_of(Ref strip) { return b_.compute(ops::Op::Multiply, Dtype::int64, strip, height_); }
  /// Opens a Serial loop over the strip's rows, in the nest, too. `ahead`: where there the row so many further is, or would be.
  Ref loop(std::int64_t rows_ahead = 0, std::vector<Ref>* ahead = nullptr);
  /// Of each scratch buffer.
  const std::vector<std::int64_t>& bytes() const { return bytes_; }

 private:
  std::int64_t share() const { return (width_ + rows_ - 1) / rows_; }  // columns of a row
  Ref minimum(Ref x, Ref y) { return b_.compute(ops::Op::Minimum, Dtype::int64, x, y); }

  Builder& b_;
  Nest& nest_;
  const Axis& tiled_;
  const Axis& lanes_;
  std::vector<Body::Across> arrays_;
  std::vector<std::size_t> accesses_;  // the arrays', and the last: that of all panels
  std::int64_t strips_, rows_, width_;
  bool fixed_;
  std::vector<std::int64_t> bytes_;
  Ref count_, height_, pitch_;
  Ref top_ = kNone, bottom_ = kNone;  // the strip's rows
  Ref base_ = kNone, read_ = kNone;   // the first that is read, and how many
};

/// What a kernel over rows along the lanes needs of a panel: none if nothing lies across, or if whole rows of a strip take too much memory.
struct RowPanel {
  const Axis* tiled = nullptr;
  std::int64_t height = 0;
};
RowPanel row_panel(const Body& body, const std::vector<const Axis*>& kept, const Axis& lanes);

/// Rows of a strip whose panels, of rows of `width` elements of `bytes` in all, take at most so much memory; 0: there are none.
std::int64_t panel_height(std::int64_t width, std::int64_t bytes, std::int64_t memory);

}  // namespace sinter::kernel
