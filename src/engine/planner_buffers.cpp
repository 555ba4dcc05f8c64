// The memory of a plan: which buffers live when, and which may take another's place. Layer: engine.
#include <algorithm>
#include <tuple>

#include "engine/planner.h"

namespace sinter::engine {

using graph::Id;
using graph::Node;
using ops::Op;

// Memory for what lives between steps, given out from the last step to the first: a result needs its memory to the end, so that it is free
// in the steps before it is written.
class Planner::Room {
 public:
  explicit Room(std::vector<PlannedBuffer>& buffers) : buffers_(buffers) {}
  void lend(const Block& result) { gaps_.push_back({result.buffer, 0, result.bytes}); }

  void take(Block& b) {
    auto gap = smallest_for(b);
    if (gap == gaps_.end()) gap = made_larger(b);
    if (gap == gaps_.end()) {
      PlannedBuffer fresh;
      fresh.bytes = b.bytes;
      buffers_.push_back(std::move(fresh));
      gap = gaps_.insert(gap, {static_cast<std::uint32_t>(buffers_.size() - 1), 0, b.bytes});
    }
    if (!buffers_[gap->buffer].donors.empty()) {
      PlannedBuffer inside;
      inside.inside = gap->buffer;
      buffers_.push_back(std::move(inside));
      gap->buffer = static_cast<std::uint32_t>(buffers_.size() - 1);
    }
    b.buffer = gap->buffer, b.offset = gap->offset;
    b.held = std::min(aligned(b.bytes), gap->bytes);
    if (PlannedBuffer& buffer = buffers_[b.buffer]; buffer.inside >= 0) buffer.bytes = std::max(buffer.bytes, b.offset + b.held);
    gap->offset += b.held, gap->bytes -= b.held;
    if (gap->bytes == 0) gaps_.erase(gap);
  }

  void give(const Block& b) {
    if (b.held == 0) return;
    Gap free{b.buffer, b.offset, b.held};
    std::erase_if(gaps_, [&](const Gap& g) {
      if (g.buffer != free.buffer || (g.offset + g.bytes != free.offset && free.offset + free.bytes != g.offset)) return false;
      free.offset = std::min(free.offset, g.offset), free.bytes += g.bytes;
      return true;
    });
    gaps_.push_back(free);
  }

 private:
  struct Gap {
    std::uint32_t buffer;
    std::int64_t offset, bytes;
  };
  using At = std::vector<Gap>::iterator;

  // Rather what lives between steps alone, which may still lie in a cache, than memory of a result; and of these, rather one that takes no
  // argument's.
  At smallest_for(const Block& b) {
    auto best = gaps_.end();
    std::tuple<int, std::int64_t> least;
    for (auto g = gaps_.begin(); g != gaps_.end(); ++g) {
      const PlannedBuffer& buffer = buffers_[g->buffer];
      if (g->bytes < b.bytes) continue;
      const std::tuple rank{(buffer.is_output || buffer.inside >= 0) + 2 * !buffer.donors.empty(), g->bytes};
      if (best == gaps_.end() || rank < least) best = g, least = rank;
    }
    return best;
  }
  At made_larger(const Block& b) {
    auto best = gaps_.end();
    for (auto g = gaps_.begin(); g != gaps_.end(); ++g) {
      const PlannedBuffer& buffer = buffers_[g->buffer];
      const bool whole = !buffer.is_output && buffer.inside < 0 && g->bytes == buffer.bytes;
      if (whole && (best == gaps_.end() || g->bytes > best->bytes)) best = g;
    }
    if (best != gaps_.end()) best->bytes = buffers_[best->buffer].bytes = b.bytes;
    return best;
  }

  std::vector<PlannedBuffer>& buffers_;
  std::vector<Gap> gaps_;
};

void Planner::assign_buffers() {
  const int steps = static_cast<int>(uses_.size());
  for (int i = 0; i < steps; ++i)
    for (const Use& u : uses_[static_cast<std::size_t>(i)]) {
      Storage& s = storages_[u.storage];
      if (s.first < 0) s.first = i;
      s.last = i;
    }
  for (Id id : g_.outputs())
    if (places_[id]) storages_[places_[id]->storage].is_output = true;
  for (Storage& s : storages_)
    if (s.fixed) {
      s.buffer = new_buffer(s.bytes, false);
      plan_.buffers_[s.buffer].fixed = s.fixed;
    }

  std::vector<Block> blocks = make_blocks();
  std::vector<std::vector<std::uint32_t>> begins(uses_.size()), ends(uses_.size());
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    Block& block = blocks[b];
    begins[static_cast<std::size_t>(block.first)].push_back(b);
    ends[static_cast<std::size_t>(block.last)].push_back(b);
    if (!block.is_output && !block.late) continue;
    block.buffer = new_buffer(block.bytes, block.is_output);
    plan_.buffers_[block.buffer].late = block.late;
    plan_.buffers_[block.buffer].donors = std::move(block.donors);
  }
  Room room(plan_.buffers_);
  for (std::size_t i = uses_.size(); i-- > 0;) {
    for (std::uint32_t b : ends[i])
      if (!blocks[b].is_output && !blocks[b].late) room.take(blocks[b]);
    for (std::uint32_t b : begins[i]) {
      if (!blocks[b].is_output && !blocks[b].late)
        room.give(blocks[b]);
      else if (!blocks[b].late && !options_.alone)
        room.lend(blocks[b]);
    }
  }

