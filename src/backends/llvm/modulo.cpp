#include "backends/llvm/modulo.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <limits>

namespace sinter::backends {

using llvm::Instruction;

namespace {

// Measured on Zen 5: four units, of which two multiply, the others add, and one of each permutes.
constexpr int kWidth = 4, kEach = 2;
constexpr double kEndurable = 27;  // values alive on the average, beside which constants and tables find registers
constexpr int kFar = 30;           // cycles behind the first use, from which on reading again takes less than a register

Cost cost_of_one(const Instruction& i) {
  constexpr Cost kNothing, kMultiply{.latency = 4, .multiply = 1}, kAdd{.latency = 2, .add = 1}, kOther{.latency = 3, .add = 1},
      kBits{.latency = 1, .any = 1}, kPermute{.latency = 5, .permute = 1}, kScale{.latency = 3, .add = 2}, kLoad{.latency = 8},
      kGather{.latency = 20, .any = kWidth}, kDivide{.latency = 15, .multiply = 2, .divider = 5},
      kRoot{.latency = 14, .add = 1, .divider = 9};
  if (!i.getType()->isVectorTy()) return kNothing;
  switch (i.getOpcode()) {
    case Instruction::BitCast:
    case Instruction::InsertElement:
    case Instruction::ShuffleVector:
    case Instruction::FCmp:  // one instruction with its select
    case Instruction::ICmp: return kNothing;
    case Instruction::Load: return kLoad;
    case Instruction::FMul:
    case Instruction::Mul: return kMultiply;
    case Instruction::FDiv: return kDivide;
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::Select:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr: return kAdd;
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::Add:
    case Instruction::Sub: return kBits;
    default: break;
  }
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  if (!call) return kOther;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::fma: return kMultiply;
    case llvm::Intrinsic::sqrt: return kRoot;
    case llvm::Intrinsic::masked_load: return kLoad;
    case llvm::Intrinsic::masked_gather: return kGather;
    case llvm::Intrinsic::fabs: return kBits;
    case llvm::Intrinsic::x86_avx512_permvar_sf_512: return kPermute;
    case llvm::Intrinsic::x86_avx512_mask_scalef_ps_512:
    case llvm::Intrinsic::x86_avx512_mask_scalef_pd_512: return kScale;
    default: return kOther;
  }
}

// What the units do in each cycle, when an iteration begins every `interval` cycles.
class Units {
 public:
  explicit Units(int interval) : interval_(interval), used_(static_cast<std::size_t>(interval)), divides_(used_.size() * 2) {}

  bool free(const Cost& c, int time) const {
    if (c.latency == 0) return true;
    const Cost& u = used_[place(time)];
    if (u.multiply + c.multiply > kEach || u.add + c.add > kEach || u.permute + c.permute > kEach) return false;
    if (u.multiply + u.add + u.permute + u.any + c.multiply + c.add + c.permute + c.any > kWidth) return false;
    for (int n = 0; n < c.divider; ++n)
      if (divides_[half(time, n)]) return false;
    return true;
  }
  void set(const Cost& c, int time, bool busy) {
    Cost& u = used_[place(time)];
    const int sign = busy ? 1 : -1;
    u.multiply += sign * c.multiply;
    u.add += sign * c.add;
    u.permute += sign * c.permute;
    u.any += sign * c.any;
    for (int n = 0; n < c.divider; ++n) divides_[half(time, n)] = busy;
  }

 private:
  std::size_t place(int time) const { return static_cast<std::size_t>(time % interval_); }
  std::size_t half(int time, int n) const { return static_cast<std::size_t>((2 * time + n) % (2 * interval_)); }
  int interval_;
  std::vector<Cost> used_;
  std::vector<bool> divides_;
};

int last_use(const Schedule& s, std::size_t op) {
  int last = s.ops[op].time;
  for (std::size_t user : s.ops[op].users) last = std::max(last, s.ops[user].time);
  return last;
}

// A load that each use can have for itself: its result needs no register in between.
bool can_repeat(const Op& op) { return op.code->mayReadFromMemory() && op.in.empty(); }

// From the end: of those whose users are placed, that first which takes longest to compute, as late as a unit is free. What does not take
// long begins late, and waits in memory, not in registers.
bool place(Schedule& s, Units& units) {
  const int end = s.interval * static_cast<int>(s.ops.size() + 1);
  std::vector<std::size_t> waits(s.ops.size()), ready;
  for (std::size_t n = 0; n < s.ops.size(); ++n)
    if (waits[n] = s.ops[n].users.size(); waits[n] == 0 && takes_time(s.ops[n])) ready.push_back(n);
  int first = end;
  while (!ready.empty()) {
    const auto next = std::max_element(ready.begin(), ready.end(), [&](std::size_t a, std::size_t b) {
      return s.ops[a].depth != s.ops[b].depth ? s.ops[a].depth < s.ops[b].depth : a < b;
    });
    Op& op = s.ops[*next];
    ready.erase(next);
    op.time = end;
    for (std::size_t user : op.users) op.time = std::min(op.time, s.ops[user].time - op.cost.latency);
    for (int tries = 0; !units.free(op.cost, op.time); --op.time)
      if (++tries > s.interval) return false;
    units.set(op.cost, op.time, true);
    first = std::min(first, op.time);
    for (std::size_t in : op.needs)
      if (--waits[in] == 0) ready.push_back(in);
  }
  for (Op& op : s.ops) op.time -= first / s.interval * s.interval;
  return true;
}

// Earlier or later, where that shortens the time for which registers hold its operands and its result.
void settle(Schedule& s, Units& units) {
  constexpr int kRounds = 2;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < s.ops.size(); ++k) {
      const std::size_t n = round % 2 == 0 ? k : s.ops.size() - 1 - k;
      Op& op = s.ops[n];
      if (op.users.empty() || !takes_time(op)) continue;
      const int now = op.time;
      int earliest = 0, latest = s.ops[op.users[0]].time;
      for (std::size_t in : op.needs) earliest = std::max(earliest, s.ops[in].time + s.ops[in].cost.latency);
      for (std::size_t user : op.users) latest = std::min(latest, s.ops[user].time);
      auto held = [&](int time) {
        op.time = time;
        int cycles = -time;
        for (std::size_t in : op.needs)
          if (!can_repeat(s.ops[in])) cycles += last_use(s, in);
        return cycles;
      };
      units.set(op.cost, now, false);
      int best = now, least = held(now);
      for (int time = earliest; time <= latest - op.cost.latency; ++time)
        if (const int cycles = held(time); cycles < least && units.free(op.cost, time)) best = time, least = cycles;
      op.time = best;
      units.set(op.cost, best, true);
    }
  }
}

