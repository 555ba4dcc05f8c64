#include "backends/llvm/pipeline.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace sinter::backends {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

namespace {

// Measured on Zen 5: four units, of which two multiply, the others add, and one of each permutes.
constexpr int kWidth = 4, kEach = 2;
constexpr double kEndurable = 24;  // values alive on the average, beside which constants and tables find registers
constexpr int kFar = 30;           // cycles behind the first use, from which on reading again takes less than a register

struct Cost {
  int latency = 0;
  int multiply = 0, add = 0, permute = 0, any = 0;
  int divider = 0;  // half cycles
};

Cost cost_of(const Instruction& i) {
  constexpr Cost kNothing{}, kMultiply{4, 1, 0, 0, 0, 0}, kAdd{2, 0, 1, 0, 0, 0}, kOther{3, 0, 1, 0, 0, 0}, kBits{1, 0, 0, 0, 1, 0},
      kLoad{8, 0, 0, 0, 0, 0}, kDivide{15, 2, 0, 0, 0, 5}, kRoot{14, 0, 1, 0, 0, 9};
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
    case llvm::Intrinsic::masked_gather: return {20, 0, 0, 0, kWidth, 0};
    case llvm::Intrinsic::fabs: return kBits;
    case llvm::Intrinsic::x86_avx512_permvar_sf_512: return {5, 0, 0, 1, 0, 0};
    case llvm::Intrinsic::x86_avx512_mask_scalef_ps_512:
    case llvm::Intrinsic::x86_avx512_mask_scalef_pd_512: return {3, 0, 2, 0, 0, 0};
    default: return kOther;
  }
}

// Of as many registers as its result takes.
Cost cost_of_all(const Instruction& i) {
  Cost c = cost_of(i);
  const auto bits = i.getType()->getPrimitiveSizeInBits().getKnownMinValue();
  const int registers = static_cast<int>((bits + 511) / 512);
  auto times = [&](int& n, int most) { n = std::min(n * std::max(registers, 1), most); };
  times(c.multiply, kEach);
  times(c.add, kEach);
  times(c.permute, kEach);
  times(c.any, kWidth);
  return c;
}

struct Op {
  Instruction* code;
  Cost cost;
  std::vector<std::pair<unsigned, std::size_t>> in;  // operand, the op that computes it
  std::vector<std::size_t> users;
  int height = 0;  // cycles from here to the end of the longest chain of users
  int time = 0;    // cycle since its iteration began
};

/// What the units do in each cycle, when an iteration begins every `interval` cycles.
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

struct Schedule {
  std::vector<Op> ops;
  int interval = 0;
  int stages = 0;
  int stage(std::size_t op) const { return ops[op].time / interval; }
};

int last_use(const Schedule& s, std::size_t op) {
  int last = s.ops[op].time;
  for (std::size_t user : s.ops[op].users) last = std::max(last, s.ops[user].time);
  return last;
}

// Of those whose operands are placed, that first which most waits for, as soon as a unit is free.
bool place(Schedule& s, Units& units) {
  std::vector<std::size_t> waits(s.ops.size()), ready;
  for (std::size_t n = 0; n < s.ops.size(); ++n)
    if (waits[n] = s.ops[n].in.size(); waits[n] == 0) ready.push_back(n);
  while (!ready.empty()) {
    const auto next = std::max_element(ready.begin(), ready.end(), [&](std::size_t a, std::size_t b) {
      return s.ops[a].height != s.ops[b].height ? s.ops[a].height < s.ops[b].height : a > b;
    });
    Op& op = s.ops[*next];
    ready.erase(next);
    for (const auto& [operand, in] : op.in) op.time = std::max(op.time, s.ops[in].time + s.ops[in].cost.latency);
    for (int tries = 0; !units.free(op.cost, op.time); ++op.time)
      if (++tries > s.interval) return false;
    units.set(op.cost, op.time, true);
    for (std::size_t user : op.users)
      if (--waits[user] == 0) ready.push_back(user);
  }
  return true;
}

