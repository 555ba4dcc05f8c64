#include "backends/llvm/emitter.h"

namespace sinter::backends {

using llvm::Value;
using ops::Prim;
using ops::Val;

namespace {

bool is_number(const Value* v, std::int64_t n) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->getSExtValue() == n;
}

// Leaves the builder where the value of `scalar` is known and dominates all its uses.
void move_behind(llvm::IRBuilderBase& b, Value* scalar) {
  if (auto* phi = llvm::dyn_cast<llvm::PHINode>(scalar)) {
    b.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
  } else if (auto* i = llvm::dyn_cast<llvm::Instruction>(scalar)) {
    b.SetInsertPoint(i->getParent(), std::next(i->getIterator()));
  } else if (auto* a = llvm::dyn_cast<llvm::Argument>(scalar)) {
    llvm::BasicBlock& entry = a->getParent()->getEntryBlock();
    b.SetInsertPoint(&entry, entry.getFirstInsertionPt());
  }
}

}  // namespace

Val Emitter::add(Bundle bundle) {
  bundle.calls = calls_;
  bundles_.push_back(std::move(bundle));
  return Val{this, static_cast<std::uint32_t>(bundles_.size() - 1), bundles_.back().dtype};
}

Val Emitter::uniform(Dtype t, Value* scalar) {
  Bundle v;
  v.dtype = t;
  v.parts.push_back(scalar);
  return add(std::move(v));
}

Val Emitter::varying(Dtype t, Values parts) {
  Bundle v;
  v.dtype = t;
  v.uniform = false;
  v.parts = std::move(parts);
  return add(std::move(v));
}

Val Emitter::affine(Value* base, Value* step) {
  if (is_number(step, 0)) return uniform(Dtype::int64, base);
  Bundle v;
  v.uniform = false;
  v.base = base;
  v.step = step;
  return add(std::move(v));
}

Val Emitter::constant(Dtype dtype, std::uint64_t bits) {
  if (size_of(dtype) < 8) bits &= (std::uint64_t{1} << (8 * size_of(dtype))) - 1;
  auto [at, fresh] = constants_.try_emplace({dtype, bits}, 0);
  if (fresh) {
    llvm::Type* type = lane_type(b.getContext(), dtype);
    const unsigned width = dtype == Dtype::bool_ ? 1 : static_cast<unsigned>(8 * size_of(dtype));
    llvm::APInt raw(width, width == 1 ? bits != 0 : bits);
    Value* v = type->isFloatingPointTy() ? static_cast<Value*>(llvm::ConstantFP::get(type, llvm::APFloat(type->getFltSemantics(), raw)))
                                         : llvm::ConstantInt::get(type, raw);
    at->second = uniform(dtype, v).id;
  }
  return Val{this, at->second, dtype};
}

Values Emitter::lanes(const Val& v) {
  if (rolled_ && v.id < rolled_->bundles && !bundles_[v.id].uniform) return {rolled_part(v)};
  Bundle& of = bundles_[v.id];
  if (!of.uniform && of.parts.empty()) {
    // Where the value is asked for need not dominate its other uses: not kept.
    Value* base = splat(b, of.base, frame.width);
    Value* step = is_number(of.step, 1) ? nullptr : splat(b, of.step, frame.width);
    const Values offsets = rolled_ ? Values{rolled_offsets()} : frame.offsets;
    check(!offsets.empty(), "emitter: an index outside its loop");
    Values out;
    for (Value* offset : offsets) out.push_back(b.CreateAdd(base, step ? b.CreateMul(offset, step) : offset));
    return out;
  }
  Value* scalar = of.parts[0];
  if (of.calls != calls_ && !llvm::isa<llvm::Constant>(scalar)) {
    const Values parts = from_stack(v.id);
    return of.uniform ? Values(static_cast<std::size_t>(frame.parts), splat(b, parts[0], frame.width)) : parts;
  }
  if (!of.uniform) return of.parts;
  if (!of.spread || llvm::cast<llvm::FixedVectorType>(of.spread->getType())->getNumElements() != static_cast<unsigned>(frame.width)) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    move_behind(b, scalar);
    of.spread = splat(b, scalar, frame.width);
  }
  return Values(static_cast<std::size_t>(frame.parts), of.spread);
}

