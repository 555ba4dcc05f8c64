#include "backends/llvm/lower.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/llvm/emitter.h"
#include "backends/llvm/functions.h"
#include "backends/llvm/pipeline.h"
#include "backends/llvm/plan.h"
#include "backends/llvm/schedule.h"

namespace sinter::backends {

using kernel::Code;
using kernel::Inst;
using kernel::kNone;
using kernel::LoopKind;
using kernel::Ref;
using llvm::Value;
using ops::Val;
using ops::Wide;

namespace {

constexpr int kLeastIterations = 8;  // of a pipeline: to begin takes as long as some

class Lowering {
 public:
  Lowering(const kernel::Kernel& k, const Target& target, const CodegenOptions& options, llvm::Module& module)
      : k_(k),
        target_(target),
        fast_(options.fast_math),
        brief_(options.brief),
        builder_(module.getContext()),
        emitter_(builder_, target),
        functions_(module, target, emitter_),
        plan_(make_plan(k, target)),
        values_(k.body.size()) {}

  /// The blocks whose iterations shall overlap.
  std::vector<llvm::BasicBlock*> run(llvm::Function* f);

 private:
  using State = std::vector<Value*>;
  using Body = FunctionRef<State(Value* index, const State& state)>;

  void block(std::size_t first, std::size_t last);
  void instruction(const Inst& i, Ref r);
  void in_order(Ref loop, Value* begin, Value* end, std::size_t last);
  void vector(Ref loop, std::size_t last);
  void combine(const Inst& i, Ref r);
  Value* word(llvm::Type* type, std::size_t number, std::size_t offset = 0);
  void load_arguments();
  void find_streams(Value* word);

  void tail(Value* begin, Value* end, int parts, State& state, Body body);
  State counted(Value* begin, Value* end, int step, bool once, State initial, Body body);
  std::size_t first_inside(Ref loop) const;
  std::vector<Ref> carries(Ref loop) const;
  State flatten(Ref value, Ref as);
  void unflatten(Ref carry, const State& state, std::size_t& at);
  Value* scalar(Ref r) {
    const Bundle& v = emitter_.bundle(values_[r].re);
    check(v.uniform, "codegen: a loop bound or an address differs between lanes");
    return v.parts[0];
  }

  const kernel::Kernel& k_;
  const Target& target_;
  const bool fast_, brief_;
  llvm::IRBuilder<> builder_;
  Emitter emitter_;
  Functions functions_;
  const Plan plan_;
  std::vector<Wide> values_;  // of each Ref, as last emitted
  std::vector<Value*> buffers_;
  std::vector<Value*> streams_;  // by buffer, i1: stores go past the caches; null: never
  std::vector<Wide> scalars_;
  std::vector<llvm::BasicBlock*> pipelined_;
  Value* begin_ = nullptr;
  Value* end_ = nullptr;
  Value* words_ = nullptr;
};

std::vector<llvm::BasicBlock*> Lowering::run(llvm::Function* f) {
  begin_ = f->getArg(0);
  end_ = f->getArg(1);
  words_ = f->getArg(2);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(builder_.getContext(), "entry", f));
  emitter_.near = builder_.CreateICmpNE(builder_.CreateAnd(f->getArg(3), kernel::kNear), builder_.getInt64(0));
  load_arguments();
  find_streams(f->getArg(3));
  auto* body = llvm::BasicBlock::Create(builder_.getContext(), "body", f);
  builder_.CreateBr(body);  // the entry is complete: what is found out later goes before its end
  builder_.SetInsertPoint(body);
  block(0, k_.body.size());
  if (emitter_.fence) {  // so that other threads see what was stored past the caches
    Value* any = builder_.CreateICmpNE(builder_.CreateAnd(f->getArg(3), ~kernel::kNear), builder_.getInt64(0));
    emitter_.either(any, [&] { builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }, [] {});
  }
  builder_.CreateRetVoid();
  return std::move(pipelined_);
}

void Lowering::find_streams(Value* word) {
  for (std::size_t n = 0; n < k_.buffers.size(); ++n) {
    const bool never = !plan_.streams || !k_.buffers[n].large || n >= kernel::kMostStreams;
    Value* bit = never ? nullptr : builder_.CreateAnd(word, builder_.getInt64(std::uint64_t{1} << n));
    streams_.push_back(never ? nullptr : builder_.CreateICmpNE(bit, builder_.getInt64(0)));
  }
}

// Of the block, which does not change during a launch: the load may be moved.
Value* Lowering::word(llvm::Type* type, std::size_t number, std::size_t offset) {
  Value* from = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), words_, 8 * number + offset);
  llvm::LoadInst* load = builder_.CreateAlignedLoad(type, from, llvm::Align(offset ? 4 : 8));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(builder_.getContext(), {}));
  return load;
}

