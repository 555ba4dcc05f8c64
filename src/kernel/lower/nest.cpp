#include "kernel/lower/nest.h"

#include <algorithm>
#include <span>

namespace sinter::kernel {

using ops::Op;

std::vector<Nest::Run> Nest::runs(const Access& a, const Axis& axis) const {
  std::vector<Run> list;
  for (std::size_t d : axis.dims) {
    const Dim n = space_[d], stride = a.strides[d];
    if (!list.empty() && list.back().stride == stride * n)
      list.back() = {list.back().extent * n, stride};
    else
      list.push_back({n, stride});
  }
  return list;
}

graph::Strides Nest::spread(const Shape& shape, const graph::Strides& strides) const {
  if (shape == space_) return strides;
  graph::Strides out(space_.size(), 0);
  std::size_t from = 0;
  for (std::size_t d = 0; d < space_.size(); ++d) {
    if (reduced_[d] || space_[d] == 1) continue;
    while (from < shape.size() && shape[from] == 1) ++from;
    check(from < shape.size() && shape[from] == space_[d], "lower: an operand has neither the space's shape nor that of its rows");
    out[d] = strides[from++];
  }
  return out;
}

std::size_t Nest::add_walk(const std::vector<std::pair<const Axis*, std::int64_t>>& steps) {
  graph::Strides strides(space_.size(), 0);
  for (auto [axis, step] : steps)
    for (std::size_t i = axis->dims.size(); i-- > 0; step *= space_[axis->dims[i]]) strides[axis->dims[i]] = step;
  return add(std::move(strides));
}

// The strides of the row-major shape, of d and what is behind it.
std::size_t Nest::add_position(const Shape& shape, std::size_t d) {
  graph::Strides strides = graph::row_major(shape), only(shape.size(), 0);
  const Dim unit = strides[d];
  std::fill_n(strides.begin(), d, 0);
  only[d] = 1;
  const std::size_t access = add(spread(shape, strides));
  only = spread(shape, only);
  const auto dim = static_cast<std::size_t>(std::find(only.begin(), only.end(), 1) - only.begin());
  positions_[access] = {dim, unit};
  return access;
}

// Nothing of axes that are not joined with its own.
void Nest::shorten_positions() {
  for (auto& [access, position] : positions_)
    for (const Axis& axis : axes)
      if (auto d = std::find(axis.dims.begin(), axis.dims.end(), position.dim); d != axis.dims.end()) {
        graph::Strides& strides = accesses_[access].strides;
        std::fill(strides.begin(), strides.end(), 0);
        position.unit = 1;
        for (auto last = axis.dims.end(); last-- != d; position.unit *= space_[*last]) strides[*last] = position.unit;
        position.unit = strides[*d];
      }
}

void Nest::form_axes() {
  for (std::size_t d = 0; d < space_.size(); ++d) {
    if (space_[d] == 1) continue;
    Axis axis{space_[d], reduced_[d] != 0, {d}};
    if (!axes.empty() && axes.back().reduced == axis.reduced) {
      Axis joined = axes.back();
      joined.extent *= axis.extent;
      joined.dims.push_back(d);
      bool fits = true;
      for (const Access& a : accesses_) fits = fits && runs(a, joined).size() == 1;
      if (axis.reduced || fits) {
        axes.back() = std::move(joined);
        continue;
      }
    }
    axes.push_back(std::move(axis));
  }
  shorten_positions();
}

Ref Nest::arg(Builder& b, const Dim& value) {
  integers.push_back(value);
  return b.arg();
}

void Nest::open(Builder& b, const Axis& axis, Ref index, bool lanes) {
  for (Access& a : accesses_) open(b, axis, index, lanes, a);
}
void Nest::open(Builder& b, const Axis& axis, Ref index, bool lanes, const std::vector<std::size_t>& accesses) {
  for (std::size_t a : accesses) open(b, axis, index, lanes, accesses_[a]);
}
void Nest::open(Builder& b, const Axis& axis, Ref index, bool lanes, Access& a) {
  std::vector<Run> list = runs(a, axis);
  auto step = [&](Ref i, const Dim& stride) {
    if (stride == 0) return;
    Ref term = lanes && stride == 1 ? i : b.compute(Op::Multiply, Dtype::int64, i, arg(b, stride));
    a.base = a.base == kNone ? term : b.compute(Op::Add, Dtype::int64, a.base, term);
  };
  if (list.size() == 1) return step(index, list[0].stride);
  Ref rest = index;
  for (std::size_t k = list.size(); k-- > 0;) {
    Ref i = rest;
    if (k > 0) {
      Ref extent = arg(b, list[k].extent);
      i = b.compute(Op::Remainder, Dtype::int64, rest, extent);
      const auto outer = std::span(list).first(k);
      if (std::any_of(outer.begin(), outer.end(), [](const Run& r) { return r.stride != 0; }))
        rest = b.compute(Op::FloorDivide, Dtype::int64, rest, extent);
    }
    step(i, list[k].stride);
  }
}

std::vector<std::vector<Ref>> Nest::positions(Builder& b, const Axis& axis, Ref index, int count) {
  std::vector<std::vector<Ref>> out(static_cast<std::size_t>(count));
  for (Access& a : accesses_) {
    const Ref before = a.base;
    const std::vector<Run> list = runs(a, axis);
    const bool steps = list.size() == 1 && list[0].stride != 0;
    Ref step = kNone;
    for (int i = 0; i < count; ++i) {
      if (i > 0 && steps) {
        if (i == 1) step = arg(b, list[0].stride);
        a.base = b.compute(Op::Add, Dtype::int64, a.base, step);
      } else {
        a.base = before;
        open(b, axis, i == 0 ? index : b.compute(Op::Add, Dtype::int64, index, b.index(i)), false, a);
      }
      out[static_cast<std::size_t>(i)].push_back(a.base);
    }
    a.base = before;
  }
  return out;
}

void Nest::open_rows(Builder& b, const std::vector<const Axis*>& outer, Ref row) {
  for (std::size_t k = outer.size(); k-- > 0;) {
    Ref i = row;
    if (k > 0) {
      Ref extent = arg(b, outer[k]->extent);
      i = b.compute(Op::Remainder, Dtype::int64, row, extent);
      row = b.compute(Op::FloorDivide, Dtype::int64, row, extent);
    }
    open(b, *outer[k], i, false);
  }
}

Ref Nest::index(Builder& b, std::size_t access) const {
  Ref base = accesses_[access].base;
  return base == kNone ? b.index(0) : base;
}

std::vector<Ref> Nest::position() const {
  std::vector<Ref> bases;
  for (const Access& a : accesses_) bases.push_back(a.base);
  return bases;
}
void Nest::return_to(const std::vector<Ref>& position) {
  for (std::size_t i = 0; i < accesses_.size(); ++i) accesses_[i].base = position[i];
}

Dim Nest::stride(std::size_t access, const Axis& axis) const {
  std::vector<Run> list = runs(accesses_[access], axis);
  return list.size() == 1 && list[0].stride >= 0 ? list[0].stride : Dim(-1);
}

Dim Nest::reach(const Axis& axis) const {
  Dim most = space_.product();
  for (std::size_t a = 0; a < accesses_.size(); ++a)
    if (const Dim elements = axis.extent * stride(a, axis); elements > most) most = elements;
  return most;
}

bool Nest::is_across(std::size_t access, const Axis& lanes) const {
  const std::int64_t step = runs(accesses_[access], lanes).back().stride;
  if (step == 0 || step == 1) return false;
  for (std::size_t d = 0; d < space_.size(); ++d)
    if (accesses_[access].strides[d] == 1 && space_[d] >= kTile) return true;
  return false;
}

bool Nest::is_still(std::size_t access, const std::vector<const Axis*>& list) const {
  for (const Axis* axis : list)
    for (std::size_t d : axis->dims)
      if (accesses_[access].strides[d] != 0) return false;
  return true;
}

}  // namespace sinter::kernel
