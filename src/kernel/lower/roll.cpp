#include "kernel/lower/roll.h"

#include <algorithm>

#include "ops/expand.h"

namespace sinter::kernel {
namespace {

constexpr Ref kLongest = 64;  // instructions of an iteration
constexpr Ref kFewest = 4;    // iterations
constexpr int kSaved = 100;   // instructions of a vector that need not be generated

// Instructions [start, start + count * period), the same ones again and again.
struct Region {
  Ref start = 0, period = 0, count = 0;
  int saved = 0;
  Ref end() const { return start + count * period; }
};

bool repeats(const Inst& i) { return i.code == Code::Compute || i.code == Code::Cast || i.code == Code::Const; }
int cost(const Inst& i) { return i.code == Code::Compute ? ops::cost(i.op, i.dtype) : 1; }

// A value that an iteration hands to the next one: its place in the iteration, and what the first one has instead.
struct Carried {
  Ref place, initial;
  auto operator<=>(const Carried&) const = default;
};
auto find(const std::vector<Carried>& carried, Ref place) {
  return std::find_if(carried.begin(), carried.end(), [&](const Carried& c) { return c.place == place; });
}

class Roll {
 public:
  explicit Roll(const Kernel& k) : k_(k) {}

  // The region of most instructions at or behind `from`.
  Region best(Ref from) const {
    Region found;
    const auto size = static_cast<Ref>(k_.body.size());
    int vectors = 0;  // open Vector loops
    std::vector<bool> open;
    for (Ref first = 0; first < size;) {
      const Inst& i = k_.body[first];
      if (i.code == Code::Loop) {
        open.push_back(i.kind == LoopKind::Vector);
        vectors += open.back();
      } else if (i.code == Code::End) {
        vectors -= open.back();
        open.pop_back();
      }
      Ref last = first;
      while (last < size && repeats(k_.body[last])) ++last;
      if (vectors > 0 && last > from) {
        for (Ref period = 1; period <= std::min(kLongest, (last - first) / kFewest); ++period)
          find_runs(std::max(first, from), last, period, found);
      }
      first = std::max(first + 1, last);
    }
    return found;
  }

  // `region` as a Serial loop of as many iterations as the kernel's last integer says.
  Kernel apply(const Region& region) {
    Builder b;
    b.kernel = k_;
    b.kernel.body.resize(region.start);
    const Ref begin = b.index(0), count = b.arg();
    b.loop(LoopKind::Serial, begin, count);
    std::vector<Carried> carried;
    find_carried(region, carried);
    std::vector<Ref> carries;
    for (const Carried& c : carried) carries.push_back(b.carry(result_dtype(k_, c.initial), c.initial));
    auto carry_of = [&](Ref place) { return carries[static_cast<std::size_t>(find(carried, place) - carried.begin())]; };
    const auto first = static_cast<Ref>(b.kernel.body.size());
    const Ref second = region.start + region.period;
    for (Ref r = region.start; r < second; ++r) {
      Inst i = k_.body[r];
      for (int n = 0; n < 3; ++n) {
        const Ref next = k_.body[r + region.period].in[n];
        if (next >= second && next != kNone)
          i.in[n] = next - second + first;
        else if (next >= region.start && next != kNone)
          i.in[n] = carry_of(next - region.start);
      }
      b.add(i);
    }
    for (std::size_t c = 0; c < carried.size(); ++c) b.next(carries[c], first + carried[c].place);
    b.end();
    const auto behind = static_cast<Ref>(b.kernel.body.size());
    for (Ref r = region.end(); r < k_.body.size(); ++r) {
      Inst i = k_.body[r];
      for (Ref& in : i.in) {
        if (in == kNone || in < region.start) continue;
        in = in >= region.end() ? in - region.end() + behind : carry_of(in + region.period - region.end());
      }
      b.add(i);
    }
    // Next values of loops that are still open.
    for (Ref r = 0; r < region.start; ++r) {
      Inst& i = b.kernel.body[r];
      if (i.code != Code::Carry || i.in[1] == kNone || i.in[1] < region.start) continue;
      i.in[1] = i.in[1] >= region.end() ? i.in[1] - region.end() + behind : carry_of(i.in[1] + region.period - region.end());
    }
    return b.kernel;
  }