void Lowering::load_arguments() {
  for (std::size_t n = 0; n < k_.buffers.size(); ++n) buffers_.push_back(word(builder_.getPtrTy(), n));
  std::vector<const Inst*> of(static_cast<std::size_t>(k_.scalars));
  for (const Inst& i : k_.body) {
    if (i.code == Code::Scalar) of[static_cast<std::size_t>(i.imm)] = &i;
  }
  std::size_t number = k_.buffers.size() + static_cast<std::size_t>(k_.integers);
  for (const Inst* i : of) {
    Wide w;
    if (i) {
      const Dtype part = ops::storage_dtype(i->dtype);
      llvm::Type* type = lane_type(builder_.getContext(), part);
      w = ops::load_form(emitter_.uniform(part, word(type, number)), i->dtype);
      if (is_complex(i->dtype)) w.im = emitter_.uniform(part, word(type, number, 4));
    }
    scalars_.push_back(w);
    ++number;
  }
}

void Lowering::block(std::size_t first, std::size_t last) {
  for (std::size_t r = first; r < last; ++r) {
    const Inst& i = k_.body[r];
    const auto ref = static_cast<Ref>(r);
    if (i.code != Code::Loop) {
      instruction(i, ref);
      continue;
    }
    const std::size_t end = plan_.ends[r];
    if (i.kind == LoopKind::Vector)
      vector(ref, end);
    else if (i.kind == LoopKind::Parallel)
      in_order(ref, begin_, end_, end);
    else
      in_order(ref, scalar(i.in[0]), scalar(i.in[1]), end);
    r = end;
  }
}

