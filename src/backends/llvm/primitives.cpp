#include "backends/llvm/primitives.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <limits>

namespace sinter::backends {

using llvm::Value;
using ops::Prim;

namespace {

using Builder = llvm::IRBuilderBase;
constexpr int kCurrentRounding = 4;  // operand of AVX-512 instructions

bool is_float(Dtype t) { return t == float32 || t == float64; }

Value* number(Builder& b, const Value* like, Dtype t, double v) {
  llvm::Type* element = lane_type(b.getContext(), t);
  llvm::Type* type = shaped(element, like);
  return is_float(t) ? llvm::ConstantFP::get(type, v)
                     : llvm::ConstantInt::get(type, static_cast<std::uint64_t>(static_cast<std::int64_t>(v)), true);
}

int lane_count(const Value* v) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return type ? static_cast<int>(type->getNumElements()) : 1;
}

Value* join(Builder& b, Value* low, Value* high) {
  llvm::SmallVector<int, 16> mask;
  for (int i = 0; i < 2 * lane_count(low); ++i) mask.push_back(i);
  return b.CreateShuffleVector(low, high, mask);
}

// 2^n for integral n with a normal result, by its bits.
Value* power_of_two(Builder& b, Dtype t, Value* n) {
  const bool narrow = t == float32;
  llvm::Type* integer = shaped(narrow ? b.getInt32Ty() : b.getInt64Ty(), n);
  // Integers come from 32-bit conversions: AVX2 has none to 64 bits.
  Value* i = b.CreateFPToSI(n, shaped(b.getInt32Ty(), n));
  if (!narrow) i = b.CreateSExt(i, integer);
  i = b.CreateShl(b.CreateAdd(i, llvm::ConstantInt::get(integer, narrow ? 127 : 1023)), narrow ? 23 : 52);
  return b.CreateBitCast(i, n->getType());
}

// float32: exact in float64 (|n| <= 508), then rounded once.
Value* scale_through_double(Builder& b, Value* a, Value* n) {
  llvm::Type* wide = shaped(b.getDoubleTy(), a);
  Value* product = b.CreateFMul(b.CreateFPExt(a, wide), power_of_two(b, float64, b.CreateFPExt(n, wide)));
  return b.CreateFPTrunc(product, a->getType());
}

// float64: three factors. When the first leaves n beyond the exponent range, the rest is below 2^-53 and a result that the first
// factor had to round is 0 anyway (or infinite): never two roundings that matter.
Value* scale_by_factors(Builder& b, Value* a, Value* n) {
  for (int step = 0; step < 3; ++step) {
    Value* high = number(b, n, float64, 1023);
    Value* low = number(b, n, float64, step == 2 ? -1022 : -969);
    Value* part = b.CreateSelect(b.CreateFCmpOGT(n, high), high, n);
    part = b.CreateSelect(b.CreateFCmpOLT(n, number(b, n, float64, -1022)), low, part);
    a = b.CreateFMul(a, power_of_two(b, float64, part));
    n = b.CreateFSub(n, part);
  }
  return a;
}

// A vector with the lanes of v, and then again, as many as an instruction takes: repeated lanes raise no exception of their own.
Value* fill(Builder& b, Value* v, int lanes) {
  if (!v->getType()->isVectorTy()) return b.CreateVectorSplat(static_cast<unsigned>(lanes), v);
  llvm::SmallVector<int, 16> mask;
  for (int i = 0; i < lanes; ++i) mask.push_back(i % lane_count(v));
  return lane_count(v) == lanes ? v : b.CreateShuffleVector(v, mask);
}
Value* unfill(Builder& b, Value* v, const Value* like) {
  if (!like->getType()->isVectorTy()) return b.CreateExtractElement(v, std::uint64_t{0});
  return lane_count(like) == lane_count(v) ? v : lanes_of(b, v, 0, lane_count(like));
}

// vscalef on whole registers: a * 2^floor(n), rounded once, denormals included.
Value* scale_avx512(Builder& b, Dtype t, Value* a, Value* n) {
  const int lanes = lane_count(a);
  const int whole = t == float32 ? 16 : 8;
  if (lanes > whole) {
    return join(b, scale_avx512(b, t, lanes_of(b, a, 0, lanes / 2), lanes_of(b, n, 0, lanes / 2)),
                scale_avx512(b, t, lanes_of(b, a, lanes / 2, lanes / 2), lanes_of(b, n, lanes / 2, lanes / 2)));
  }
  auto id = t == float32 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512 : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512;
  Value* all = t == float32 ? b.getInt16(-1) : b.getInt8(-1);
  Value* whole_a = fill(b, a, whole);
  llvm::Value* none = llvm::Constant::getNullValue(whole_a->getType());
  return unfill(b, b.CreateIntrinsic(id, {}, {whole_a, fill(b, n, whole), none, all, b.getInt32(kCurrentRounding)}), a);
}

// On whole registers: vrange orders zeros but drops a NaN, and two vfixupimm put it back. Three instructions without masks, where compares
// and selects are five that wait for each other: folding so is 1.8 times as fast on data in cache.
Value* extreme_avx512(Builder& b, Dtype t, bool max, Value* x, Value* y) {
  const int lanes = lane_count(x), whole = t == float32 ? 16 : 8;
  if (lanes > whole) {
    return join(b, extreme_avx512(b, t, max, lanes_of(b, x, 0, lanes / 2), lanes_of(b, y, 0, lanes / 2)),
                extreme_avx512(b, t, max, lanes_of(b, x, lanes / 2, lanes / 2), lanes_of(b, y, lanes / 2, lanes / 2)));
  }
  constexpr int kSignOfResult = 4, kNanFromSource = 0x11;  // nibbles by kind of source: of both kinds of NaN "the source", of others "keep"
  const bool single = t == float32;
  Value* all = single ? b.getInt16(-1) : b.getInt8(-1);
  Value* rounding = b.getInt32(kCurrentRounding);
  Value* r =
      b.CreateIntrinsic(single ? llvm::Intrinsic::x86_avx512_mask_range_ps_512 : llvm::Intrinsic::x86_avx512_mask_range_pd_512, {},
                        {x, y, b.getInt32(kSignOfResult | (max ? 1 : 0)), llvm::Constant::getNullValue(x->getType()), all, rounding});
  Value* kinds = splat(b, single ? b.getInt32(kNanFromSource) : b.getInt64(kNanFromSource), whole);
  for (Value* source : {y, x})
    r = b.CreateIntrinsic(single ? llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512 : llvm::Intrinsic::x86_avx512_mask_fixupimm_pd_512, {},
                          {r, source, kinds, b.getInt32(0), all, rounding});
  return r;
}
Value* extreme(Builder& b, const Target& target, Dtype t, bool max, Value* x, Value* y) {
  if (target.avx512 && lane_count(x) >= (t == float32 ? 16 : 8)) return extreme_avx512(b, t, max, x, y);
  llvm::Type* word = shaped(t == float32 ? b.getInt32Ty() : b.getInt64Ty(), x);
  Value *a = b.CreateBitCast(x, word), *c = b.CreateBitCast(y, word);
  Value* equal = b.CreateBitCast(max ? b.CreateAnd(a, c) : b.CreateOr(a, c), x->getType());
  Value* other = b.CreateSelect(max ? b.CreateFCmpOLT(y, x) : b.CreateFCmpOLT(x, y), x, y);  // y where y is NaN
  return b.CreateSelect(b.CreateFCmpOEQ(x, x), b.CreateSelect(b.CreateFCmpOEQ(x, y), equal, other), x);
}

// float32: x = m 2^e with 3/4 <= m < 3/2, e = exponent(x) - exponent(m) by vgetmant and vgetexp.
Value* mantissa_avx512(Builder& b, Value* x) {
  constexpr int kFrom34To32 = 3, kNanIfNegative = 2;
  Value* all = fill(b, x, 16);
  Value* m = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_getmant_ps_512, {},
                               {all, b.getInt32(kNanIfNegative << 2 | kFrom34To32), llvm::Constant::getNullValue(all->getType()),
                                b.getInt16(-1), b.getInt32(kCurrentRounding)});
  return unfill(b, m, x);
}
Value* exponent_avx512(Builder& b, Value* x) {
  auto floor_log2 = [&](Value* v) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_getexp_ps_512, {},
                             {v, llvm::Constant::getNullValue(v->getType()), b.getInt16(-1), b.getInt32(kCurrentRounding)});
  };
  Value* all = fill(b, x, 16);
  return unfill(b, b.CreateFSub(floor_log2(all), floor_log2(mantissa_avx512(b, all))), x);
}

