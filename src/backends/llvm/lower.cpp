#include "backends/llvm/lower.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/llvm/arguments.h"
#include "backends/llvm/emitter.h"
#include "backends/llvm/functions.h"
#include "backends/llvm/loops.h"
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
  void block(std::size_t first, std::size_t last);
  void instruction(const Inst& i, Ref r);
  void in_order(Ref loop, Value* begin, Value* end, std::size_t last);
  void vector(Ref loop, std::size_t last);
  void combine(const Inst& i, Ref r);

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
  Arguments args_;
  std::vector<llvm::BasicBlock*> pipelined_;
};

std::vector<llvm::BasicBlock*> Lowering::run(llvm::Function* f) {
  builder_.SetInsertPoint(llvm::BasicBlock::Create(builder_.getContext(), "entry", f));
  emitter_.near = builder_.CreateICmpNE(builder_.CreateAnd(f->getArg(3), kernel::kNear), builder_.getInt64(0));
  args_ = Arguments(k_, *f, plan_.streams, emitter_);
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
      in_order(ref, args_.begin, args_.end, end);
    else
      in_order(ref, scalar(i.in[0]), scalar(i.in[1]), end);
    r = end;
  }
}

void Lowering::instruction(const Inst& i, Ref r) {
  auto operand = [&](int n) -> const Wide& { return values_[i.in[n]]; };
  const auto imm = static_cast<std::size_t>(i.imm);
  switch (i.code) {
    case Code::Arg: values_[r] = {int64, emitter_.uniform(int64, args_.integer(builder_, imm)), {}}; return;
    case Code::Range: values_[r] = {int64, emitter_.uniform(int64, imm == 0 ? args_.begin : args_.end), {}}; return;
    case Code::Scalar: values_[r] = args_.scalars[imm]; return;
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
        std::tie(w.re, w.im) = emitter_.load_pair(args_.buffers[imm], operand(0).re, condition);
      else
        w = ops::load_form(emitter_.load(args_.buffers[imm], ops::storage_dtype(t), operand(0).re, condition), t);
      values_[r] = w;
      return;
    }
    case Code::Store: {
      const Dtype t = k_.buffers[imm].dtype;
      if (is_complex(t))
        emitter_.store_pair(args_.buffers[imm], operand(0).re, operand(1).re, operand(1).im, args_.streams[imm]);
      else
        emitter_.store(args_.buffers[imm], ops::storage_dtype(t), operand(0).re, ops::store_form(operand(1)), args_.streams[imm]);
      return;
    }
    case Code::Tile: {
      const Dtype t = is_complex(i.dtype) ? int64 : ops::storage_dtype(i.dtype);
      const Val* later = i.in[4] == kNone ? nullptr : &operand(4).re;
      emitter_.tile(args_.buffers[imm], t, operand(0).re, args_.buffers[i.to], operand(1).re, scalar(i.in[2]), scalar(i.in[3]), later);
      return;
    }
    case Code::Prefetch:
      emitter_.prefetch(args_.buffers[imm], k_.buffers[imm].dtype, operand(0).re, k_.buffers[imm].written, args_.streams[imm], i.to != 0);
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
State Lowering::flatten(Ref value, Ref as) {
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
  state = counted(builder_, begin, end, 1, false, std::move(state), [&](Value* index, const State& current) {
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
    state = counted(builder_, begin, end, step, false, std::move(state), masked(unroll, i.prefetch));
  } else {
    Value* count = builder_.CreateSub(end, begin);
    count = builder_.CreateSelect(builder_.CreateICmpSGT(count, builder_.getInt64(0)), count, builder_.getInt64(0));
    Value* whole = builder_.CreateAnd(count, builder_.getInt64(static_cast<std::uint64_t>(-step)));
    if (pipelined)  // a short one ends before the pipeline is full
      whole = builder_.CreateSelect(builder_.CreateICmpSGE(count, builder_.getInt64(static_cast<std::uint64_t>(kLeastIterations * step))),
                                    whole, builder_.getInt64(0));
    Value* middle = builder_.CreateAdd(begin, whole);
    state = counted(builder_, begin, middle, step, false, std::move(state), [&](Value* index, const State& current) {
      if (pipelined) pipelined_.push_back(builder_.GetInsertBlock());
      return iteration(index, current);
    });
    if (carried.empty()) {
      state = counted(builder_, middle, end, width, unroll == 1 && !pipelined, std::move(state), masked(1, 0));
    } else {
      tail(builder_, target_.lanes, middle, end, unroll, state, masked(1, 0));
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