void Lowering::instruction(const Inst& i, Ref r) {
  auto operand = [&](int n) -> const Wide& { return values_[i.in[n]]; };
  const auto imm = static_cast<std::size_t>(i.imm);
  switch (i.code) {
    case Code::Arg: values_[r] = {int64, emitter_.uniform(int64, word(builder_.getInt64Ty(), k_.buffers.size() + imm)), {}}; return;
    case Code::Range: values_[r] = {int64, emitter_.uniform(int64, imm == 0 ? begin_ : end_), {}}; return;
    case Code::Scalar: values_[r] = scalars_[imm]; return;
    case Code::Const: values_[r] = ops::wide_constant(emitter_, i.dtype, static_cast<std::uint64_t>(i.imm)); return;
    case Code::Compute: {
      if (i.dtype == int64 && i.in[1] != kNone && (k_.body[i.in[1]].code == Code::Arg || k_.body[i.in[1]].code == Code::Const))
        if (auto v = emitter_.index_operation(i.op, operand(0).re, operand(1).re)) {
          values_[r] = {v->dtype, *v, {}};
          return;
        }
      std::vector<Wide> in;
      for (Ref ref : i.in) {
        if (ref != kNone) in.push_back(values_[ref]);
      }
      const int cost = ops::cost(i.op, i.dtype);
      llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
      if (fast_ && cost <= 2) {  // math functions depend on the order of their steps
        llvm::FastMathFlags flags;
        flags.setAllowContract(true);
        flags.setAllowReassoc();
        flags.setAllowReciprocal();
        flags.setNoSignedZeros();
        builder_.setFastMathFlags(flags);
      }
      values_[r] = emitter_.frame.parts > 0 && plan_.functions.count({i.op, i.dtype}) ? functions_.call(i.op, i.dtype, in)
                                                                                      : ops::expand(i.op, i.dtype, in);
      return;
    }
    case Code::Cast: values_[r] = ops::cast(operand(0), i.dtype); return;
    case Code::Load: {
      const Dtype t = k_.buffers[imm].dtype;
      Wide w{t, {}, {}};
      const Val* condition = i.in[1] == kNone ? nullptr : &operand(1).re;
      if (is_complex(t))
        std::tie(w.re, w.im) = emitter_.load_pair(buffers_[imm], operand(0).re, condition);
      else
        w = ops::load_form(emitter_.load(buffers_[imm], ops::storage_dtype(t), operand(0).re, condition), t);
      values_[r] = w;
      return;
    }
    case Code::Store: {
      const Dtype t = k_.buffers[imm].dtype;
      if (is_complex(t))
        emitter_.store_pair(buffers_[imm], operand(0).re, operand(1).re, operand(1).im, streams_[imm]);
      else
        emitter_.store(buffers_[imm], ops::storage_dtype(t), operand(0).re, ops::store_form(operand(1)), streams_[imm]);
      return;
    }
    case Code::Tile: {
      const Dtype t = is_complex(i.dtype) ? int64 : ops::storage_dtype(i.dtype);
      const Val* later = i.in[4] == kNone ? nullptr : &operand(4).re;
      emitter_.tile(buffers_[imm], t, operand(0).re, buffers_[i.to], operand(1).re, scalar(i.in[2]), scalar(i.in[3]), later);
      return;
    }
    case Code::Prefetch:
      emitter_.prefetch(buffers_[imm], k_.buffers[imm].dtype, operand(0).re, k_.buffers[imm].written, streams_[imm], i.to != 0);
      return;
    case Code::Combine: combine(i, r); return;
    case Code::Carry:
    case Code::Loop:
    case Code::End: return;
  }
}

std::size_t Lowering::first_inside(Ref loop) const {
  std::size_t at = loop + 1;
  while (k_.body[at].code == Code::Carry) ++at;
  return at;
}

std::vector<Ref> Lowering::carries(Ref loop) const {
  std::vector<Ref> out;
  for (std::size_t r = loop + 1; r < first_inside(loop); ++r) out.push_back(static_cast<Ref>(r));
  return out;
}

// The LLVM values of `value`, in the form in which the carried value `as` is held.
Lowering::State Lowering::flatten(Ref value, Ref as) {
  const Wide& w = values_[value];
  State out;
  auto take = [&](const Val& v) {
    const Values parts = plan_.varying[as] ? emitter_.lanes(v) : Values{emitter_.scalar(v)};
    out.insert(out.end(), parts.begin(), parts.end());
  };
  take(w.re);
  if (is_complex(w.dtype)) take(w.im);
  return out;
}

void Lowering::unflatten(Ref carry, const State& state, std::size_t& at) {
  const Dtype t = k_.body[carry].dtype;
  auto take = [&] {
    if (!plan_.varying[carry]) return emitter_.uniform(ops::machine_dtype(t), state[at++]);
    Values parts;
    for (int p = 0; p < emitter_.frame.parts; ++p) parts.push_back(state[at++]);
    return emitter_.varying(ops::machine_dtype(t), parts);
  };
  values_[carry].dtype = t;
  values_[carry].re = take();
  if (is_complex(t)) values_[carry].im = take();
}

