#include "backends/llvm/pipeline.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "backends/llvm/modulo.h"

namespace sinter::backends {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

namespace {

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
  std::set<const Value*> places_;             // what follows from the index and from arguments
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
  auto reads = [](const Instruction& i) { return i.mayReadFromMemory() && !i.hasMetadata(llvm::LLVMContext::MD_invariant_load); };
  for (Instruction& i : *head_) {
    if (&i == index_ || i.isTerminator()) continue;
    if (is_prefetch(i)) {
      if (!std::all_of(i.op_begin(), i.op_end(), is_place)) return false;
      ahead_.push_back(&i);
    } else if (i.mayWriteToMemory()) {
      stores_.push_back(&i);
    } else if (!i.getType()->isVectorTy() && !reads(i) && std::all_of(i.op_begin(), i.op_end(), is_place)) {
      places_.insert(&i);
    } else {
      Op op{.code = &i, .cost = cost_of(i)};
      const std::size_t n = ops_.size();
      for (unsigned o = 0; o < i.getNumOperands(); ++o) {
        const auto it = op_of_.find(i.getOperand(o));
        if (it == op_of_.end()) continue;
        op.in.emplace_back(o, it->second);
        const Op& in = ops_[it->second];
        if (takes_time(in))
          op.needs.push_back(it->second);
        else
          op.needs.insert(op.needs.end(), in.needs.begin(), in.needs.end());
      }
      std::sort(op.needs.begin(), op.needs.end());
      op.needs.erase(std::unique(op.needs.begin(), op.needs.end()), op.needs.end());
      if (takes_time(op))
        for (std::size_t in : op.needs) ops_[in].users.push_back(n);
      op_of_[&i] = n;
      ops_.push_back(std::move(op));
    }
  }
  for (Op& op : ops_) {
    for (const auto& [operand, in] : op.in) op.depth = std::max(op.depth, ops_[in].depth);
    op.depth += op.cost.latency;
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
  std::set<const Value*> needed{v};
  std::vector<const Value*> open{v};
  while (!open.empty()) {
    const auto* i = llvm::cast<Instruction>(open.back());
    open.pop_back();
    for (const Value* operand : i->operand_values())
      if (places_.contains(operand) && needed.insert(operand).second) open.push_back(operand);
  }
  for (Instruction& i : llvm::make_early_inc_range(*head_)) {  // operands come first there
    if (!needed.contains(&i) || copies_.contains({&i, stage})) continue;
    Instruction* copy = i.clone();
    for (llvm::Use& use : copy->operands())
      use = use == index_ ? index_of(stage) : places_.contains(use) ? copies_.at({use, stage}) : use.get();
    copy->insertBefore(first_);
    copies_[{&i, stage}] = copy;
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
  auto place = [&](std::size_t n) { return std::tuple(s.ops[n].time % s.interval, op_of_.at(s.ops[n].code), n); };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
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
  std::optional<Schedule> found = overlap(ops_);
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
