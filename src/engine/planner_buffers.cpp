// The memory of a plan: which buffers live when, and which may take another's place. Layer: engine.
#include <algorithm>

#include "base/knobs.h"
#include "engine/planner.h"

namespace sinter::engine {

using graph::Id;
using graph::Node;
using ops::Op;

void Planner::assign_buffers() {
  int steps = static_cast<int>(uses_.size());
  for (int i = 0; i < steps; ++i)
    for (const Use& u : uses_[static_cast<std::size_t>(i)]) {
      Storage& s = storages_[u.storage];
      if (s.first < 0) s.first = i;
      s.last = i;
    }
  for (Id id : g_.outputs())
    if (places_[id]) storages_[places_[id]->storage].is_output = true;

  auto fresh = [&](const Storage& s) {
    PlannedBuffer b;
    b.bytes = s.bytes;
    b.is_output = s.is_output;
    plan_.buffers_.push_back(std::move(b));
    return static_cast<std::uint32_t>(plan_.buffers_.size() - 1);
  };
  for (Storage& s : storages_)
    if (s.fixed) {
      s.buffer = fresh(s);
      plan_.buffers_[s.buffer].fixed = s.fixed;
    }

  int last_region = -1;  // it may fail: an input's memory is written after it alone
  for (int i = 0; i < steps; ++i)
    if (std::holds_alternative<Region>(plan_.steps_[static_cast<std::size_t>(i)])) last_region = i;

  std::vector<std::uint32_t> idle;  // buffers that hold nothing any more
  for (int i = 0; i < steps; ++i) {
    const std::vector<Use>& uses = uses_[static_cast<std::size_t>(i)];
    for (const Use& r : uses)  // what no step writes is empty
      if (Storage& s = storages_[r.storage]; !r.written && s.first == i && s.input < 0 && !s.fixed) s.buffer = fresh(s);
    auto readers = [&](std::uint32_t storage) {
      return std::count_if(uses.begin(), uses.end(), [&](const Use& u) { return u.storage == storage; });
    };
    std::vector<std::uint32_t> taken;  // storages whose buffer a result of this step has taken over
    for (const Use& w : uses) {
      Storage& s = storages_[w.storage];
      if (!w.written || s.first != i || s.input >= 0) continue;
      if (s.late) {
        s.buffer = fresh(s);
        plan_.buffers_[s.buffer].late = true;
        continue;
      }
      if (options_.alone && s.is_output) {  // memory of the caller's, which holds nothing else
        s.buffer = fresh(s);
        continue;
      }
      auto in_place = [&](const Use& r) {
        const Storage& t = storages_[r.storage];
        const bool made = t.input >= 0 || t.first < i;  // an empty array is written by no step, and has no buffer
        const bool same_places = r.same_index && w.same_index && r.element == w.element && r.offset == w.offset;
        return made && !r.written && same_places && t.last == i && t.bytes == s.bytes && !t.fixed && readers(r.storage) == 1 &&
               std::find(taken.begin(), taken.end(), r.storage) == taken.end();
      };
      // A written buffer that is only copied to in part in this step (concatenate) has no reads at the same index; scratch neither.
      auto source = std::find_if(uses.begin(), uses.end(), [&](const Use& r) {
        return in_place(r) && storages_[r.storage].input < 0 && !storages_[r.storage].is_output;
      });
      if (source != uses.end()) {
        s.buffer = storages_[source->storage].buffer;
        taken.push_back(source->storage);
        plan_.buffers_[s.buffer].is_output = s.is_output;
        continue;
      }
      // An idle buffer: of this size for an output; else the smallest that is large enough, or the largest, made larger.
      auto best = idle.end();
      for (auto it = idle.begin(); it != idle.end(); ++it) {
        std::int64_t have = plan_.buffers_[*it].bytes;
        if (s.is_output
                ? have == s.bytes
                : best == idle.end() || (have >= s.bytes ? plan_.buffers_[*best].bytes < s.bytes || have < plan_.buffers_[*best].bytes
                                                         : plan_.buffers_[*best].bytes < have))
          best = it;
      }
      if (best != idle.end()) {
        s.buffer = *best;
        idle.erase(best);
        PlannedBuffer& b = plan_.buffers_[s.buffer];
        b.bytes = std::max(b.bytes, s.bytes);
        b.is_output = s.is_output;
        continue;
      }
      s.buffer = fresh(s);
      if (!s.is_output || i <= last_region) continue;
      for (const Storage& t : storages_) {
        if (t.input < 0 || t.is_output || t.bytes != s.bytes || t.last > i) continue;
        bool here = t.last == i;
        bool fits =
            !here || std::any_of(uses.begin(), uses.end(), [&](const Use& r) { return &storages_[r.storage] == &t && in_place(r); });
        if (fits) plan_.buffers_[s.buffer].donors.push_back(static_cast<std::uint32_t>(t.input));
      }
    }
    for (std::uint32_t n = 0; n < uses.size(); ++n) {
      const Storage& t = storages_[uses[n].storage];
      if (t.last != i || t.input >= 0 || t.fixed || t.is_output || plan_.buffers_[t.buffer].late) continue;
      if (std::find(taken.begin(), taken.end(), uses[n].storage) != taken.end()) continue;
      if (std::find(idle.begin(), idle.end(), t.buffer) == idle.end()) idle.push_back(t.buffer);
    }
  }

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
    for (std::size_t k = 0; l && k < std::min<std::size_t>(buffers.size(), 64); ++k) {
      const Use& use = uses_[i][k];
      if (!use.written) continue;
      l->written |= std::uint64_t{1} << k;
      if (storages_[use.storage].bytes >= base::knobs().stream_bytes) l->large |= std::uint64_t{1} << k;
    }
  }
}

Slot Planner::slot(std::uint32_t storage, std::int64_t offset) const {
  const Storage& s = storages_[storage];
  if (s.input >= 0) return {true, static_cast<std::uint32_t>(s.input), offset};
  return {false, s.buffer, offset};
}

void Planner::make_outputs() {
  for (Id id : g_.outputs()) {
    const Node& n = g_[id];
    check(places_[id].has_value(), "plan: an output is not stored");
    const Place& at = *places_[id];
    Storage& s = storages_[at.storage];
    if (s.input < 0 && !s.fixed && s.first < 0) {  // nothing writes it: it is empty
      PlannedBuffer b;
      b.bytes = s.bytes;
      plan_.buffers_.push_back(std::move(b));
      s.buffer = static_cast<std::uint32_t>(plan_.buffers_.size() - 1);
      s.first = 0;
    }
    Output o{slot(at.storage, 0), at.layout, n.type.dtype, n.type.shape, n.op == Op::Input};
    plan_.outputs_.push_back(std::move(o));
  }
}

}  // namespace sinter::engine