// A loop with its test at the bottom, behind a test for no iterations at all. `once`: at most one iteration. Where numbers say that there
// is none, or one, there is no loop.
Lowering::State Lowering::counted(Value* begin, Value* end, int step, bool once, State state, Body body) {
  const auto *first = llvm::dyn_cast<llvm::ConstantInt>(begin), *behind = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (first && behind) {
    const std::int64_t count = behind->getSExtValue() - first->getSExtValue();
    if (count <= 0) return state;
    if (once || count <= step) return body(begin, state);
  }
  llvm::Function* f = builder_.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(builder_.getContext(), "loop", f);
  auto* after = llvm::BasicBlock::Create(builder_.getContext(), "done", f);
  builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), inside, after);
  builder_.SetInsertPoint(inside);
  State current = state;
  llvm::PHINode* index = nullptr;
  if (!once) {
    index = builder_.CreatePHI(builder_.getInt64Ty(), 2, "i");
    index->addIncoming(begin, before);
    for (Value*& v : current) {
      llvm::PHINode* phi = builder_.CreatePHI(v->getType(), 2);
      phi->addIncoming(v, before);
      v = phi;
    }
  }
  const State next = body(once ? begin : index, current);
  llvm::BasicBlock* latch = builder_.GetInsertBlock();
  if (once) {
    builder_.CreateBr(after);
  } else {
    Value* following = builder_.CreateAdd(index, builder_.getInt64(static_cast<std::uint64_t>(step)));
    index->addIncoming(following, latch);
    for (std::size_t n = 0; n < next.size(); ++n) llvm::cast<llvm::PHINode>(current[n])->addIncoming(next[n], latch);
    builder_.CreateCondBr(builder_.CreateICmpSLT(following, end), inside, after);
  }
  builder_.SetInsertPoint(after);
  for (std::size_t n = 0; n < next.size(); ++n) {
    llvm::PHINode* phi = builder_.CreatePHI(state[n]->getType(), 2);
    phi->addIncoming(state[n], before);
    phi->addIncoming(next[n], latch);
    state[n] = phi;
  }
  return state;
}

// Serial and Parallel loops.
void Lowering::in_order(Ref loop, Value* begin, Value* end, std::size_t last) {
  const std::vector<Ref> carried = carries(loop);
  State state;
  for (Ref c : carried) {
    for (Value* v : flatten(k_.body[c].in[0], c)) state.push_back(v);
  }
  auto bind = [&](const State& s) {
    std::size_t at = 0;
    for (Ref c : carried) unflatten(c, s, at);
  };
  state = counted(begin, end, 1, false, std::move(state), [&](Value* index, const State& current) {
    values_[loop] = {int64, emitter_.uniform(int64, index), {}};
    bind(current);
    block(first_inside(loop), last);
    State next;
    for (Ref c : carried) {
      for (Value* v : flatten(k_.body[c].in[1], c)) next.push_back(v);
    }
    return next;
  });
  bind(state);
}

// Part by part, each with its own partials: a short row leaves most parts out. The code is there once, and finds the partials on the stack.
void Lowering::tail(Value* begin, Value* end, int parts, State& state, Body body) {
  if (parts == 1) {
    state = counted(begin, end, target_.lanes, true, std::move(state), body);
    return;
  }
  const auto count = static_cast<std::size_t>(parts);
  std::vector<Value*> arrays;  // of each carried value, its parts
  for (std::size_t n = 0; n < state.size(); n += count) arrays.push_back(stack(builder_, state[n]->getType(), parts));
  auto place = [&](std::size_t n, Value* part) { return builder_.CreateGEP(state[n * count]->getType(), arrays[n], part); };
  state = counted(begin, end, 1, true, state, [&](Value*, const State& current) {
    for (std::size_t n = 0; n < current.size(); ++n) builder_.CreateStore(current[n], place(n / count, builder_.getInt64(n % count)));
    counted(begin, end, target_.lanes, false, {builder_.getInt64(0)}, [&](Value* index, const State& part) {
      State own;
      for (std::size_t n = 0; n < arrays.size(); ++n) own.push_back(builder_.CreateLoad(state[n * count]->getType(), place(n, part[0])));
      own = body(index, own);
      for (std::size_t n = 0; n < arrays.size(); ++n) builder_.CreateStore(own[n], place(n, part[0]));
      return State{builder_.CreateAdd(part[0], builder_.getInt64(1))};
    });
    State after;
    for (std::size_t n = 0; n < current.size(); ++n)
      after.push_back(builder_.CreateLoad(current[n]->getType(), place(n / count, builder_.getInt64(n % count))));
    return after;
  });
}

