#include "engine/plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "engine/memory.h"
#include "engine/planner.h"
#include "runtime/pool.h"
#include "runtime/speed.h"

namespace sinter::engine {

Plan::Plan(const Prepared& prepared, std::span<const graph::Layout> inputs, const PlanOptions& options) {
  Planner(*this, prepared, inputs, options).run();
  finish();
}
void Plan::finish() {
  times_ = std::make_shared<Times>(steps_.size());
  for (const Step& step : steps_)
    if (const Launch* l = std::get_if<Launch>(&step)) longest_ = std::max(longest_, l->words.size());
}

std::uint64_t streams_of(const Launch& l, const Memory& memory) {
  std::uint64_t streams = l.large;
  auto has = [](std::uint64_t bits, std::size_t b) { return b < kernel::kMostStreams && (bits >> b & 1) != 0; };
  for (std::size_t r = 0; r < l.buffers.size(); ++r)
    for (std::size_t w = 0; w < l.buffers.size() && !has(l.written, r); ++w)
      if (has(streams, w) && memory.at(l.buffers[w]) == memory.at(l.buffers[r])) streams &= ~(std::uint64_t{1} << w);
  return streams;
}

namespace {

// What lies behind a small array is another's, and may be in use on another core, from where a prefetch takes it: two threads that made
// small calls on arrays beside each other's took up to 2.4 times as long. So much lies in a second-level cache anyway, where prefetches
// gain nothing; from 1 MiB on they do.
constexpr std::int64_t kNearBytes = 512 << 10;
std::uint64_t near_of(const Launch& l) { return l.bytes <= kNearBytes ? kernel::kNear : 0; }

constexpr std::int64_t kRuns = 64;  // into which a launch that goes backward is cut

// `words`: place for its block. `at`: the address of a slot. `scratch`: of all threads that run it.
template <class At>
void run_launch(const Launch& l, std::span<const std::uint64_t> constants, bool interpreted, std::uint64_t streams, std::uint64_t* words,
                void* scratch, At at) {
  if (l.tasks == 0) return;
  std::copy(l.words.begin(), l.words.end(), words);
  for (std::size_t i = 0; i < l.buffers.size(); ++i) words[i] = reinterpret_cast<std::uint64_t>(at(l.buffers[i]));
  std::size_t first = l.words.size() - l.scalars.size();
  for (std::size_t i = 0; i < l.scalars.size(); ++i) words[first + i] = constants[l.scalars[i]];
  auto bind_scratch = [&](std::uint64_t* block, std::int64_t thread) {
    char* start = static_cast<char*>(scratch) + thread * l.scratch_bytes;
    for (std::size_t i = 0; i < l.scratch.size(); ++i) block[l.buffers.size() + i] = reinterpret_cast<std::uint64_t>(start + l.scratch[i]);
  };
  if (!l.scratch.empty()) bind_scratch(words, 0);
  if (interpreted) return l.kernel->interpret(0, l.tasks, words);
  auto run = [&](std::int64_t begin, std::int64_t end, const std::uint64_t* block) {
    if (!l.backward) return l.kernel->run(begin, end, block, streams);
    const std::int64_t size = std::max(l.grain, l.tasks / kRuns);
    for (; end > begin; end -= size) l.kernel->run(std::max(begin, end - size), end, block, streams);
  };
  if (l.scratch.empty())
    return runtime::parallel_for(l.tasks, l.grain, [&](std::int64_t begin, std::int64_t end) { run(begin, end, words); });
  std::atomic<std::int64_t> threads = 0;
  runtime::parallel_for(l.tasks, l.grain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t thread = threads.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t offset = (thread + 1) * l.scratch_bytes - static_cast<std::int64_t>(l.words.size() * sizeof(std::uint64_t));
    auto* own = reinterpret_cast<std::uint64_t*>(static_cast<char*>(scratch) + offset);
    std::copy(words, words + l.words.size(), own);
    bind_scratch(own, thread);
    run(begin, end, own);
  });
}

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class At>
void run_call(const Call& c, At at) {
  void* places[Call::kMostBuffers];
  for (std::size_t i = 0; i < c.buffers.size(); ++i) places[i] = at(c.buffers[i]);
  c.routine->run({places, c.buffers.size()});
}

}  // namespace

void Plan::note_time(const Step& step, double ms) const {
  std::atomic<double>& least = times_->least_ms[static_cast<std::size_t>(&step - steps_.data())];
  for (double before = least.load(); (before == 0 || ms < before) && !least.compare_exchange_weak(before, ms);) {
  }
}