  MemoryUse& use = plan_.memory_;
  for (const Block& b : blocks)
    if (!b.is_output && !b.late) use.reused += b.bytes;
  for (const PlannedBuffer& b : plan_.buffers_) {
    if (b.is_output)
      use.results += b.bytes;
    else if (!b.fixed && !b.late && b.inside < 0)
      use.between += b.bytes;
    if (!b.donors.empty()) use.donated += b.bytes;
  }
  use.reused -= use.between;
  for (Storage& s : storages_)
    if (s.block != kNoItem) s.buffer = blocks[s.block].buffer, s.offset = blocks[s.block].offset;
  bind_slots();
}

// Arrays that take each other's memory in turn: a result that of an operand which is read for the last time, and only where the result is
// written.
std::vector<Planner::Block> Planner::make_blocks() {
  int last_region = -1;  // it may fail: an input's memory is written after it alone
  for (std::size_t i = 0; i < plan_.steps_.size(); ++i)
    if (std::holds_alternative<Region>(plan_.steps_[i])) last_region = static_cast<int>(i);

  std::vector<Block> blocks;
  for (int i = 0; i < static_cast<int>(uses_.size()); ++i) {
    const std::vector<Use>& uses = uses_[static_cast<std::size_t>(i)];
    std::vector<std::uint32_t> taken;  // storages whose memory a result of this step has taken over
    for (const Use& w : uses) {
      Storage& s = storages_[w.storage];
      if (s.first != i || s.input >= 0 || s.fixed || s.block != kNoItem) continue;
      auto in_place = [&](const Use& r) {
        const Storage& t = storages_[r.storage];
        const bool made = t.input >= 0 || t.first < i;  // an empty array is written by no step
        const bool same_places = r.same_index && w.same_index && r.element == w.element && r.offset == w.offset;
        auto reads = [&] { return std::count_if(uses.begin(), uses.end(), [&](const Use& u) { return u.storage == r.storage; }); };
        // What is only copied to in part in this step (concatenate) has no reads at the same index; scratch neither.
        return made && !r.written && same_places && t.last == i && t.bytes == s.bytes && !t.fixed && reads() == 1 &&
               std::find(taken.begin(), taken.end(), r.storage) == taken.end();
      };
      const bool given = options_.alone && s.is_output;  // memory of the caller's, which holds nothing else
      if (w.written && !s.late && !given) {
        auto source = std::find_if(uses.begin(), uses.end(), [&](const Use& r) {
          return in_place(r) && storages_[r.storage].input < 0 && !storages_[r.storage].is_output;
        });
        if (source != uses.end()) {
          s.block = storages_[source->storage].block;
          taken.push_back(source->storage);
          blocks[s.block].last = s.last;
          blocks[s.block].is_output = s.is_output;
          plan_.memory_.in_place += s.bytes;
          continue;
        }
      }
      s.block = static_cast<std::uint32_t>(blocks.size());
      blocks.push_back({s.bytes, i, s.last, s.is_output, s.late});
      if (!w.written || s.late || given || !s.is_output || i <= last_region) continue;
      for (const Storage& t : storages_) {
        if (t.input < 0 || t.is_output || t.bytes != s.bytes || t.last > i) continue;
        bool here = t.last == i;
        bool fits =
            !here || std::any_of(uses.begin(), uses.end(), [&](const Use& r) { return &storages_[r.storage] == &t && in_place(r); });
        if (fits) blocks.back().donors.push_back(static_cast<std::uint32_t>(t.input));
      }
    }
  }
  return blocks;
}

std::uint32_t Planner::new_buffer(std::int64_t bytes, bool is_output) {
  PlannedBuffer b;
  b.bytes = bytes;
  b.is_output = is_output;
  plan_.buffers_.push_back(std::move(b));
  return static_cast<std::uint32_t>(plan_.buffers_.size() - 1);
}

void Planner::bind_slots() {
  for (std::size_t i = 0; i < plan_.steps_.size(); ++i) {
    auto at = [&](std::size_t k) { return slot(slots_[i][k].first, slots_[i][k].second); };
    if (Region* r = std::get_if<Region>(&plan_.steps_[i])) {
      for (std::size_t k = 0; k < r->types.size(); ++k) r->operands.push_back(at(k));
      for (std::size_t k = 0; k < r->results.size(); ++k) r->results[k].slot = at(r->types.size() + k);
      continue;
    }
    Launch* l = std::get_if<Launch>(&plan_.steps_[i]);
    std::vector<Slot>& buffers = l ? l->buffers : std::get<Call>(plan_.steps_[i]).buffers;
    for (std::size_t k = 0; k < slots_[i].size(); ++k) buffers.push_back(at(k));
  }
}

Slot Planner::slot(std::uint32_t storage, std::int64_t offset) const {
  const Storage& s = storages_[storage];
  if (s.input >= 0) return {true, static_cast<std::uint32_t>(s.input), offset};
  return {false, s.buffer, s.offset + offset};
}

void Planner::make_outputs() {
  for (Id id : g_.outputs()) {
    const Node& n = g_[id];
    check(places_[id].has_value(), "plan: an output is not stored");
    const Place& at = *places_[id];
    Storage& s = storages_[at.storage];
    if (s.input < 0 && !s.fixed && s.first < 0) {  // nothing writes it: it is empty
      s.buffer = new_buffer(s.bytes, false);
      s.first = 0;
    }
    Output o{slot(at.storage, 0), at.layout, n.type.dtype, n.type.shape, n.op == Op::Input};
    plan_.outputs_.push_back(std::move(o));
  }
}

}  // namespace sinter::engine