// The same by integers, of denormals by way of x 2^23.
Value* exponent_or_mantissa(Builder& b, Prim prim, Value* x) {
  auto integer = [&](std::uint64_t v) { return llvm::ConstantInt::get(shaped(b.getInt32Ty(), x), v); };
  auto single = [&](double v) { return number(b, x, float32, v); };
  Value* a = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* tiny = b.CreateFCmpOLT(a, single(0x1p-126));
  Value* word = b.CreateBitCast(b.CreateSelect(tiny, b.CreateFMul(a, single(0x1p23)), a), integer(0)->getType());
  Value* e = b.CreateAShr(b.CreateSub(word, integer(0x3f400000)), 23);
  Value* nan = llvm::ConstantFP::get(x->getType(), llvm::APFloat::getQNaN(llvm::APFloat::IEEEsingle(), true));
  Value* other = b.CreateSelect(b.CreateFCmpOLT(x, single(0)), nan, x);  // what comes of NaN and of x < 0
  Value* valid = b.CreateFCmpOGE(x, single(0));
  if (prim == Prim::mantissa) {
    Value* m = b.CreateSub(word, b.CreateShl(e, 23));
    Value* sign = b.CreateAnd(b.CreateBitCast(x, m->getType()), integer(0x80000000));
    return b.CreateSelect(valid, b.CreateBitCast(b.CreateOr(m, sign), x->getType()), other);
  }
  Value* n = b.CreateFSub(b.CreateSIToFP(e, x->getType()), b.CreateSelect(tiny, single(23), single(0)));
  n = b.CreateSelect(b.CreateFCmpOEQ(x, single(0)), single(-std::numeric_limits<double>::infinity()), n);
  return b.CreateSelect(b.CreateAnd(valid, b.CreateFCmpOLT(a, single(std::numeric_limits<double>::infinity()))), n, other);
}