// Later, where that shortens the time for which registers hold its operands and its result.
void delay(Schedule& s, Units& units) {
  constexpr int kRounds = 6;
  std::vector<std::size_t> order(s.ops.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return s.ops[a].time > s.ops[b].time; });
    for (std::size_t n : order) {
      Op& op = s.ops[n];
      if (op.users.empty() || op.cost.latency == 0) continue;
      const int now = op.time;
      int latest = s.ops[op.users[0]].time;
      for (std::size_t user : op.users) latest = std::min(latest, s.ops[user].time);
      units.set(op.cost, now, false);
      for (int time = latest - op.cost.latency; time > now; --time) {
        if (!units.free(op.cost, time)) continue;
        int gain = time - now;
        for (const auto& [operand, in] : op.in) {
          op.time = now;
          const int before = last_use(s, in);
          op.time = time;
          gain -= last_use(s, in) - before;
        }
        op.time = now;
        if (gain < (round == kRounds - 1 ? 0 : 1)) continue;
        op.time = time;
        break;
      }
      units.set(op.cost, op.time, true);
    }
  }
}

// A load of its own for uses far behind the first.
void read_again(Schedule& s) {
  for (std::size_t n = 0, count = s.ops.size(); n < count; ++n) {
    if (!s.ops[n].code->mayReadFromMemory() || !s.ops[n].in.empty()) continue;
    int first = last_use(s, n);
    for (std::size_t user : s.ops[n].users) first = std::min(first, s.ops[user].time);
    const std::vector<std::size_t> users = std::exchange(s.ops[n].users, {});
    for (std::size_t user : users) {
      if (s.ops[user].time <= first + kFar) {
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

double alive(const Schedule& s) {
  int cycles = 0;
  for (std::size_t n = 0; n < s.ops.size(); ++n)
    if (s.ops[n].cost.latency > 0) cycles += last_use(s, n) - s.ops[n].time;
  return static_cast<double>(cycles) / s.interval;
}

std::optional<Schedule> schedule(const std::vector<Op>& ops) {
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
  for (int interval = least + least / 8 + 1; interval <= 2 * least + 2; ++interval) {
    Schedule s{ops, interval, 0};
    Units units(interval);
    if (!place(s, units)) continue;
    delay(s, units);
    read_again(s);
    if (alive(s) > kEndurable) continue;
    for (std::size_t n = 0; n < s.ops.size(); ++n) s.stages = std::max(s.stages, s.stage(n) + 1);
    return s;
  }
  return {};
}

bool is_prefetch(const Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
}

class Loop {
 public:
  explicit Loop(BasicBlock* head) : head_(head) {}
  bool run();

 private:
  bool find_counter();
  bool sort_instructions();
  bool computes_elsewhere() const;
  void split();
  Value* index_of(int stage);
  Value* at_stage(Value* v, int stage);
  void begin();
  Value* carried(std::size_t op, int iterations);
  void rewrite();

  BasicBlock* head_;
  BasicBlock* before_ = nullptr;
  llvm::PHINode* index_ = nullptr;  // of the iteration that ends
  Instruction* next_ = nullptr;     // index_ + step
  Value *begin_ = nullptr, *end_ = nullptr;
  std::int64_t step_ = 0;
  BasicBlock* tail_ = nullptr;                // counts
  std::set<const Value*> places_;             // what follows from the index alone
  std::vector<Instruction*> ahead_, stores_;  // prefetches; stores
  std::vector<Op> ops_;
  std::map<const Value*, std::size_t> op_of_;
  Schedule schedule_;
  std::map<const Value*, Value*> begun_;                   // of the first iteration
  Instruction* first_ = nullptr;                           // before it: what follows from indices
  std::map<int, Value*> indices_;                          // by stage
  std::map<std::pair<Value*, int>, Value*> copies_;        // by stage
  std::vector<Instruction*> made_;                         // of each op
  std::map<std::pair<std::size_t, int>, Value*> carried_;  // of so many iterations ago
};

bool Loop::find_counter() {
  for (llvm::PHINode& phi : head_->phis()) {
    if (index_) return false;
    index_ = &phi;
  }
  if (!index_ || index_->getNumIncomingValues() != 2 || !index_->getType()->isIntegerTy(64)) return false;
  for (unsigned n = 0; n < 2; ++n) {
    auto* add = llvm::dyn_cast<Instruction>(index_->getIncomingValue(n));
    if (!add || add->getOpcode() != Instruction::Add || add->getOperand(0) != index_) continue;
    auto* step = llvm::dyn_cast<llvm::ConstantInt>(add->getOperand(1));
    if (!step) return false;
    next_ = add;
    step_ = step->getSExtValue();
    begin_ = index_->getIncomingValue(1 - n);
    before_ = index_->getIncomingBlock(1 - n);
  }
  if (!next_) return false;
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(next_->getParent()->getTerminator());
  const auto* test = branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
  if (!test || test->getPredicate() != llvm::CmpInst::ICMP_SLT || test->getOperand(0) != next_) return false;
  end_ = test->getOperand(1);
  return branch->getSuccessor(0) == head_;
}

bool Loop::sort_instructions() {
  auto is_place = [&](const Value* v) {
    const auto* i = llvm::dyn_cast<Instruction>(v);
    return !i || i->getParent() != head_ || i == index_ || places_.contains(v);
  };
  for (Instruction& i : *head_) {
    if (&i == index_ || i.isTerminator()) continue;
    if (is_prefetch(i)) {
      ahead_.push_back(&i);
    } else if (i.mayWriteToMemory()) {
      stores_.push_back(&i);
    } else if (!i.getType()->isVectorTy() && !i.mayReadFromMemory() && std::all_of(i.op_begin(), i.op_end(), is_place)) {
      places_.insert(&i);
    } else {
      Op op{&i, cost_of_all(i), {}, {}};
      const std::size_t n = ops_.size();
      for (unsigned o = 0; o < i.getNumOperands(); ++o) {
        const auto it = op_of_.find(i.getOperand(o));
        if (it == op_of_.end()) continue;
        op.in.emplace_back(o, it->second);
        ops_[it->second].users.push_back(n);
      }
      op_of_[&i] = n;
      ops_.push_back(std::move(op));
    }
  }
  for (std::size_t n = ops_.size(); n-- > 0;) {
    for (std::size_t user : ops_[n].users) ops_[n].height = std::max(ops_[n].height, ops_[user].height);
    ops_[n].height += ops_[n].cost.latency;
  }
  auto stored = [&](const Instruction* i) { return llvm::isa<llvm::StoreInst>(i) || llvm::isa<llvm::IntrinsicInst>(i); };
  return !ops_.empty() && std::all_of(stores_.begin(), stores_.end(), stored);
}

// Behind the head there may be stores, which of several ways to take is decided there, and the counter.
bool Loop::computes_elsewhere() const {
  std::vector<const BasicBlock*> blocks{next_->getParent()};
  std::set<const BasicBlock*> seen{head_, blocks[0]};
  if (blocks[0] == head_) return false;
  while (!blocks.empty()) {
    const BasicBlock* block = blocks.back();
    blocks.pop_back();
    for (const Instruction& i : *block)
      if (llvm::isa<llvm::PHINode>(i) || (i.getType()->isVectorTy() && i.mayReadFromMemory()) || llvm::isa<llvm::FPMathOperator>(i))
        return true;
    for (const BasicBlock* from : llvm::predecessors(block))
      if (seen.insert(from).second) blocks.push_back(from);
  }
  return false;
}

// The head computes; then come stores, which the first iterations leave out, and the counter.
void Loop::split() {
  first_ = &*head_->getFirstNonPHIIt();
  tail_ = next_->getParent()->splitBasicBlock(next_, "count");
  BasicBlock* rest = head_->splitBasicBlock(head_->getTerminator(), "stores");
  for (Instruction* i : stores_) i->moveBefore(rest->getTerminator());
  head_->getTerminator()->eraseFromParent();
  llvm::IRBuilder<> b(head_);
  b.CreateCondBr(b.CreateICmpSGE(index_, begin_), rest, tail_);
}

// Before the loop stands the first iteration, for the values that later stages find there when the loop begins: others might raise
// exceptions that no element raises.
void Loop::begin() {
  auto* enter = BasicBlock::Create(head_->getContext(), "first", head_->getParent(), head_);
  before_->getTerminator()->replaceSuccessorWith(head_, enter);
  llvm::IRBuilder<> b(enter);
  begun_[index_] = begin_;
  for (Instruction& i : *head_) {
    if (!places_.contains(&i) && !op_of_.contains(&i)) continue;
    Instruction* copy = b.Insert(i.clone());
    for (llvm::Use& use : copy->operands())
      if (const auto it = begun_.find(use); it != begun_.end()) use = it->second;
    begun_[&i] = copy;
  }
  Value* lead = b.getInt64(static_cast<std::uint64_t>(step_ * (schedule_.stages - 1)));
  index_->setIncomingValueForBlock(before_, b.CreateSub(begin_, lead));
  index_->replaceIncomingBlockWith(before_, enter);
  before_ = enter;
  b.CreateBr(head_);
}

// Of the iteration that is at this stage; near the ends, of one that there is.
Value* Loop::index_of(int stage) {
  Value*& index = indices_[stage];
  if (index) return index;
  llvm::IRBuilder<> b(first_);
  auto number = [&](std::int64_t n) { return b.getInt64(static_cast<std::uint64_t>(n)); };
  index = b.CreateAdd(index_, number(step_ * (schedule_.stages - 1 - stage)));
  index = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, b.CreateSub(end_, number(step_)));
  if (stage > 0) index = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, index, begin_);
  return index;
}

// What follows from the index, or is the same in all iterations.
Value* Loop::at_stage(Value* v, int stage) {
  if (v == index_) return index_of(stage);
  if (!places_.contains(v)) return v;
  if (const auto it = copies_.find({v, stage}); it != copies_.end()) return it->second;
  // In the order of the block: operands first, without recursion.
  for (Instruction& i : llvm::make_early_inc_range(*head_)) {
    if (!places_.contains(&i) || copies_.contains({&i, stage})) continue;
    Instruction* copy = i.clone();
    for (llvm::Use& use : copy->operands())
      use = use == index_ ? index_of(stage) : places_.contains(use) ? copies_.at({use, stage}) : use.get();
    copy->insertBefore(first_);
    copies_[{&i, stage}] = copy;
    if (&i == v) break;
  }
  return copies_.at({v, stage});
}

Value* Loop::carried(std::size_t op, int iterations) {
  Value* v = made_[op];
  for (int n = 1; n <= iterations; ++n) {
    Value*& of = carried_[{op, n}];
    if (!of) {
      auto* phi = llvm::PHINode::Create(v->getType(), 2, "", head_->getFirstNonPHIIt());
      phi->addIncoming(begun_.at(schedule_.ops[op].code), before_);
      phi->addIncoming(v, tail_);
      of = phi;
    }
    v = of;
  }
  return v;
}

void Loop::rewrite() {
  const Schedule& s = schedule_;
  std::vector<std::size_t> order(s.ops.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  auto original = [&](std::size_t n) { return op_of_.at(s.ops[n].code); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int at = s.ops[a].time % s.interval, bt = s.ops[b].time % s.interval;
    return at != bt ? at < bt : original(a) < original(b);
  });
  Instruction* end = head_->getTerminator();
  made_.resize(s.ops.size());
  for (std::size_t n = 0; n < s.ops.size(); ++n) made_[n] = n < ops_.size() ? s.ops[n].code : s.ops[n].code->clone();
  std::vector<std::pair<llvm::Use*, Value*>> uses;  // outside, of values as the last stage has them
  for (std::size_t n = 0; n < ops_.size(); ++n)
    for (llvm::Use& use : s.ops[n].code->uses())
      if (llvm::cast<Instruction>(use.getUser())->getParent() != head_) uses.emplace_back(&use, carried(n, s.stages - 1 - s.stage(n)));
  for (Instruction* i : ahead_)
    for (llvm::Use& use : i->operands()) use = at_stage(use, 0);
  for (std::size_t n : order) {
    Instruction* i = made_[n];
    if (i->getParent())
      i->moveBefore(end);
    else
      i->insertBefore(end);
    std::map<unsigned, Value*> computed;
    for (const auto& [operand, in] : s.ops[n].in) computed[operand] = carried(in, s.stage(n) - s.stage(in));
    for (unsigned o = 0; o < i->getNumOperands(); ++o)
      i->setOperand(o, computed.contains(o) ? computed[o] : at_stage(i->getOperand(o), s.stage(n)));
  }
  for (const auto& [use, v] : uses) use->set(v);
}

bool Loop::run() {
  if (!find_counter() || computes_elsewhere() || !sort_instructions()) return false;
  std::optional<Schedule> found = schedule(ops_);
  if (!found) return false;
  schedule_ = std::move(*found);
  begin();
  split();
  rewrite();
  return true;
}

}  // namespace

bool pipeline(BasicBlock* head) { return Loop(head).run(); }

}  // namespace sinter::backends
