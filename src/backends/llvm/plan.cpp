#include "backends/llvm/plan.h"

#include <algorithm>
#include <map>

#include "ops/expand.h"

namespace sinter::backends {

using kernel::Code;
using kernel::Inst;
using kernel::kNone;
using kernel::LoopKind;
using kernel::Ref;
using ops::Op;

namespace {

// LLVM's time is proportional to code. A kernel with much arithmetic has one masked loop instead of a main loop and a tail; one of more
// instructions yet has functions for the expensive operations that it repeats. Beside that much arithmetic both cost little at run time
// (200 operations, a quarter transcendental, unroll 4: 97 ms to compile without, 20 ms with, at equal speed).
constexpr int kMaskedLoop = 80;                            // instructions an iteration of one vector
constexpr int kFunctions = 400;                            // instructions in all
constexpr int kExpensive = 12;                             // instructions of an operation
constexpr int kLeastPipelined = 60, kMostPipelined = 200;  // instructions an iteration of one vector
constexpr int kStreams = 800;                              // instructions in all; more is not bound by memory

// A kernel of one loop over vectors, each computed from loads alone. Of less arithmetic a processor sees enough at once. Rows may be
// shorter than it takes to begin.
void find_pipelined(const kernel::Kernel& k, Plan& plan) {
  Ref loop = kNone;
  int loops = 0, work = 0;
  for (Ref r = 0; r < k.body.size(); ++r) {
    const Inst& i = k.body[r];
    if (i.code == Code::Loop && i.kind == LoopKind::Serial) return;
    if (i.code == Code::Carry || i.code == Code::Combine || i.code == Code::Tile) return;
    if (i.code == Code::Loop && i.kind == LoopKind::Vector) loop = r, ++loops;
    if (i.code != Code::Compute) continue;
    if (loops == 0 && (i.op == Op::FloorDivide || i.op == Op::Remainder)) return;  // which row
    if (loops == 0) continue;
    if (ops::has_loop(i.op, i.dtype)) return;
    work += ops::cost(i.op, i.dtype);
  }
  if (loops == 1 && work >= kLeastPipelined && work <= kMostPipelined) plan.pipelined[loop] = true;
}

void find_ends_and_cost(const kernel::Kernel& k, Plan& plan) {
  std::vector<Ref> open;
  std::map<std::pair<ops::Op, Dtype>, int> expensive;
  int work = 0, code = 0, unroll = 0;  // of the open Vector loop
  for (Ref r = 0; r < k.body.size(); ++r) {
    const Inst& i = k.body[r];
    if (i.code == Code::Loop) {
      open.push_back(r);
      if (i.kind == LoopKind::Vector) unroll = i.unroll;
    } else if (i.code == Code::End) {
      if (k.body[open.back()].kind == LoopKind::Vector) unroll = 0;
      plan.ends[open.back()] = r;
      open.pop_back();
    } else if (i.code == Code::Compute) {
      const int cost = ops::cost(i.op, i.dtype);
      if (unroll > 0) work += cost;
      code += cost * std::max(unroll, 1);
      if (cost > kExpensive) ++expensive[{i.op, i.dtype}];
    } else if (i.code == Code::Tile) {
      for (Ref loop : open) plan.tiles[loop] = true;
    }
  }
  plan.masked = work > kMaskedLoop || code > kFunctions;
  plan.streams = code <= kStreams;
  if (code <= kFunctions) return;
  for (const auto& [what, uses] : expensive) {
    if (uses > 1) plan.functions.insert(what);
  }
}

// To a fixed point: a serial loop's carried value may turn out varying at the loop's end.
void find_varying(const kernel::Kernel& k, Plan& plan) {
  for (bool changed = true; changed;) {
    changed = false;
    bool partials = false;  // carries of a Vector loop follow
    for (Ref r = 0; r < k.body.size(); ++r) {
      const Inst& i = k.body[r];
      bool v = false;
      if (i.code == Code::Loop) {
        v = partials = i.kind == LoopKind::Vector;
      } else if (i.code == Code::Carry) {
        v = partials || plan.varying[i.in[0]] || plan.varying[i.in[1]];
      } else if (i.code != Code::Combine && i.code != Code::End && i.code != Code::Store && i.code != Code::Tile &&
                 i.code != Code::Prefetch) {
        for (Ref in : i.in) v = v || (in != kNone && plan.varying[in]);
      }
      if (v && !plan.varying[r]) plan.varying[r] = changed = true;
    }
  }
}

}  // namespace

Plan make_plan(const kernel::Kernel& k, const Target& target) {
  Plan plan;
  for (auto* of : {&plan.varying, &plan.tiles, &plan.pipelined}) of->resize(k.body.size());
  plan.ends.resize(k.body.size());
  find_ends_and_cost(k, plan);
  if (target.avx512 && plan.functions.empty()) find_pipelined(k, plan);
  find_varying(k, plan);
  return plan;
}

}  // namespace sinter::backends
