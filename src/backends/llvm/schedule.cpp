#include "backends/llvm/schedule.h"

#include <llvm/IR/IntrinsicInst.h>

#include <map>
#include <queue>

namespace sinter::backends {

using llvm::Instruction;

namespace {

// Where a block is shorter, a processor sees all of it at once; where it is longer, so many values wait that they do not fit in registers.
constexpr std::size_t kFewest = 60, kMost = 1500;
constexpr int kWidth = 2;  // vector operations begun a cycle

// Cycles until a result can be used, about, on processors with AVX-512.
int latency(const Instruction& i) {
  switch (i.getOpcode()) {
    case Instruction::GetElementPtr:
    case Instruction::BitCast:
    case Instruction::InsertElement:
    case Instruction::ShuffleVector: return 0;
    case Instruction::Load: return 8;
    case Instruction::FDiv: return 11;
    case Instruction::FMul: return 4;
    case Instruction::FAdd:
    case Instruction::FSub: return 3;
    case Instruction::Call: break;
    default: return 2;
  }
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  if (!call) return 40;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::sqrt: return 20;
    case llvm::Intrinsic::masked_load: return 8;
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::fabs:
    case llvm::Intrinsic::copysign: return 2;
    default: return 4;
  }
}

bool is_prefetch(const Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
}

struct Node {
  Instruction* instruction;
  std::vector<std::size_t> users;
  int waits_for = 0;  // operands not yet placed
  int ready = 0;      // cycle
  int height = 0;     // cycles from here to the end of the longest chain of users
};

std::vector<Node> nodes_of(llvm::BasicBlock& block) {
  std::vector<Node> nodes;
  std::map<const llvm::Value*, std::size_t> place;
  std::vector<std::size_t> reads;  // since the last write
  std::size_t write = 0;
  bool written = false;
  for (Instruction& i : block) {
    if (llvm::isa<llvm::PHINode>(i) || i.isTerminator()) continue;
    const std::size_t at = nodes.size();
    nodes.push_back({&i, {}});
    auto after = [&](std::size_t earlier) {
      nodes[earlier].users.push_back(at);
      ++nodes[at].waits_for;
    };
    for (const llvm::Value* operand : i.operand_values())
      if (auto it = place.find(operand); it != place.end()) after(it->second);
    place[&i] = at;
    if (!i.mayReadOrWriteMemory() || is_prefetch(i)) continue;
    if (written) after(write);
    if (!i.mayWriteToMemory()) {
      reads.push_back(at);
      continue;
    }
    for (std::size_t read : reads) after(read);
    reads.clear();
    write = at;
    written = true;
  }
  for (std::size_t n = nodes.size(); n-- > 0;) {
    for (std::size_t user : nodes[n].users) nodes[n].height = std::max(nodes[n].height, nodes[user].height);
    nodes[n].height += latency(*nodes[n].instruction);
  }
  return nodes;
}

void schedule(llvm::BasicBlock& block) {
  if (block.size() < kFewest || block.size() > kMost) return;
  std::vector<Node> nodes = nodes_of(block);
  auto later = [&](std::size_t a, std::size_t b) { return nodes[a].height != nodes[b].height ? nodes[a].height < nodes[b].height : a > b; };
  auto not_yet = [&](std::size_t a, std::size_t b) { return nodes[a].ready != nodes[b].ready ? nodes[a].ready > nodes[b].ready : a > b; };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(not_yet)> waiting(not_yet);
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].waits_for == 0) ready.push(n);
  for (int cycle = 0; !ready.empty() || !waiting.empty(); ++cycle) {
    int begun = 0;
    for (;;) {
      for (; !waiting.empty() && nodes[waiting.top()].ready <= cycle; waiting.pop()) ready.push(waiting.top());
      if (ready.empty() || begun == kWidth) break;
      const std::size_t n = ready.top();
      ready.pop();
      nodes[n].instruction->moveBefore(block.getTerminator());
      const int cycles = latency(*nodes[n].instruction);
      begun += cycles > 0;
      for (std::size_t user : nodes[n].users) {
        nodes[user].ready = std::max(nodes[user].ready, cycle + cycles);
        if (--nodes[user].waits_for == 0) waiting.push(user);
      }
    }
  }
}

}  // namespace

void schedule(llvm::Module& module, const std::set<const llvm::BasicBlock*>& ordered) {
  for (llvm::Function& f : module)
    for (llvm::BasicBlock& block : f)
      if (!ordered.contains(&block)) schedule(block);
}

}  // namespace sinter::backends