// By a permutation of registers that hold the table.
Value* lookup(Builder& b, const Target& target, llvm::ArrayRef<Value*> v) {
  llvm::SmallVector<llvm::Constant*, 16> table;
  for (Value* entry : v.drop_front()) {
    auto* c = llvm::cast<llvm::Constant>(entry);
    table.push_back(c->getType()->isVectorTy() ? c->getSplatValue() : c);
  }
  auto registers = [&](std::size_t first, std::size_t count) {
    return llvm::ConstantVector::get(llvm::ArrayRef(table).slice(first, count));
  };
  Value* index = fill(b, v[0], target.lanes);
  if (target.avx512) return unfill(b, b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {registers(0, 16), index}), v[0]);
  Value* low = b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {registers(0, 8), index});
  Value* high = b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {registers(8, 8), index});
  Value* upper = b.CreateICmpSLT(b.CreateShl(index, 28), llvm::Constant::getNullValue(index->getType()));  // bit 3
  return unfill(b, b.CreateSelect(upper, high, low), v[0]);
}

Value* convert(Builder& b, Dtype from, Dtype to, Value* v) {
  llvm::Type* type = shaped(lane_type(b.getContext(), to), v);
  if (to == bool_) {
    return is_float(from) ? b.CreateFCmpUNE(v, number(b, v, from, 0)) : b.CreateICmpNE(v, number(b, v, from, 0));
  }
  if (is_float(from)) {
    if (is_float(to)) return b.CreateFPCast(v, type);
    return is_signed(to) ? b.CreateFPToSI(v, type) : b.CreateFPToUI(v, type);
  }
  if (is_float(to)) return is_signed(from) ? b.CreateSIToFP(v, type) : b.CreateUIToFP(v, type);
  return b.CreateIntCast(v, type, is_signed(from));
}

}  // namespace

llvm::Type* lane_type(llvm::LLVMContext& context, Dtype t) {
  if (t == bool_) return llvm::Type::getInt1Ty(context);
  if (t == float32) return llvm::Type::getFloatTy(context);
  if (t == float64) return llvm::Type::getDoubleTy(context);
  check(is_integer(t), "lane_type: not a machine dtype");
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(8 * size_of(t)));
}

llvm::Type* shaped(llvm::Type* element, const Value* like) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return type ? llvm::FixedVectorType::get(element, type->getNumElements()) : element;
}

Value* splat(Builder& b, Value* scalar, int width) { return b.CreateVectorSplat(static_cast<unsigned>(width), scalar); }

Value* lanes_of(Builder& b, Value* v, int first, int count) {
  llvm::SmallVector<int, 16> mask;
  for (int i = 0; i < count; ++i) mask.push_back(first + i);
  return b.CreateShuffleVector(v, mask);
}