 private:
  // Whether instruction r comes again `period` later: each operand is the same value from before `start`, or that much later itself.
  // Moves `start` behind operands that all later iterations share.
  bool again(Ref r, Ref period, Ref& start) const {
    if (k_.body[r].code != k_.body[r + period].code || k_.body[r].op != k_.body[r + period].op) return false;
    Inst a = k_.body[r], b = k_.body[r + period];
    for (int n = 0; n < 3; ++n) {
      const Ref x = a.in[n], y = b.in[n];
      if (x == y) {
        if (x != kNone) start = std::max(start, x + 1);
      } else if (x == kNone || y == kNone || y != x + period || r - x >= 2 * period) {
        return false;
      }
      a.in[n] = b.in[n] = kNone;
    }
    return a == b;
  }

  void find_runs(Ref first, Ref last, Ref period, Region& best) const {
    Ref start = first;
    for (Ref r = first; r + period <= last; ++r) {
      Ref later = start;
      const bool same = r + period < last && again(r, period, later);
      if (same && later == start) continue;
      if (r > start) consider(start - std::min(period, start - first), r + period, period, best);  // the first may begin with anything
      start = same ? later : r + 1;
    }
  }

  // Instructions [start, end) come again and again: the largest region of them that can be a loop.
  void consider(Ref start, Ref end, Ref period, Region& best) const {
    for (Ref count; (count = (end - start) / period) >= kFewest && start < end;) {
      Region region{start, period, count, 0};
      for (Ref r = start; r < start + period; ++r) region.saved += cost(k_.body[r]) * static_cast<int>(count - 1);
      if (region.saved < kSaved || region.saved <= best.saved) return;
      std::vector<Carried> carried;
      if (!find_carried(region, carried)) {
        ++start;
        continue;
      }
      const Ref used = used_behind(region, carried);
      if (used == kNone) {
        best = region;
        return;
      }
      if (used + period >= region.end())
        end = region.end() - period;  // the last iteration reads what the one before hands on
      else
        start = used + 1;
    }
  }

  // The values that an iteration hands to the next one, in order. False: the first iterations are not the same in this way.
  bool find_carried(const Region& region, std::vector<Carried>& out) const {
    const Ref second = region.start + region.period;
    for (Ref r = region.start; r < second; ++r) {
      Inst a = k_.body[r], b = k_.body[r + region.period];
      for (int n = 0; n < 3; ++n) {
        const Ref x = a.in[n], y = b.in[n];
        a.in[n] = b.in[n] = kNone;
        if (x == kNone && y == kNone) continue;
        const bool shared = x == y && x < region.start, own = y >= second && x + region.period == y;
        const bool handed = x < region.start && region.start <= y && y < second;
        if (!shared && !own && !handed) return false;
        if (k_.body[r + 2 * region.period].in[n] != (shared ? x : y + region.period)) return false;
        if (handed) out.push_back({y - region.start, x});
      }
      if (!(a == b)) return false;
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    for (std::size_t c = 0; c < out.size(); ++c) {
      if (c > 0 && out[c].place == out[c - 1].place) return false;
      if (result_dtype(k_, out[c].initial) != result_dtype(k_, region.start + out[c].place)) return false;
    }
    return true;
  }
  // The last value that is used behind the region and is not what its last iteration would hand on; kNone: there is none.
  Ref used_behind(const Region& region, const std::vector<Carried>& carried) const {
    Ref found = kNone;
    auto use = [&](Ref in) {
      if (in == kNone || in < region.start || in >= region.end() || (found != kNone && in < found)) return;
      if (in + region.period < region.end() || find(carried, in + region.period - region.end()) == carried.end()) found = in;
    };
    for (Ref r = region.end(); r < k_.body.size(); ++r)
      for (Ref in : k_.body[r].in) use(in);
    for (Ref r = 0; r < region.start; ++r)
      if (k_.body[r].code == Code::Carry) use(k_.body[r].in[1]);
    return found;
  }

  const Kernel& k_;
};

}  // namespace

std::vector<std::int64_t> roll(Kernel& k) {
  std::vector<std::int64_t> counts;
  Kernel rolled = k;
  Ref from = 0;
  for (Region region; (region = Roll(rolled).best(from)).count != 0; from = region.start + 1) {
    rolled = Roll(rolled).apply(region);
    counts.push_back(region.count);
  }
  if (!counts.empty()) k = std::move(rolled);
  return counts;
}

}  // namespace sinter::kernel