// A load of its own for uses far behind the first.
void read_again(Schedule& s) {
  for (std::size_t n = 0, count = s.ops.size(); n < count; ++n) {
    if (!can_repeat(s.ops[n])) continue;
    int first = last_use(s, n);
    for (std::size_t user : s.ops[n].users) first = std::min(first, s.ops[user].time);
    for (std::size_t user : std::exchange(s.ops[n].users, {})) {
      const bool direct = std::any_of(s.ops[user].in.begin(), s.ops[user].in.end(), [&](const auto& in) { return in.second == n; });
      if (!direct || s.ops[user].time <= first + kFar) {
        s.ops[n].users.push_back(user);
        continue;
      }
      Op again = s.ops[n];
      again.users = {user};
      again.time = s.ops[user].time - 1;
      for (auto& [operand, in] : s.ops[user].in)
        if (in == n) in = s.ops.size();
      s.ops.push_back(std::move(again));
    }
  }
}

// What takes no time comes with the first user, or as soon as it can.
void place_others(Schedule& s, std::size_t count) {
  constexpr int kNever = std::numeric_limits<int>::max();
  std::vector<int> first(s.ops.size(), kNever);
  for (std::size_t n = count; n-- > 0;) {
    Op& op = s.ops[n];
    if (!takes_time(op)) op.time = first[n] == kNever ? 0 : first[n];
    if (!takes_time(op) && first[n] == kNever)
      for (std::size_t in : op.needs) op.time = std::max(op.time, s.ops[in].time + s.ops[in].cost.latency);
    for (const auto& [operand, in] : op.in) first[in] = std::min(first[in], op.time);
  }
}

double alive(const Schedule& s) {
  int cycles = 0;
  for (std::size_t n = 0; n < s.ops.size(); ++n) cycles += s.ops[n].cost.registers * (last_use(s, n) - s.ops[n].time);
  return static_cast<double>(cycles) / s.interval;
}

}  // namespace

// Of as many registers as its result takes.
Cost cost_of(const Instruction& i) {
  Cost c = cost_of_one(i);
  if (c.latency == 0) return c;
  const auto bits = i.getType()->getPrimitiveSizeInBits().getKnownMinValue();
  c.registers = static_cast<int>((bits + 511) / 512);
  auto times = [&](int& n, int most) { n = std::min(n * c.registers, most); };
  times(c.multiply, kEach);
  times(c.add, kEach);
  times(c.permute, kEach);
  times(c.any, kWidth);
  return c;
}

std::optional<Schedule> overlap(const std::vector<Op>& ops) {
  Cost all;
  for (const Op& op : ops) {
    all.multiply += op.cost.multiply;
    all.add += op.cost.add;
    all.permute += op.cost.permute;
    all.any += op.cost.any;
    all.divider += op.cost.divider;
  }
  const int least = std::max({(all.multiply + all.add + all.permute + all.any) / kWidth, all.multiply / kEach, all.add / kEach,
                              all.permute / kEach, all.divider / 2, 1});
  const int longest = 2 * least + 2;
  for (int interval = least + least / 4; interval <= longest; ++interval) {
    Schedule s{ops, interval, 0};
    Units units(interval);
    if (!place(s, units)) continue;
    settle(s, units);
    read_again(s);
    if (alive(s) > kEndurable && interval < longest) continue;
    place_others(s, ops.size());
    for (std::size_t n = 0; n < s.ops.size(); ++n) s.stages = std::max(s.stages, s.stage(n) + 1);
    return s;
  }
  return {};
}

}  // namespace sinter::backends
