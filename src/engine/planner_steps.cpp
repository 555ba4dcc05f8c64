// The steps of a plan: kernels of groups, copies, library calls, regions. Layer: engine.
#include <algorithm>
#include <map>
#include <tuple>

#include "backends/target.h"
#include "base/knobs.h"
#include "engine/planner.h"
#include "graph/bodies.h"
#include "ops/product.h"

namespace sinter::engine {

using graph::Id;
using graph::Layout;
using graph::Node;
using ops::Op;
using ops::OpKind;

namespace {

// Instructions, times elements, that make a range of tasks worth a thread: about 10 us of work against a fork of 1 to 7 us.
constexpr double kGrainWork = 400e3;
constexpr std::int64_t kCached = 1 << 20;  // bytes that are found in a cache again whatever the order

}  // namespace

void Planner::emit(const Item& item) {
  if (item.group) return emit_group(*item.group);
  const Node& n = g_[item.node];
  if (ops::info(n.op).kind == OpKind::Region) return emit_region(item.node);
  const Place& at = *places_[item.node];
  switch (n.op) {
    case Op::Concatenate: {
      std::size_t axis = static_cast<std::size_t>(n.attrs[0]);
      Place part = at;
      for (Id u : n.in) {
        if (!places_[u] || places_[u]->storage != at.storage) emit_copy(u, part, g_[u].type.shape);
        part.layout.offset += g_[u].type.shape[axis] * at.layout.strides[axis];
      }
      return;
    }
    case Op::ScatterAdd:
    case Op::PutAlong: {
      emit_copy(n.in[0], at, n.type.shape);
      if (n.type.shape.product() == 0 || g_[n.in[2]].type.shape.product() == 0) return;
      std::vector<kernel::Lowered> list;
      list.push_back(kernel::lower_scatter(g_, item.node, [&](Id id) -> const Layout& { return places_[id]->layout; }));
      return emit_lowered(std::move(list), [&](Id id) -> const Place& { return *places_[id]; }, [](Id id) { return id; });
    }
    default: break;
  }
  switch (n.op) {
    case Op::Solve: return emit_solve(item.node);
    case Op::ArgSort: return emit_sort(item.node);
    case Op::Conv:
    case Op::ConvInput:
    case Op::ConvWeight: return emit_convolution(item.node);
    default: break;
  }
  if (ops::info(n.op).kind == OpKind::Call) return emit_product(item.node);
  const Shape& shape = g_[n.in[0]].type.shape;  // a view: its operand, row-major
  emit_copy(n.in[0], Place{at.storage, {0, graph::row_major(shape)}}, shape);
}

void Planner::emit_group(const graph::Group& group) {
  std::map<Id, Place> copies;
  auto place = [&](Id id) -> const Place& {
    auto it = copies.find(id);
    return it == copies.end() ? *places_[id] : it->second;
  };
  auto layout = [&](Id id) -> const Layout& { return place(id).layout; };
  std::vector<kernel::Lowered> list = kernel::lower(g_, group, layout);
  if (!list[0].across.empty()) {
    for (Id id : list[0].across) {
      copies[id] = {new_storage(bytes_of(g_[id].type), kNoItem), {0, graph::row_major(g_[id].type.shape)}};
      emit_copy(id, copies[id], g_[id].type.shape);
    }
    list = kernel::lower(g_, group, layout);
  }
  emit_lowered(std::move(list), place, [](Id id) { return id; });
}

void Planner::emit_copy(Id from, const Place& to, const Shape& shape) {
  if (shape.product() == 0) return;
  const Node& source = g_[from];
  graph::Graph small;
  bool literal = graph::is_scalar_constant(source) && !places_[from];
  Id in = literal ? small.add({Op::Constant, {}, source.attrs, source.type}) : small.add({Op::Input, {}, {0}, source.type});
  Id out = small.add({Op::Copy, {in}, {}, {source.type.dtype, shape}});
  small.set_outputs({out});
  graph::Group group{{out}, {out}, shape, {}};
  auto place = [&](Id id) -> const Place& { return id == out ? to : *places_[from]; };
  emit_lowered(kernel::lower(small, group, [&](Id id) -> const Layout& { return place(id).layout; }), place, [&](Id) { return from; });
}

void Planner::emit_lowered(std::vector<kernel::Lowered> list, FunctionRef<const Place&(Id)> place_of, FunctionRef<Id(Id)> constant_of) {
  std::vector<std::uint32_t> scratch;  // written by the first kernel, read by the second, in order
  for (kernel::Lowered& l : list) {
    Launch launch;
    std::vector<std::pair<std::uint32_t, std::int64_t>> slots;
    std::vector<Use> uses;
    std::size_t next_scratch = 0;
    std::map<std::uint32_t, std::int64_t> read;  // bytes, by storage
    for (std::size_t i = 0; i < l.buffers.size(); ++i) {
      const kernel::Buffer& buffer = l.kernel.buffers[i];
      if (buffer.scratch) {
        launch.scratch.push_back(launch.scratch_bytes);
        launch.scratch_bytes += l.own_bytes[launch.scratch.size() - 1];
        continue;
      }
      check(launch.scratch.empty(), "plan: scratch buffers are not a kernel's last");
      const std::int64_t bytes = l.buffers[i].elements * size_of(buffer.dtype);
      if (l.buffers[i].node == graph::kKeep) {
        launch.bytes += bytes;
        if (buffer.written) scratch.push_back(new_storage(0, kNoItem));
        std::uint32_t s = buffer.written ? scratch.back() : scratch[next_scratch++];
        if (buffer.written) storages_[s].bytes = l.scratch_bytes;
        slots.push_back({s, 0});
        uses.push_back({s, buffer.written});
        continue;
      }
      const Place& at = place_of(l.buffers[i].node);
      if (buffer.written)
        launch.bytes += bytes;
      else  // parts of it in several ways, but its memory once
        read[at.storage] = std::min(read[at.storage] + bytes, std::max(storages_[at.storage].bytes, bytes));
      slots.push_back({at.storage, at.layout.offset * size_of(buffer.dtype)});
      uses.push_back({at.storage, buffer.written, l.buffers[i].same_index, size_of(buffer.dtype), slots.back().second});
    }
    for (std::size_t i = 0; i < std::min(uses.size(), kernel::kMostStreams); ++i) {
      kernel::Buffer& buffer = l.kernel.buffers[i];
      if (buffer.written) launch.written |= std::uint64_t{1} << i;
      buffer.large = buffer.written && storages_[uses[i].storage].bytes >= base::knobs().stream_bytes && !kernel::reads(l.kernel, i);
      if (buffer.large) launch.large |= std::uint64_t{1} << i;
    }
    for (const auto& [storage, bytes] : read) launch.bytes += bytes;
    launch.words.assign(l.buffers.size(), 0);
    for (std::int64_t v : l.integers) launch.words.push_back(static_cast<std::uint64_t>(v));
    for (Id id : l.scalars) {
      launch.scalars.push_back(constant_index(constant_of(id)));
      launch.words.push_back(0);
    }
    if (!launch.scratch.empty()) launch.scratch_bytes += aligned(static_cast<std::int64_t>(launch.words.size() * sizeof(std::uint64_t)));
    launch.tasks = l.tasks;
    launch.work = l.work;
    double per_task = l.tasks > 0 ? l.work / static_cast<double>(l.tasks) : 0;
    launch.grain = per_task >= kGrainWork || base::knobs().split ? 1 : static_cast<std::int64_t>(kGrainWork / std::max(per_task, 1.0)) + 1;
    // A launch goes through its largest array the other way than the launch before, whose last tasks have left their part of it in a cache:
    // the variance down 64 MB of columns, beside a cache of 32 MB, takes 2.3 ms instead of 2.7.
    auto most = std::max_element(uses.begin(), uses.end(), [&](const Use& x, const Use& y) {
      return std::pair(storages_[x.storage].touched, storages_[x.storage].bytes) <
             std::pair(storages_[y.storage].touched, storages_[y.storage].bytes);
    });
    if (most != uses.end() && storages_[most->storage].touched && storages_[most->storage].bytes > kCached)
      launch.backward = !storages_[most->storage].backward;
    for (const Use& u : uses) storages_[u.storage].touched = true, storages_[u.storage].backward = launch.backward;
    kernels_.push_back(std::move(l.kernel));
    plan_.steps_.push_back(std::move(launch));
    slots_.push_back(std::move(slots));
    uses_.push_back(std::move(uses));
  }
}

std::pair<Planner::Place, kernel::CallDesc::Matrix> Planner::product_operand(Id id, std::int64_t batch, bool of_library) {
  const Shape& shape = g_[id].type.shape;
  const auto m = graph::matrix_layout(shape, places_[id]->layout.strides);
  if (m && (!of_library || ops::lie_apart(*m, shape[shape.size() - 2], shape.back(), batch))) return {*places_[id], *m};
  Place copy{new_storage(bytes_of(g_[id].type), kNoItem), {0, graph::row_major(shape)}};
  emit_copy(id, copy, shape);
  return {copy, *graph::matrix_layout(shape, copy.layout.strides)};
}

void Planner::emit_product(Id id) {
  const Node& n = g_[id];
  std::size_t rank = n.type.shape.size();
  kernel::CallDesc desc;
  desc.alone = options_.alone;
  desc.dtype = n.type.dtype;
  desc.m = n.type.shape[rank - 2];
  desc.n = n.type.shape[rank - 1];
  desc.k = g_[n.in[0]].type.shape[rank - 1];
  for (std::size_t d = 0; d + 2 < rank; ++d) desc.batch *= n.type.shape[d];
  Place x, y, out = *places_[id];
  const bool few_rows = ops::has_few_rows(desc.m, desc.n, desc.k);
  std::tie(x, desc.x) = product_operand(n.in[0], desc.batch, !few_rows);
  std::tie(y, desc.y) = product_operand(n.in[1], desc.batch, !few_rows);
  if (few_rows) return emit_few_rows(desc, x, y, out);
  emit_call(backends::make_product(desc), {{x, false}, {y, false}, {out, true}}, size_of(desc.dtype), desc);
}

// Few columns are few rows of the transposed product.
void Planner::emit_few_rows(const kernel::CallDesc& d, const Place& x, const Place& y, const Place& out) {
  const std::int64_t x_row = d.x.transposed ? 1 : d.x.leading, x_k = d.x.transposed ? d.x.leading : 1;
  const std::int64_t y_column = d.y.transposed ? d.y.leading : 1, y_k = d.y.transposed ? 1 : d.y.leading;
  kernel::FewRows f{d.dtype, d.batch, d.m, d.n, d.k, {d.x.batch, x_row, x_k}, {d.y.batch, y_k, y_column}, {d.m * d.n, d.n, 1}};
  const bool swapped = d.m > d.n;
  if (swapped) f = {d.dtype, d.batch, d.n, d.m, d.k, {d.y.batch, y_column, y_k}, {d.x.batch, x_k, x_row}, {d.m * d.n, 1, d.n}};
  const Place* places[] = {swapped ? &y : &x, swapped ? &x : &y, &out};
  std::vector<kernel::Lowered> list;
  list.push_back(kernel::lower_few_rows(f, backends::host_target().lanes));
  emit_lowered(std::move(list), [&](Id i) -> const Place& { return *places[i]; }, [](Id i) { return i; });
}

// LAPACK works in place and by columns: on copies.
void Planner::emit_solve(Id id) {
  const Node& n = g_[id];
  const std::size_t rank = n.type.shape.size();
  kernel::SolveDesc desc{n.type.dtype, 1, n.type.shape[rank - 2], n.type.shape[rank - 1]};
  for (std::size_t d = 0; d + 2 < rank; ++d) desc.batch *= n.type.shape[d];
  const Shape& matrices = g_[n.in[0]].type.shape;
  const Place a{new_storage(bytes_of(g_[n.in[0]].type), kNoItem), {0, graph::row_major(matrices)}};
  Place b{new_storage(bytes_of(n.type), kNoItem), {0, graph::row_major(n.type.shape)}};
  b.layout.strides[rank - 2] = 1, b.layout.strides[rank - 1] = desc.n;
  const Place pivots{new_storage(desc.batch * desc.n * size_of(Dtype::int32), kNoItem), {0, {}}};
  emit_copy(n.in[0], a, matrices);
  emit_copy(n.in[1], b, n.type.shape);
  emit_call(backends::make_solve(desc), {{a, true}, {b, true}, {pivots, true}, {*places_[id], true}}, size_of(desc.dtype));
}

Planner::Place Planner::row_major_operand(Id id) {
  const graph::Type& type = g_[id].type;
  const Place& at = *places_[id];
  if (graph::is_row_major(type.shape, at.layout.strides)) return at;
  const Place copy{new_storage(bytes_of(type), kNoItem), {0, graph::row_major(type.shape)}};
  emit_copy(id, copy, type.shape);
  return copy;
}

void Planner::emit_sort(Id id) {
  const Node& n = g_[id];
  const auto axis = static_cast<std::size_t>(n.attrs[0]);
  kernel::SortDesc desc{g_[n.in[0]].type.dtype, 1, n.type.shape[axis], 1};
  for (std::size_t d = 0; d < n.type.shape.size(); ++d)
    if (d != axis) (d < axis ? desc.outer : desc.inner) *= n.type.shape[d];
  const Place x = row_major_operand(n.in[0]);
  backends::WithWorkspace made = backends::make_sort(desc);
  const Place workspace{new_storage(made.workspace, kNoItem), {0, {}}};
  emit_call(std::move(made.routine), {{x, false}, {*places_[id], true}, {workspace, true}}, size_of(desc.dtype));
}

void Planner::emit_convolution(Id id) {
  const Node& n = g_[id];
  const Shape operands[] = {g_[n.in[0]].type.shape, g_[n.in[1]].type.shape};
  const kernel::ConvDesc desc{n.type.dtype, ops::result_role(n.op), ops::convolution_of(n.op, n.attrs, operands)};
  const Place a = row_major_operand(n.in[0]), b = row_major_operand(n.in[1]);
  backends::WithWorkspace made = backends::make_convolution(desc);
  const Place workspace{new_storage(made.workspace, kNoItem), {0, {}}};
  emit_call(std::move(made.routine), {{a, false}, {b, false}, {*places_[id], true}, {workspace, true}}, size_of(desc.dtype));
}

// Places, and whether the routine writes there. `bytes`: of an element, where a place does not begin its storage.
void Planner::emit_call(std::shared_ptr<const backends::Routine> routine, std::vector<std::pair<Place, bool>> places, int bytes,
                        std::optional<kernel::CallDesc> product) {
  check(places.size() <= Call::kMostBuffers, "plan: a library call has too many buffers");
  plan_.steps_.push_back(Call{std::move(routine), {}, product});
  slots_.emplace_back();
  uses_.emplace_back();
  for (const auto& [place, written] : places) {
    slots_.back().push_back({place.storage, place.layout.offset * bytes});
    uses_.back().push_back({place.storage, written, false});
  }
}

// Operands are row-major, in regular calls too: so the bodies are the same whatever a compiled call makes of the views around them.
void Planner::emit_region(Id id) {
  const Node& n = g_[id];
  Region region{n, {}, {}, {}, {}};
  std::vector<std::pair<std::uint32_t, std::int64_t>> slots;
  std::vector<Use> uses;
  for (Id in : n.in) {
    const Place at = row_major_operand(in);
    const graph::Type& type = g_[in].type;
    region.types.push_back(type);
    slots.push_back({at.storage, at.layout.offset * size_of(type.dtype)});
    uses.push_back({at.storage});
  }
  for (Id u = id + 1; u < g_.size(); ++u)
    if (g_[u].op == Op::Get && g_[u].in[0] == id) {
      region.results.push_back({static_cast<std::uint32_t>(g_[u].attrs[0]), {}, places_[u]->layout.strides});
      slots.push_back({places_[u]->storage, 0});
      uses.push_back({places_[u]->storage, true, false});
    }
  for (std::size_t i = 0; i < n.bodies.size(); ++i) {
    if (n.op == Op::Blocks && graph::BlocksParts(n).count(i) == 0) {  // with these sizes it is not run
      region.bodies.push_back(nullptr);
      continue;
    }
    const Prepared& body = *prepared_.bodies.at(id)[i];
    std::vector<Layout> layouts;
    for (Id input : graph::inputs_of(body.graph)) layouts.push_back({0, graph::row_major(body.graph[input].type.shape)});
    region.bodies.push_back(
        std::make_shared<const Plan>(body, layouts, PlanOptions{.fast_math = options_.fast_math, .alone = n.op == Op::Blocks}));
    plan_.cost_ += region.bodies.back()->cost();
  }
  plan_.steps_.push_back(std::move(region));
  slots_.push_back(std::move(slots));
  uses_.push_back(std::move(uses));
}

}  // namespace sinter::engine
