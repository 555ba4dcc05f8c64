// Machine::loop of the Emitter.
#include "backends/llvm/emitter.h"

namespace sinter::backends {

using llvm::Value;
using ops::Val;

namespace {

llvm::BasicBlock* new_block(llvm::IRBuilderBase& b, const char* name) {
  return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}

}  // namespace

// Loops of expansions are for seldom cases (arguments of sin beyond 10^4) or run as long as the slowest lane: to interleave the parts of
// a bundle would gain nothing and cost a copy of the code each.
std::vector<Val> Emitter::loop(std::vector<Val> state, Condition condition, Body body) {
  if (frame.parts > 0)
    return frame.parts > 1 ? part_by_part(std::move(state), condition, body) : while_any(std::move(state), condition, body);
  // Outside Vector loops: on a vector of equal lanes, as inside.
  const Frame outside = std::exchange(frame, Frame{});
  frame.width = target_.lanes;
  frame.parts = 1;
  state = while_any(std::move(state), condition, body);
  for (Val& v : state) v = uniform(v.dtype, scalar(v));
  frame = outside;
  return state;
}

Value* Emitter::any(const Val& condition) {
  const Values active = lanes(condition);
  Value* v = active[0];
  for (std::size_t p = 1; p < active.size(); ++p) v = b.CreateOr(v, active[p]);
  llvm::Type* bits = b.getIntNTy(static_cast<unsigned>(frame.width));
  return b.CreateICmpNE(b.CreateBitCast(v, bits), llvm::ConstantInt::get(bits, 0));
}

std::vector<Val> Emitter::while_any(std::vector<Val> state, Condition condition, Body body) {
  std::vector<Values> initial;
  for (const Val& v : state) initial.push_back(lanes(v));
  llvm::BasicBlock *before = b.GetInsertBlock(), *head = new_block(b, "while"), *inside = new_block(b, "while.body"),
                   *after = new_block(b, "while.end");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  std::vector<llvm::SmallVector<llvm::PHINode*, 8>> phis(state.size());
  for (std::size_t s = 0; s < state.size(); ++s) {
    Values current;
    for (Value* v : initial[s]) {
      phis[s].push_back(b.CreatePHI(v->getType(), 2));
      phis[s].back()->addIncoming(v, before);
      current.push_back(phis[s].back());
    }
    state[s] = varying(state[s].dtype, current);
  }
  const Val going = condition(state);
  const Values active = lanes(going);
  b.CreateCondBr(any(going), inside, after);
  b.SetInsertPoint(inside);
  const std::vector<Val> next = body(state);
  std::vector<Values> chosen;
  for (std::size_t s = 0; s < state.size(); ++s) {
    chosen.push_back(lanes(next[s]));
    for (std::size_t p = 0; p < phis[s].size(); ++p) chosen[s][p] = b.CreateSelect(active[p], chosen[s][p], phis[s][p]);
  }
  for (std::size_t s = 0; s < state.size(); ++s) {
    for (std::size_t p = 0; p < phis[s].size(); ++p) phis[s][p]->addIncoming(chosen[s][p], b.GetInsertBlock());
  }
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return state;
}

// if (any lane of any part) for each part: while_any
std::vector<Val> Emitter::part_by_part(std::vector<Val> state, Condition condition, Body body) {
  const Frame whole = frame;
  std::vector<Values> initial;
  for (const Val& v : state) initial.push_back(lanes(v));
  Value* needed = any(condition(state));
  llvm::BasicBlock *fast = b.GetInsertBlock(), *before = new_block(b, "parts.before"), *inside = new_block(b, "parts"),
                   *done = new_block(b, "parts.done"), *after = new_block(b, "parts.end");
  b.CreateCondBr(needed, before, after);
  b.SetInsertPoint(before);
  Values arrays;
  for (const Values& parts : initial) arrays.push_back(array_of(parts));
  b.CreateBr(inside);

  b.SetInsertPoint(inside);
  llvm::PHINode* part = b.CreatePHI(b.getInt64Ty(), 2, "part");
  part->addIncoming(b.getInt64(0), before);
  Rolled rolled{before, whole, part, bundles_.size(), {}};
  rolled_ = &rolled;
  frame.parts = 1;
  frame.offsets.clear();
  frame.masks.clear();
  std::vector<Val> own = state;
  for (std::size_t s = 0; s < state.size(); ++s) own[s] = varying(state[s].dtype, {element(initial[s][0]->getType(), arrays[s])});
  own = while_any(std::move(own), condition, body);
  for (std::size_t s = 0; s < state.size(); ++s) {
    Value* v = lanes(own[s])[0];
    b.CreateStore(v, b.CreateGEP(v->getType(), arrays[s], part));
  }
  Value* next = b.CreateAdd(part, b.getInt64(1));
  part->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(static_cast<std::uint64_t>(whole.parts))), inside, done);
  rolled_ = nullptr;
  frame = whole;

  b.SetInsertPoint(done);
  std::vector<Values> changed(state.size());
  for (std::size_t s = 0; s < state.size(); ++s) {
    for (std::size_t p = 0; p < initial[s].size(); ++p) {
      llvm::Type* type = initial[s][p]->getType();
      changed[s].push_back(b.CreateLoad(type, b.CreateConstGEP1_64(type, arrays[s], p)));
    }
  }
  b.CreateBr(after);
  b.SetInsertPoint(after);
  for (std::size_t s = 0; s < state.size(); ++s) {
    Values parts;
    for (std::size_t p = 0; p < initial[s].size(); ++p) {
      llvm::PHINode* phi = b.CreatePHI(initial[s][p]->getType(), 2);
      phi->addIncoming(initial[s][p], fast);
      phi->addIncoming(changed[s][p], done);
      parts.push_back(phi);
    }
    state[s] = varying(state[s].dtype, std::move(parts));
  }
  return state;
}

Value* Emitter::array_of(const Values& parts) {
  Value* array = stack(b, parts[0]->getType(), static_cast<int>(parts.size()));
  for (std::size_t p = 0; p < parts.size(); ++p) b.CreateStore(parts[p], b.CreateConstGEP1_64(parts[p]->getType(), array, p));
  return array;
}

// The current part of a bundle that was made before the loop.
Value* Emitter::rolled_part(const Val& v) {
  llvm::Type* type = llvm::FixedVectorType::get(lane_type(b.getContext(), v.dtype), static_cast<unsigned>(frame.width));
  Value*& array = rolled_->arrays[v.id];
  if (!array) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(rolled_->before->getTerminator());
    Rolled* inside = std::exchange(rolled_, nullptr);
    std::swap(frame, inside->frame);
    array = array_of(lanes(v));
    std::swap(frame, inside->frame);
    rolled_ = inside;
  }
  return element(type, array);
}

Value* Emitter::rolled_offsets() {
  if (!rolled_->offsets) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(rolled_->before->getTerminator());
    rolled_->offsets = array_of(rolled_->frame.offsets);
  }
  return element(llvm::FixedVectorType::get(b.getInt64Ty(), static_cast<unsigned>(frame.width)), rolled_->offsets);
}

}  // namespace sinter::backends