std::int64_t Plan::scratch_bytes(bool alone) const {
  std::int64_t bytes = 0;
  const std::int64_t threads = alone ? 1 : runtime::max_threads();
  for (const Step& step : steps_)
    if (const Launch* l = std::get_if<Launch>(&step); l && l->scratch_bytes > 0) {
      const std::int64_t ranges = std::min<std::int64_t>(threads, l->tasks / std::max<std::int64_t>(l->grain, 1));
      bytes = std::max(bytes, l->scratch_bytes * std::max<std::int64_t>(ranges, 1));
    }
  return bytes;
}

std::vector<Array> Plan::run(const Inputs& inputs, std::span<const int> owned, std::span<const std::uint64_t> constants,
                             bool interpreted) const {
  if (constants.empty()) constants = constants_;
  Memory memory{inputs, std::vector<runtime::BufferRef>(buffers_.size()), {}};
  // In the order of the outputs, so that each state goes on in its own memory where it can.
  std::vector<char> given;  // inputs whose memory has become an output's
  for (const Output& o : outputs_) {
    if (o.slot.is_input || memory.buffers[o.slot.number]) continue;
    const PlannedBuffer& b = buffers_[o.slot.number];
    for (std::uint32_t i : b.donors) {
      if (i >= owned.size() || owned[i] == 0 || (!given.empty() && given[i])) continue;
      const Value& v = value_of(inputs[i], "run");
      bool free = v.references.load(std::memory_order_acquire) == owned[i] && v.buffer.unique() && v.layout.offset == 0 &&
                  static_cast<std::int64_t>(v.buffer.bytes()) == b.bytes;
      if (!free) continue;
      given.resize(inputs.size());
      given[i] = 1;
      memory.buffers[o.slot.number] = v.buffer;
      break;
    }
  }
  for (std::size_t i = buffers_.size(); i-- > 0;) {  // what lies inside another comes after that
    const PlannedBuffer& b = buffers_[i];
    if (memory.buffers[i] || b.late) continue;
    auto fresh = [](std::int64_t bytes) { return runtime::allocate(static_cast<std::size_t>(bytes)); };
    if (const auto outer = static_cast<std::size_t>(b.inside); b.inside >= 0 && !memory.buffers[outer])
      memory.buffers[i] = memory.buffers[outer] = fresh(buffers_[outer].bytes);
    else
      memory.buffers[i] = b.fixed ? b.fixed : fresh(b.bytes);
  }
  if (const std::int64_t bytes = scratch_bytes(false); bytes > 0) memory.scratch = runtime::allocate(static_cast<std::size_t>(bytes));
  Few<std::uint64_t> words(longest_);
  std::vector<Array> results;
  results.reserve(outputs_.size());
  for (const Output& o : outputs_) {
    if (o.is_input) {
      results.push_back(inputs[o.slot.number]);
      continue;
    }
    Layout layout = o.layout;
    if (o.slot.is_input) {
      const Value& v = value_of(inputs[o.slot.number], "run");
      layout.offset += v.layout.offset;
      results.push_back(make_ready(v.buffer, std::move(layout), o.dtype, o.shape));
    } else {
      results.push_back(make_ready(memory.buffers[o.slot.number], std::move(layout), o.dtype, o.shape));
    }
  }
  // All memory is held. What fails below is a region, and no memory of an input is written before the last of them.
  const auto at = [&](const Slot& s) { return memory.at(s); };
  void* scratch = memory.scratch ? memory.scratch.data() : nullptr;
  const bool timed = times_->asked.load(std::memory_order_relaxed);
  for (const Step& step : steps_) {
    if (const Launch* l = std::get_if<Launch>(&step)) {
      const double start = timed ? now_ms() : 0;
      run_launch(*l, constants, interpreted, l->large == 0 ? near_of(*l) : streams_of(*l, memory), words.data(), scratch, at);
      if (timed) note_time(step, now_ms() - start);
    } else if (const Call* c = std::get_if<Call>(&step)) {
      run_call(*c, at);
    } else {
      run_region(std::get<Region>(step), memory, interpreted);
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i)  // the buffers of regions exist now
    if (!outputs_[i].is_input && !outputs_[i].slot.is_input) results[i].get()->buffer = memory.buffers[outputs_[i].slot.number];
  return results;
}

std::int64_t Plan::part_bytes() const {
  std::int64_t bytes = scratch_bytes(true);
  for (const PlannedBuffer& b : buffers_)
    if (!b.is_output && !b.fixed) bytes += aligned(b.bytes);
  return bytes;
}

void Plan::run_part(std::span<char* const> inputs, std::span<char* const> outputs, char* scratch, bool interpreted) const {
  Few<char*> buffers(buffers_.size());
  Few<std::uint64_t> words(longest_);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const PlannedBuffer& b = buffers_[i];
    if (b.fixed) buffers[i] = static_cast<char*>(b.fixed.data());
    if (b.fixed || b.is_output) continue;
    buffers[i] = scratch;
    scratch += aligned(b.bytes);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) buffers[outputs_[i].slot.number] = outputs[i];
  const auto at = [&](const Slot& s) { return (s.is_input ? inputs[s.number] : buffers[s.number]) + s.offset; };
  const bool timed = times_->asked.load(std::memory_order_relaxed);
  for (const Step& step : steps_) {
    if (const Launch* l = std::get_if<Launch>(&step)) {
      const double start = timed ? now_ms() : 0;
      run_launch(*l, constants_, interpreted, 0, words.data(), scratch, at);
      if (timed) note_time(step, now_ms() - start);
    } else {
      run_call(std::get<Call>(step), at);
    }
  }
}