// A main loop without masks, then a masked tail that goes part by part (kernels of much arithmetic, and brief ones: one masked loop).
void Lowering::vector(Ref loop, std::size_t last) {
  const Inst& i = k_.body[loop];
  const std::vector<Ref> carried = carries(loop);
  const bool pipelined = plan_.pipelined[loop] && !brief_;
  const bool one_loop = brief_ || plan_.tiles[loop] || (plan_.masked && !pipelined);
  const int width = target_.lanes, unroll = pipelined || (brief_ && carried.empty()) ? 1 : i.unroll;
  const int step = width * unroll;
  const Frame outside = emitter_.frame;
  check(outside.parts == 0, "codegen: a vector loop inside a vector loop");
  llvm::Type* lane = builder_.getInt64Ty();
  auto frame = [&](int parts, int prefetch) {
    Frame f;
    f.width = width;
    f.parts = parts;
    f.folds = !carried.empty();
    f.prefetch = prefetch;
    for (int p = 0; p < parts; ++p) {
      llvm::SmallVector<llvm::Constant*, 16> numbers;
      for (int l = 0; l < width; ++l) numbers.push_back(llvm::ConstantInt::get(lane, static_cast<std::uint64_t>(p * width + l)));
      f.offsets.push_back(llvm::ConstantVector::get(numbers));
    }
    return f;
  };
  auto iteration = [&](Value* index, const State& current) {
    values_[loop] = {int64, emitter_.affine(index, builder_.getInt64(1)), {}};
    std::size_t at = 0;
    for (Ref c : carried) unflatten(c, current, at);
    block(first_inside(loop), last);
    State next;
    for (Ref c : carried) {
      for (Value* v : flatten(k_.body[c].in[1], c)) next.push_back(v);
    }
    return next;
  };

  Value* begin = scalar(i.in[0]);
  Value* end = scalar(i.in[1]);
  auto masked = [&](int parts, int prefetch) {
    return [&, parts, prefetch](Value* index, const State& current) {
      emitter_.frame = frame(parts, prefetch);
      Value* rest = builder_.CreateSub(end, index);
      emitter_.frame.rest = rest;
      if (one_loop) emitter_.frame.full = builder_.CreateICmpSGE(rest, builder_.getInt64(static_cast<std::uint64_t>(parts * width)));
      Value* left = splat(builder_, builder_.CreateTrunc(rest, builder_.getInt32Ty()), width);
      for (Value*& offset : emitter_.frame.offsets) {
        Value* narrow = builder_.CreateTrunc(offset, shaped(builder_.getInt32Ty(), offset));
        emitter_.frame.masks.push_back(builder_.CreateICmpULT(narrow, left));
        offset = builder_.CreateSelect(emitter_.frame.masks.back(), offset, llvm::Constant::getNullValue(offset->getType()));
      }
      State next = iteration(index, current);
      for (std::size_t n = 0; n < next.size(); ++n) {
        next[n] = builder_.CreateSelect(emitter_.frame.masks[n % static_cast<std::size_t>(parts)], next[n], current[n]);
      }
      return next;
    };
  };
  emitter_.frame = frame(unroll, i.prefetch);
  State state;
  for (Ref c : carried) {
    for (Value* v : flatten(k_.body[c].in[0], c)) state.push_back(v);
  }
  if (one_loop) {
    state = counted(begin, end, step, false, std::move(state), masked(unroll, i.prefetch));
  } else {
    Value* count = builder_.CreateSub(end, begin);
    count = builder_.CreateSelect(builder_.CreateICmpSGT(count, builder_.getInt64(0)), count, builder_.getInt64(0));
    Value* whole = builder_.CreateAnd(count, builder_.getInt64(static_cast<std::uint64_t>(-step)));
    if (pipelined)  // a short one ends before the pipeline is full
      whole = builder_.CreateSelect(builder_.CreateICmpSGE(count, builder_.getInt64(static_cast<std::uint64_t>(kLeastIterations * step))),
                                    whole, builder_.getInt64(0));
    Value* middle = builder_.CreateAdd(begin, whole);
    state = counted(begin, middle, step, false, std::move(state), [&](Value* index, const State& current) {
      if (pipelined) pipelined_.push_back(builder_.GetInsertBlock());
      return iteration(index, current);
    });
    if (carried.empty()) {
      state = counted(middle, end, width, unroll == 1 && !pipelined, std::move(state), masked(1, 0));
    } else {
      tail(middle, end, unroll, state, masked(1, 0));
    }
  }
  emitter_.frame = frame(unroll, 0);
  std::size_t at = 0;
  for (Ref c : carried) unflatten(c, state, at);
  emitter_.frame = outside;
}

