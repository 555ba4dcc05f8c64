#include "backends/llvm/loops.h"

namespace sinter::backends {

using llvm::Value;

State counted(llvm::IRBuilderBase& b, Value* begin, Value* end, int step, bool once, State state, LoopBody body) {
  const auto *first = llvm::dyn_cast<llvm::ConstantInt>(begin), *behind = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (first && behind) {
    const std::int64_t count = behind->getSExtValue() - first->getSExtValue();
    if (count <= 0) return state;
    if (once || count <= step) return body(begin, state);
  }
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(b.getContext(), "loop", f);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "done", f);
  b.CreateCondBr(b.CreateICmpSLT(begin, end), inside, after);
  b.SetInsertPoint(inside);
  State current = state;
  llvm::PHINode* index = nullptr;
  if (!once) {
    index = b.CreatePHI(b.getInt64Ty(), 2, "i");
    index->addIncoming(begin, before);
    for (Value*& v : current) {
      llvm::PHINode* phi = b.CreatePHI(v->getType(), 2);
      phi->addIncoming(v, before);
      v = phi;
    }
  }
  const State next = body(once ? begin : index, current);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  if (once) {
    b.CreateBr(after);
  } else {
    Value* following = b.CreateAdd(index, b.getInt64(static_cast<std::uint64_t>(step)));
    index->addIncoming(following, latch);
    for (std::size_t n = 0; n < next.size(); ++n) llvm::cast<llvm::PHINode>(current[n])->addIncoming(next[n], latch);
    b.CreateCondBr(b.CreateICmpSLT(following, end), inside, after);
  }
  b.SetInsertPoint(after);
  for (std::size_t n = 0; n < next.size(); ++n) {
    llvm::PHINode* phi = b.CreatePHI(state[n]->getType(), 2);
    phi->addIncoming(state[n], before);
    phi->addIncoming(next[n], latch);
    state[n] = phi;
  }
  return state;
}

void tail(llvm::IRBuilderBase& b, int lanes, Value* begin, Value* end, int parts, State& state, LoopBody body) {
  if (parts == 1) {
    state = counted(b, begin, end, lanes, true, std::move(state), body);
    return;
  }
  // The code is there once, and finds the partials on the stack.
  const auto count = static_cast<std::size_t>(parts);
  std::vector<Value*> arrays;  // of each carried value, its parts
  for (std::size_t n = 0; n < state.size(); n += count) arrays.push_back(stack(b, state[n]->getType(), parts));
  auto place = [&](std::size_t n, Value* part) { return b.CreateGEP(state[n * count]->getType(), arrays[n], part); };
  state = counted(b, begin, end, 1, true, state, [&](Value*, const State& current) {
    for (std::size_t n = 0; n < current.size(); ++n) b.CreateStore(current[n], place(n / count, b.getInt64(n % count)));
    counted(b, begin, end, lanes, false, {b.getInt64(0)}, [&](Value* index, const State& part) {
      State own;
      for (std::size_t n = 0; n < arrays.size(); ++n) own.push_back(b.CreateLoad(state[n * count]->getType(), place(n, part[0])));
      own = body(index, own);
      for (std::size_t n = 0; n < arrays.size(); ++n) b.CreateStore(own[n], place(n, part[0]));
      return State{b.CreateAdd(part[0], b.getInt64(1))};
    });
    State after;
    for (std::size_t n = 0; n < current.size(); ++n)
      after.push_back(b.CreateLoad(current[n]->getType(), place(n / count, b.getInt64(n % count))));
    return after;
  });
}

}  // namespace sinter::backends