std::string Plan::explain(const std::string& indent) const {
  constexpr std::int64_t kCached = 4 << 20;            // bytes that caches may hold: there is no telling how fast they are
  auto number = [](double v, std::string_view unit) {  // three digits: 201 MB, 1.34 G instructions
    static constexpr const char* kPrefixes[] = {"", "k", "M", "G"};
    std::size_t prefix = 0;
    for (; v >= 999.5 && prefix + 1 < std::size(kPrefixes); v /= 1000) ++prefix;
    std::ostringstream text;
    text << std::setprecision(v >= 1000 ? 6 : 3) << v << ' ' << kPrefixes[prefix] << (prefix > 0 && unit.size() > 3 ? " " : "") << unit;
    return text.str();
  };
  std::string out;
  auto bytes_in = [&](std::int64_t n) { return number(static_cast<double>(n), "B"); };
  out += indent + "memory: " + bytes_in(memory_.results) + " of results, " + bytes_in(memory_.between) +
         " between steps; saved: " + bytes_in(memory_.reused) + " by reuse, " + bytes_in(memory_.in_place) + " in place";
  if (memory_.donated > 0) out += ", up to " + bytes_in(memory_.donated) + " where arguments that nobody else holds give theirs";
  out += '\n';
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (const Region* r = std::get_if<Region>(&steps_[i]))
      for (std::size_t b = 0; b < r->bodies.size(); ++b)
        if (r->bodies[b])
          out += indent + str(ops::info(r->node.op).name, ", ", r->node.bodies[b]->name, ", each time:\n") +
                 r->bodies[b]->explain(indent + "  ");
    const Launch* l = std::get_if<Launch>(&steps_[i]);
    if (!l) continue;
    const double bytes = static_cast<double>(l->bytes), ms = times_->least_ms[i].load();
    const double floor = l->bytes > kCached ? bytes / 1e6 / runtime::copy_speed() : 0;
    out += indent + l->kernel->kernel().name + ": " + number(bytes, "B") + ", " + number(l->work, "instructions");
    if (floor > 0) out += "; at least " + number(floor, "ms") + " at " + number(runtime::copy_speed() * 1e9, "B/s");
    if (ms > 0) out += "; measured " + number(ms, "ms");
    if (floor > 0 && ms > 0) out += ", " + number(floor / ms, "of what memory gives");
    out += '\n';
  }
  times_->asked.store(true, std::memory_order_relaxed);
  return out;
}

std::string Plan::text() const {
  std::string out;
  auto slot = [](const Slot& s) { return str(s.is_input ? "input " : "buffer ", s.number, s.offset ? str("+", s.offset) : ""); };
  for (const Step& step : steps_) {
    if (const Launch* l = std::get_if<Launch>(&step)) {
      out += str("launch ", l->kernel->kernel().name, " tasks ", l->tasks, " bytes ", l->bytes, l->backward ? " backward" : "",
                 l->kernel->interpreted() ? " interpreted (" : " (");
      for (std::size_t i = 0; i < l->buffers.size(); ++i) out += (i ? ", " : "") + slot(l->buffers[i]);
      out += ")\n" + kernel::print(l->kernel->kernel());
    } else if (const Call* c = std::get_if<Call>(&step)) {
      out += str(c->routine->name(), " (");
      for (std::size_t i = 0; i < c->buffers.size(); ++i) out += (i ? ", " : "") + slot(c->buffers[i]);
      out += ")\n";
    } else {
      const Region& r = std::get<Region>(step);
      out += str(ops::info(r.node.op).name, " (");
      for (std::size_t i = 0; i < r.operands.size(); ++i) out += (i ? ", " : "") + slot(r.operands[i]);
      out += ")\n";
      for (std::size_t i = 0; i < r.bodies.size(); ++i)
        if (r.bodies[i]) out += str(r.node.bodies[i]->name, " {\n", r.bodies[i]->text(), "}\n");
    }
  }
  return out;
}

}  // namespace sinter::engine