Values Emitter::from_stack(std::uint32_t id) {
  Bundle& of = bundles_[id];
  if (of.slots.empty()) {
    for (Value* part : of.parts) {
      of.slots.push_back(stack(b, part->getType(), 1));
      llvm::IRBuilderBase::InsertPointGuard guard(b);
      move_behind(b, part);
      b.CreateStore(part, of.slots.back());
    }
  }
  Values out;
  for (std::size_t p = 0; p < of.parts.size(); ++p) out.push_back(b.CreateLoad(of.parts[p]->getType(), of.slots[p]));
  return out;
}

Val Emitter::emit(Prim prim, Dtype result, std::span<const Val> operands) {
  Val done;
  if (emit_affine(prim, operands, &done)) return done;
  bool uniform_result = true;
  llvm::SmallVector<Dtype, 3> dtypes;
  for (const Val& v : operands) {
    uniform_result &= bundles_[v.id].uniform;
    dtypes.push_back(v.dtype);
  }
  llvm::SmallVector<Value*, 3> in;
  if (uniform_result) {
    for (const Val& v : operands) in.push_back(bundles_[v.id].parts[0]);
    return uniform(result, primitive(b, target_, prim, result, dtypes, in));
  }
  llvm::SmallVector<Values, 3> parts;
  for (const Val& v : operands) parts.push_back(lanes(v));
  Values out;
  for (std::size_t p = 0; p < parts[0].size(); ++p) {
    in.clear();
    for (const Values& of : parts) in.push_back(of[p]);
    out.push_back(primitive(b, target_, prim, result, dtypes, in));
  }
  return varying(result, std::move(out));
}

bool Emitter::emit_affine(Prim prim, std::span<const Val> operands, Val* result) {
  if (operands.size() != 2 || operands[0].dtype != Dtype::int64) return false;
  if (prim != Prim::add && prim != Prim::sub && prim != Prim::mul) return false;
  const Bundle x = bundles_[operands[0].id];
  const Bundle y = bundles_[operands[1].id];
  if (x.uniform && y.uniform) return false;
  if ((!x.uniform && !x.base) || (!y.uniform && !y.base)) return false;
  Value* zero = b.getInt64(0);
  Value* xb = x.uniform ? x.parts[0] : x.base;
  Value* yb = y.uniform ? y.parts[0] : y.base;
  Value* xs = x.uniform ? zero : x.step;
  Value* ys = y.uniform ? zero : y.step;
  if (prim == Prim::mul) {
    if (!x.uniform && !y.uniform) return false;
    Value* step = x.uniform ? b.CreateMul(ys, xb) : b.CreateMul(xs, yb);
    *result = affine(b.CreateMul(xb, yb), step);
    return true;
  }
  const bool plus = prim == Prim::add;
  Value* step = is_number(ys, 0) ? xs : plus && is_number(xs, 0) ? ys : plus ? b.CreateAdd(xs, ys) : b.CreateSub(xs, ys);
  *result = affine(plus ? b.CreateAdd(xb, yb) : b.CreateSub(xb, yb), step);
  if (plus && x.uniform != y.uniform) {
    Bundle& sum = bundles_[result->id];
    const Bundle& index = x.uniform ? y : x;
    Value* added = x.uniform ? xb : yb;
    const bool fixed = llvm::isa<llvm::Constant>(added);  // part of an instruction
    if (fixed && !index.outer) return true;
    sum.outer = fixed ? index.outer : index.outer ? b.CreateAdd(index.outer, added) : added;
    sum.inner = index.inner ? index.inner : index.base;
    if (fixed) sum.inner = b.CreateAdd(sum.inner, added);
  }
  return true;
}

// In two steps, the first behind what it needs: outside the loop where that is known there, so that a loop over many rows has a pointer to
// each instead of an addition a row and iteration.
Value* Emitter::address(Value* buffer, llvm::Type* element, const Bundle& index) {
  if (!index.outer || !llvm::isa<llvm::Instruction>(index.outer)) return address(buffer, element, index.base);
  auto [at, fresh] = starts_.try_emplace({buffer, element, index.outer}, nullptr);
  if (fresh) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    move_behind(b, index.outer);
    at->second = address(buffer, element, index.outer);
  }
  return address(at->second, element, index.inner);
}

}  // namespace sinter::backends
