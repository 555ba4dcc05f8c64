#include "engine/planner.h"

#include <algorithm>
#include <cstring>
#include <queue>
#include <tuple>

#include "base/log.h"
#include "graph/bodies.h"
#include "runtime/buffer.h"

namespace sinter::engine {

using graph::Id;
using graph::Layout;
using graph::Node;
using ops::Op;
using ops::OpKind;

void Planner::run() {
  base::Laps laps(2, g_.name);
  for (Id id = 0; id < g_.size(); ++id)
    if (graph::is_scalar_constant(g_[id])) constant_index(id);
  place_nodes();
  collect_reads();
  for (std::uint32_t i : order()) emit(items_[i]);
  laps.lap("lowered");
  std::vector<std::shared_ptr<const Executable>> loaded = load_kernels(kernels_, options_.fast_math, plan_.cost_, worth());
  laps.lap("kernels");
  std::size_t next = 0;
  for (Step& step : plan_.steps_)
    if (Launch* l = std::get_if<Launch>(&step)) l->kernel = std::move(loaded[next++]);
  assign_buffers();
  make_outputs();
  laps.lap("memory");
}

Worth Planner::worth() const {
  Worth worth{{}, options_.once};
  for (const Step& step : plan_.steps_)
    if (const Launch* l = std::get_if<Launch>(&step)) worth.launches.push_back({l->work, l->bytes});
  return worth;
}

std::uint32_t Planner::constant_index(Id id) {
  auto [it, fresh] = constant_index_.try_emplace(id, static_cast<std::uint32_t>(plan_.constants_.size()));
  if (fresh) plan_.constants_.push_back(static_cast<std::uint64_t>(g_[id].attrs[0]));
  return it->second;
}

std::uint32_t Planner::new_storage(std::int64_t bytes, std::uint32_t item) {
  Storage s;
  s.bytes = bytes;
  s.item = item;
  storages_.push_back(std::move(s));
  return static_cast<std::uint32_t>(storages_.size() - 1);
}
std::uint32_t Planner::own_storage(Id id, std::uint32_t item) {
  std::uint32_t s = new_storage(bytes_of(g_[id].type), item);
  places_[id] = Place{s, {0, graph::row_major(g_[id].type.shape)}};
  return s;
}

namespace {
// What kernels compute beside pointwise nodes.
bool is_folding(Op op) { return ops::info(op).kind == OpKind::Reduce || ops::info(op).kind == OpKind::Cumulative; }
}  // namespace

// ---- where nodes lie ------------------------------------------------------------------------------------------------------------------

// Results that nothing but a concatenate reads, of kernels that can store them anywhere.
void Planner::find_parts() {
  whole_.assign(g_.size(), graph::kKeep);
  const std::vector<int> uses = graph::count_uses(g_);
  for (Id id = 0; id < g_.size(); ++id)
    if (g_[id].op == Op::Concatenate)
      for (Id u : g_[id].in)
        if (uses[u] == 1 && (graph::is_pointwise(g_[u]) || ops::info(g_[u].op).kind == OpKind::Cumulative)) whole_[u] = id;
}
void Planner::place_part(Id id, std::uint32_t item) {
  const Id whole = whole_[id];
  const Node& n = g_[whole];
  if (!places_[whole]) own_storage(whole, kNoItem);
  Place at = *places_[whole];
  const auto axis = static_cast<std::size_t>(n.attrs[0]);
  for (Id u : n.in) {
    if (u == id) break;
    at.layout.offset += g_[u].type.shape[axis] * at.layout.strides[axis];
  }
  places_[id] = std::move(at);
  parts_[whole].push_back(item);
}

void Planner::place_nodes() {
  places_.resize(g_.size());
  find_parts();
  std::vector<std::uint32_t> group_item(g_.size(), kNoItem);  // of stored members, and of nodes with several results
  for (const graph::Group& group : partition_.groups) {
    for (Id id : group.outputs) group_item[id] = static_cast<std::uint32_t>(items_.size());
    items_.push_back({&group, 0, {}, {}});
  }
  for (Id id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    if (n.op == Op::Input) {
      std::uint32_t s = new_storage(bytes_of(n.type), kNoItem);
      storages_[s].input = n.attrs[0];
      places_[id] = Place{s, inputs_[static_cast<std::size_t>(n.attrs[0])]};
    } else if (group_item[id] != kNoItem) {
      if (whole_[id] == graph::kKeep)
        own_storage(id, group_item[id]);
      else
        place_part(id, group_item[id]);
    } else if (n.op == Op::Constant && n.attrs.size() > 1) {
      std::uint32_t s = own_storage(id, kNoItem);
      int bytes = size_of(n.type.dtype);
      storages_[s].fixed = runtime::allocate(n.attrs.size() * static_cast<std::size_t>(bytes));
      for (std::size_t i = 0; i < n.attrs.size(); ++i)
        std::memcpy(static_cast<char*>(storages_[s].fixed.data()) + i * static_cast<std::size_t>(bytes), &n.attrs[i],
                    static_cast<std::size_t>(bytes));
    } else if (ops::info(n.op).kind == OpKind::Region) {
      group_item[id] = static_cast<std::uint32_t>(items_.size());
      items_.push_back({nullptr, id, {}, {}});
    } else if (n.op == Op::Get) {
      std::uint32_t s = own_storage(id, group_item[n.in[0]]);
      const Node& region = g_[n.in[0]];
      if (region.op == Op::Blocks) place_block_result(id, graph::count_attribute(region, 0));
      // All but what a scan stacks and what blocks write.
      storages_[s].late = region.op != Op::Blocks && (region.op != Op::Scan || n.attrs[0] < region.attrs[1]);
    } else if (n.op == Op::Barrier) {
      places_[id] = places_[n.in[0]];
    } else if (ops::info(n.op).kind == OpKind::View) {
      place_view(id);
    } else if (!graph::is_pointwise(n) && n.op != Op::Constant && !is_folding(n.op)) {
      const auto item = static_cast<std::uint32_t>(items_.size());
      if (!places_[id]) own_storage(id, item);
      storages_[places_[id]->storage].item = item;
      items_.push_back({nullptr, id, {}, std::move(parts_[id])});
    }
  }
}

// A result that is only read transposed lies as its reader wants it, if its rows stay in one piece: heads of attention side by side.
void Planner::place_block_result(Id id, std::size_t grid) {
  Id reader = graph::kKeep;
  for (Id u = id + 1; u < g_.size(); ++u)
    for (Id in : g_[u].in)
      if (in == id) {
        if (reader != graph::kKeep || g_[u].op != Op::Transpose) return;
        reader = u;
      }
  const auto& outputs = g_.outputs();
  if (reader == graph::kKeep || std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return;
  const graph::Strides wanted = graph::row_major(g_[reader].type.shape);
  Layout& layout = places_[id]->layout;
  graph::Strides strides(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) strides[static_cast<std::size_t>(g_[reader].attrs[i])] = wanted[i];
  if (std::equal(strides.begin() + static_cast<std::ptrdiff_t>(grid) + 1, strides.end(),
                 layout.strides.begin() + static_cast<std::ptrdiff_t>(grid) + 1))
    layout.strides = std::move(strides);
}

void Planner::place_view(Id id) {
  const Node& n = g_[id];
  const Node& operand = g_[n.in[0]];
  if (!places_[n.in[0]]) return;  // read inside a kernel alone
  Place at = *places_[n.in[0]];
  if (auto layout = graph::view_layout(n.op, n.attrs, n.type.shape, operand.type.shape, at.layout)) {
    places_[id] = Place{at.storage, *layout};
    return;
  }
  // The elements are copied into row-major memory, which every view can show.
  std::uint32_t s = new_storage(bytes_of(operand.type), static_cast<std::uint32_t>(items_.size()));
  items_.push_back({nullptr, id, {}, {}});
  places_[id] = Place{s, *graph::view_layout(n.op, n.attrs, n.type.shape, operand.type.shape, {0, graph::row_major(operand.type.shape)})};
}

// ---- order ----------------------------------------------------------------------------------------------------------------------------

void Planner::collect_reads() {
  for (Item& item : items_) {
    auto read = [&](Id id) {
      if (places_[id]) item.reads.push_back(places_[id]->storage);
      for (; ops::info(g_[id].op).kind == OpKind::View || g_[id].op == Op::Barrier; id = g_[id].in[0])
        if (g_[id].op == Op::Barrier && places_[g_[id].in[1]]) item.reads.push_back(places_[g_[id].in[1]]->storage);
    };
    if (!item.group) {
      for (Id u : g_[item.node].in) read(u);
      continue;
    }
    for (Id id : item.group->members)
      for (Id u : g_[id].in)
        if (!std::binary_search(item.group->members.begin(), item.group->members.end(), u)) read(u);
  }
}

// A topological order that keeps to the order of the items where it can. But what makes results that nothing else reads comes as soon as it
// can: its operands lie in a cache, and their memory is free behind it; no memory waits for it, for results have theirs from the start. If
// it reads an input, whose memory it may take, then only after all others that read this, and after all that may fail.
std::vector<std::uint32_t> Planner::order() const {
  const std::vector<char> last = makes_results();
  std::vector<int> waits(items_.size(), 0);
  std::vector<std::vector<std::uint32_t>> next(items_.size());
  // By storage of an input, and behind them for regions: items that come before the last ones, and the last ones.
  std::vector<std::pair<int, std::vector<std::uint32_t>>> gates(storages_.size() + 1);
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    auto wait_for = [&](std::uint32_t from) {
      next[from].push_back(i);
      ++waits[i];
    };
    bool reads_input = false;
    for (std::uint32_t s : items_[i].reads) {
      if (std::uint32_t from = storages_[s].item; from != kNoItem && from != i) wait_for(from);
      if (storages_[s].input < 0) continue;
      last[i] ? gates[s].second.push_back(i) : void(++gates[s].first);
      reads_input = true;
    }
    if (last[i] && reads_input) gates.back().second.push_back(i);
    if (!last[i] && is_region(items_[i])) ++gates.back().first;
    for (std::uint32_t from : items_[i].after) wait_for(from);
  }
  for (const auto& [before, behind] : gates)
    if (before > 0)
      for (std::uint32_t i : behind) ++waits[i];
  std::priority_queue<std::pair<bool, std::uint32_t>, std::vector<std::pair<bool, std::uint32_t>>, std::greater<>> ready;
  auto one_less = [&](std::uint32_t i) {
    if (--waits[i] == 0) ready.push({!last[i], i});
  };
  auto pass = [&](std::size_t gate) {
    if (--gates[gate].first > 0) return;
    for (std::uint32_t i : gates[gate].second) one_less(i);
  };
  for (std::uint32_t i = 0; i < items_.size(); ++i)
    if (waits[i] == 0) ready.push({!last[i], i});
  std::vector<std::uint32_t> list;
  while (!ready.empty()) {
    const std::uint32_t i = ready.top().second;
    ready.pop();
    list.push_back(i);
    for (std::uint32_t j : next[i]) one_less(j);
    if (last[i]) continue;
    for (std::uint32_t s : items_[i].reads)
      if (storages_[s].input >= 0) pass(s);
    if (is_region(items_[i])) pass(storages_.size());
  }
  check(list.size() == items_.size(), "plan: groups wait for each other");
  return list;
}

// By item: it makes results of the graph, and nothing that another reads.
std::vector<char> Planner::makes_results() const {
  std::vector<char> is_result(storages_.size(), false), all(items_.size(), false);
  for (Id id : g_.outputs())
    if (places_[id]) is_result[places_[id]->storage] = true;
  for (std::size_t s = 0; s < storages_.size(); ++s)
    if (is_result[s] && storages_[s].item != kNoItem) all[storages_[s].item] = true;
  for (std::size_t s = 0; s < storages_.size(); ++s)
    if (!is_result[s] && storages_[s].item != kNoItem) all[storages_[s].item] = false;
  for (const Item& item : items_) {
    for (std::uint32_t s : item.reads)
      if (storages_[s].item != kNoItem) all[storages_[s].item] = false;
    for (std::uint32_t from : item.after) all[from] = false;
  }
  return all;
}

}  // namespace sinter::engine