// Folds by halves: parts, then lanes; the last two as scalars.
void Lowering::combine(const Inst& i, Ref r) {
  const Ref carry = i.in[0];
  const Dtype t = k_.body[carry].dtype;
  const int components = is_complex(t) ? 2 : 1;
  const Frame outside = emitter_.frame;
  Values held[2];
  held[0] = emitter_.bundle(values_[carry].re).parts;
  if (components == 2) held[1] = emitter_.bundle(values_[carry].im).parts;
  auto wide = [&](auto&& make) {
    Wide w{t, make(held[0]), {}};
    if (components == 2) w.im = make(held[1]);
    return w;
  };
  auto fold = [&](auto&& low, auto&& high) { return ops::expand(i.op, t, std::array{wide(low), wide(high)}); };
  const Dtype part = ops::machine_dtype(t);
  emitter_.frame = Frame{};
  emitter_.frame.width = target_.lanes;
  for (std::size_t parts = held[0].size(); parts > 1; parts /= 2) {
    emitter_.frame.parts = static_cast<int>(parts / 2);
    const Wide w = fold([&](const Values& v) { return emitter_.varying(part, Values(v.begin(), v.begin() + parts / 2)); },
                        [&](const Values& v) { return emitter_.varying(part, Values(v.begin() + parts / 2, v.begin() + parts)); });
    held[0] = emitter_.lanes(w.re);
    if (components == 2) held[1] = emitter_.lanes(w.im);
  }
  emitter_.frame.parts = 1;
  int width = target_.lanes;
  for (; width > 2; width /= 2) {
    emitter_.frame.width = width / 2;
    const Wide w = fold([&](const Values& v) { return emitter_.varying(part, {lanes_of(builder_, v[0], 0, width / 2)}); },
                        [&](const Values& v) { return emitter_.varying(part, {lanes_of(builder_, v[0], width / 2, width / 2)}); });
    held[0] = emitter_.lanes(w.re);
    if (components == 2) held[1] = emitter_.lanes(w.im);
  }
  emitter_.frame = outside;
  auto element = [&](std::uint64_t n) {
    return [this, n, part](const Values& v) { return emitter_.uniform(part, builder_.CreateExtractElement(v[0], n)); };
  };
  values_[r] = fold(element(0), element(1));
}

// What was written and not needed, as the indices of lanes whose accesses are all contiguous.
void drop_dead(llvm::Module& module) {
  for (llvm::Function& f : module)
    for (llvm::BasicBlock& block : llvm::reverse(f))
      for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::reverse(block)))
        if (i.use_empty() && !i.mayHaveSideEffects() && !i.isTerminator()) i.eraseFromParent();
}

}  // namespace

void lower(const kernel::Kernel& k, const Target& target, const CodegenOptions& options, llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {word, word, llvm::PointerType::get(context, 0), word}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kEntry, module);
  describe(*f, target);
  const std::vector<llvm::BasicBlock*> pipelined = Lowering(k, target, options, module).run(f);
  drop_dead(module);
  std::set<const llvm::BasicBlock*> ordered;
  for (llvm::BasicBlock* head : pipelined)
    if (pipeline(head)) ordered.insert(head);
  schedule(module, ordered);
}

}  // namespace sinter::backends