Value* stack(Builder& b, llvm::Type* type, int count) {
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  b.SetInsertPoint(&entry, entry.getFirstInsertionPt());
  return b.CreateAlloca(type, b.getInt32(static_cast<std::uint32_t>(count)));
}

Value* primitive(Builder& b, const Target& target, Prim prim, Dtype result, llvm::ArrayRef<Dtype> dtypes, llvm::ArrayRef<Value*> v) {
  const Dtype t = dtypes[0];
  const bool f = is_float(t);
  const bool s = is_signed(t);
  switch (prim) {
    case Prim::add: return f ? b.CreateFAdd(v[0], v[1]) : b.CreateAdd(v[0], v[1]);
    case Prim::sub: return f ? b.CreateFSub(v[0], v[1]) : b.CreateSub(v[0], v[1]);
    case Prim::mul: return f ? b.CreateFMul(v[0], v[1]) : b.CreateMul(v[0], v[1]);
    case Prim::div: return f ? b.CreateFDiv(v[0], v[1]) : s ? b.CreateSDiv(v[0], v[1]) : b.CreateUDiv(v[0], v[1]);
    case Prim::rem: return s ? b.CreateSRem(v[0], v[1]) : b.CreateURem(v[0], v[1]);
    case Prim::neg: return b.CreateFNeg(v[0]);
    case Prim::abs: return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v[0]);
    case Prim::sqrt: return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v[0]);
    case Prim::fma: return b.CreateIntrinsic(llvm::Intrinsic::fma, {v[0]->getType()}, {v[0], v[1], v[2]});
    case Prim::floor: return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, v[0]);
    case Prim::ceil: return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, v[0]);
    case Prim::trunc: return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v[0]);
    case Prim::rint: return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, v[0]);
    case Prim::scale:
      if (target.avx512) return scale_avx512(b, t, v[0], v[1]);
      return t == float32 ? scale_through_double(b, v[0], v[1]) : scale_by_factors(b, v[0], v[1]);
    case Prim::exponent: return target.avx512 ? exponent_avx512(b, v[0]) : exponent_or_mantissa(b, prim, v[0]);
    case Prim::mantissa: return target.avx512 ? mantissa_avx512(b, v[0]) : exponent_or_mantissa(b, prim, v[0]);
    case Prim::lookup: return lookup(b, target, v);
    case Prim::max: return extreme(b, target, t, true, v[0], v[1]);
    case Prim::min: return extreme(b, target, t, false, v[0], v[1]);
    case Prim::eq: return f ? b.CreateFCmpOEQ(v[0], v[1]) : b.CreateICmpEQ(v[0], v[1]);
    case Prim::lt: return f ? b.CreateFCmpOLT(v[0], v[1]) : s ? b.CreateICmpSLT(v[0], v[1]) : b.CreateICmpULT(v[0], v[1]);
    case Prim::le: return f ? b.CreateFCmpOLE(v[0], v[1]) : s ? b.CreateICmpSLE(v[0], v[1]) : b.CreateICmpULE(v[0], v[1]);
    case Prim::bit_and: return b.CreateAnd(v[0], v[1]);
    case Prim::bit_or: return b.CreateOr(v[0], v[1]);
    case Prim::bit_xor: return b.CreateXor(v[0], v[1]);
    case Prim::bit_not: return b.CreateNot(v[0]);
    case Prim::shl: return b.CreateShl(v[0], v[1]);
    case Prim::shr: return s ? b.CreateAShr(v[0], v[1]) : b.CreateLShr(v[0], v[1]);
    case Prim::select: return b.CreateSelect(v[0], v[1], v[2]);
    case Prim::bitcast: return b.CreateBitCast(v[0], shaped(lane_type(b.getContext(), result), v[0]));
    case Prim::convert: return convert(b, t, result, v[0]);
    case Prim::f16_bits: return b.CreateBitCast(b.CreateFPTrunc(v[0], shaped(b.getHalfTy(), v[0])), shaped(b.getInt16Ty(), v[0]));
    case Prim::f16_value: return b.CreateFPExt(b.CreateBitCast(v[0], shaped(b.getHalfTy(), v[0])), shaped(b.getFloatTy(), v[0]));
  }
  throw InternalError("internal: primitive: unknown instruction");
}

}  // namespace sinter::backends
