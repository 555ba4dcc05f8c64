// Loads and stores of the Emitter: scalar, contiguous, or lane by lane.
//
// Padding lanes of a tail hold what lane 0 of part 0 holds: they then compute exactly what an active lane computes, so they neither
// trap nor raise an exception of their own, and their addresses are valid. A gather needs no mask, and a scatter only where the loop
// carries partials (else it writes lane 0's value to lane 0's place once more).
#include <llvm/IR/MDBuilder.h>

#include "backends/llvm/emitter.h"
#include "kernel/kernel.h"

namespace sinter::backends {

using llvm::Value;
using ops::Val;

namespace {

constexpr int kLeastStreamed = 16;  // bytes of the shortest vector that can be stored past the caches

bool is_one(const Value* v) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->isOne();
}

}  // namespace

bool Emitter::contiguous(const Val& index) const {
  const Bundle& i = bundles_[index.id];
  return i.base && is_one(i.step);
}

std::optional<Val> Emitter::index_operation(ops::Op op, const Val& index, const Val& argument) {
  const Bundle i = bundles_[index.id], a = bundles_[argument.id];
  const bool compares = op == ops::Op::Less || op == ops::Op::GreaterEqual,
             divides = op == ops::Op::FloorDivide || op == ops::Op::Remainder;
  if (const auto* c = llvm::dyn_cast_if_present<llvm::ConstantInt>(a.parts.empty() ? nullptr : a.parts[0])) {
    if (!divides || !c->getValue().isPowerOf2()) return {};
    const Val number = constant(Dtype::int64, op == ops::Op::Remainder ? c->getZExtValue() - 1 : c->getValue().logBase2());
    return emit(op == ops::Op::Remainder ? ops::Prim::bit_and : ops::Prim::shr, Dtype::int64, std::array{index, number});
  }
  if (divides && i.uniform && a.uniform) return uniform(Dtype::int64, divided(i.parts[0], a.parts[0], op == ops::Op::Remainder));
  if (rolled_ || (!compares && !divides) || !contiguous(index) || !a.uniform) return {};
  auto number = [&](std::int64_t n) { return b.getInt64(static_cast<std::uint64_t>(n)); };
  auto least = [&](Value* x, std::int64_t y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, number(y)); };
  auto most = [&](Value* x, std::int64_t y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, number(y)); };
  auto narrow = [&](Value* x) { return splat(b, b.CreateTrunc(x, b.getInt32Ty()), frame.width); };
  constexpr std::int64_t kLanes = 256;  // lanes of a frame are fewer
  llvm::Type* integers = llvm::FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(frame.width));
  Values out;
  if (compares) {  // the lane's number with the distance, 32 bits wide
    Value* distance = narrow(least(most(b.CreateSub(a.parts[0], i.base), 0), kLanes));
    for (Value* offset : frame.offsets) {
      Value* lane = b.CreateTrunc(offset, integers);
      out.push_back(op == ops::Op::Less ? b.CreateICmpULT(lane, distance) : b.CreateICmpUGE(lane, distance));
    }
    return varying(Dtype::bool_, std::move(out));
  }
  // One division of lane 0's index, which may be below 0, before a pad; the others wrap around a few times more. The number of times is
  // exact in float32. A size is 0 where no lane reads.
  Value* divisor = most(a.parts[0], 1);
  Value* toward_zero = b.CreateSDiv(i.base, divisor);
  Value* signed_rest = b.CreateSub(i.base, b.CreateMul(toward_zero, divisor));
  Value* below = b.CreateICmpSLT(signed_rest, number(0));
  Value* quotient = b.CreateSelect(below, b.CreateSub(toward_zero, number(1)), toward_zero);
  Value* rest = b.CreateSelect(below, b.CreateAdd(signed_rest, divisor), signed_rest);
  Value* to_wrap = narrow(most(b.CreateSub(rest, divisor), -kLanes));
  llvm::Type* floats = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(frame.width));
  Value* size = b.CreateUIToFP(narrow(least(divisor, kLanes)), floats);
  for (Value* offset : frame.offsets) {
    Value* beyond = b.CreateAdd(b.CreateTrunc(offset, integers), to_wrap);
    Value* more = b.CreateFPToSI(b.CreateFDiv(b.CreateSIToFP(beyond, floats), size), integers);
    Value* zero = llvm::Constant::getNullValue(integers);
    Value* wraps = b.CreateSelect(b.CreateICmpSLT(beyond, zero), zero, b.CreateAdd(more, llvm::ConstantInt::get(integers, 1)));
    wraps = b.CreateZExt(wraps, offset->getType());
    out.push_back(op == ops::Op::FloorDivide
                      ? b.CreateAdd(splat(b, quotient, frame.width), wraps)
                      : b.CreateSub(b.CreateAdd(splat(b, rest, frame.width), offset), b.CreateMul(wraps, splat(b, divisor, frame.width))));
  }
  return varying(Dtype::int64, std::move(out));
}

// One division for the quotient and the rest. Where no lane reads, an index may be below 0 and a size 0: then any number will do.
Value* Emitter::divided(Value* index, Value* size, bool rest) {
  auto [at, fresh] = quotients_.try_emplace({b.GetInsertBlock(), index, size}, nullptr);
  if (fresh) at->second = b.CreateUDiv(index, b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, size, b.getInt64(1)));
  return rest ? b.CreateSub(index, b.CreateMul(at->second, size)) : at->second;
}

// Vector instructions with a mask exist; otherwise LLVM makes a branch a lane of them.
bool Emitter::masked_access(Dtype storage) const { return target_.avx512 || size_of(storage) >= 4; }

Value* Emitter::addresses(Value* buffer, llvm::Type* element, const Val& index, int part) {
  const Bundle i = bundles_[index.id];
  if (!i.base) return b.CreateGEP(element, buffer, lanes(index)[static_cast<std::size_t>(part)]);
  Value* offset = frame.offsets[static_cast<std::size_t>(part)];
  if (!is_one(i.step)) offset = b.CreateMul(offset, splat(b, i.step, frame.width));
  return b.CreateGEP(element, address(buffer, element, i), offset);
}

void Emitter::prefetch_lines(Value* address, int bytes, bool write, bool far) {
  constexpr std::uint32_t kAllLevels = 3, kSecondLevel = 2;
  for (int at = 0; at < bytes; at += kLine) {
    Value* place = b.CreateConstGEP1_64(b.getInt8Ty(), address, static_cast<std::uint64_t>(at));
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {place->getType()},
                      {place, b.getInt32(write), b.getInt32(far ? kSecondLevel : kAllLevels), b.getInt32(1)});
  }
}

// Of the same base, so that all accesses of a loop share one sum, and take no registers for bases of their own.
Value* Emitter::ahead_of(Value* address) {
  const auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(address);
  const bool is_sum = step && step->getNumIndices() == 1;
  llvm::Type* element = is_sum ? step->getSourceElementType() : b.getInt8Ty();
  const int elements = frame.prefetch / bytes_of(element);
  Value*& distance = distances_[elements];
  if (!distance) {
    llvm::IRBuilder<> entry = in_entry();
    distance = entry.CreateSelect(near, entry.getInt64(0), entry.getInt64(static_cast<std::uint64_t>(elements)));
  }
  return is_sum ? b.CreateGEP(element, step->getOperand(0), b.CreateAdd(step->getOperand(1), distance))
                : b.CreateGEP(element, address, distance);
}

// Nothing that follows moves before what has been asked for: behind loads, or one by one among them, that takes 1.2 times as long.
void Emitter::ask_first() {
  auto* next = llvm::BasicBlock::Create(b.getContext(), "asked", b.GetInsertBlock()->getParent());
  b.CreateBr(next);
  b.SetInsertPoint(next);
}

void Emitter::prefetch(Value* buffer, Dtype dtype, const Val& index, bool write, Value* streams, bool far) {
  if (!frame.masks.empty() || !contiguous(index)) return;
  llvm::Type* element = llvm::IntegerType::get(b.getContext(), static_cast<unsigned>(8 * size_of(dtype)));
  Value* start = address(buffer, element, bundles_[index.id]);
  const int vector = frame.width * size_of(dtype);
  auto ask = [&] { prefetch_lines(start, frame.parts * vector, write, far); };
  if (streams && vector >= kLeastStreamed)  // whole lines go past the caches, the few others of a row are not worth asking for
    return either(streams, [] {}, ask);
  ask();
  ask_first();
}

// Where no lane reads, the address is the buffer's: a masked load from a page that is not there is right, and takes hundreds of cycles.
Val Emitter::load_where(Value* buffer, Dtype storage, const Val& index, const Val& condition) {
  llvm::Type* element = lane_type(b.getContext(), storage);
  const llvm::Align align(static_cast<std::uint64_t>(size_of(storage)));
  const Bundle i = bundles_[index.id], c = bundles_[condition.id];
  const int width = frame.parts > 0 ? frame.width : target_.lanes;
  llvm::Type* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
  Value* nothing = llvm::Constant::getNullValue(vector);
  auto contiguous_load = [&](Value* from, Value* mask, Value* any) {
    return b.CreateMaskedLoad(vector, b.CreateSelect(any, from, buffer), align, mask, nothing);
  };
  if (i.uniform && c.uniform) {  // one lane of a masked load
    Value* mask = llvm::Constant::getNullValue(llvm::FixedVectorType::get(b.getInt1Ty(), static_cast<unsigned>(width)));
    mask = b.CreateInsertElement(mask, c.parts[0], std::uint64_t{0});
    Value* loaded = contiguous_load(address(buffer, element, i.parts[0]), mask, c.parts[0]);
    return uniform(storage, b.CreateExtractElement(loaded, std::uint64_t{0}));
  }
  const Values masks = lanes(condition);
  const bool tail = !frame.masks.empty();
  Values out;
  if (!contiguous(index) || !masked_access(storage)) {
    for (std::size_t p = 0; p < masks.size(); ++p)
      out.push_back(b.CreateMaskedGather(vector, addresses(buffer, element, index, static_cast<int>(p)), align, masks[p], nothing));
    return varying(storage, std::move(out));
  }
  Value* start = address(buffer, element, i.base);
  for (std::size_t p = 0; p < masks.size(); ++p) {
    Value* mask = tail ? b.CreateAnd(masks[p], frame.masks[p]) : masks[p];
    Value* from = p == 0 ? start : b.CreateConstGEP1_64(vector, start, p);
    out.push_back(contiguous_load(from, mask, c.uniform ? c.parts[0] : b.CreateOrReduce(mask)));
  }
  if (tail) {
    Value* padding = splat(b, b.CreateExtractElement(out[0], std::uint64_t{0}), width);
    for (std::size_t p = 0; p < out.size(); ++p) out[p] = b.CreateSelect(frame.masks[p], out[p], padding);
  }
  return varying(storage, std::move(out));
}

Val Emitter::load(Value* buffer, Dtype storage, const Val& index, const Val* condition) {
  if (condition) return load_where(buffer, storage, index, *condition);
  llvm::Type* element = lane_type(b.getContext(), storage);
  const llvm::Align align(static_cast<std::uint64_t>(size_of(storage)));
  const Bundle i = bundles_[index.id];
  if (i.uniform) return uniform(storage, b.CreateAlignedLoad(element, address(buffer, element, i.parts[0]), align));
  llvm::Type* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(frame.width));
  const bool tail = !frame.masks.empty();
  Values out;
  if (!contiguous(index) || (tail && !masked_access(storage))) {
    for (int p = 0; p < frame.parts; ++p) out.push_back(b.CreateMaskedGather(vector, addresses(buffer, element, index, p), align));
    return varying(storage, std::move(out));
  }
  Value* start = address(buffer, element, i);
  Value* padding = tail ? splat(b, b.CreateAlignedLoad(element, start, align), frame.width) : nullptr;
  for (int p = 0; p < frame.parts; ++p) {
    Value* from = p == 0 ? start : b.CreateConstGEP1_64(vector, start, static_cast<std::uint64_t>(p));
    out.push_back(tail ? static_cast<Value*>(b.CreateMaskedLoad(vector, from, align, frame.masks[static_cast<std::size_t>(p)], padding))
                       : b.CreateAlignedLoad(vector, from, align));
  }
  prefetch_ahead(start, frame.parts * frame.width * size_of(storage), false);
  return varying(storage, std::move(out));
}

// for (i = 0; i < count; ++i) body(i), count at least 1
void Emitter::repeat(Value* count, FunctionRef<void(Value*)> body) {
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(b.getContext(), "repeat", before->getParent());
  auto* after = llvm::BasicBlock::Create(b.getContext(), "repeated", before->getParent());
  b.CreateBr(inside);
  b.SetInsertPoint(inside);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), before);
  body(i);
  Value* next = b.CreateAdd(i, b.getInt64(1));
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, count), inside, after);
  b.SetInsertPoint(after);
}

void Emitter::either(Value* condition, FunctionRef<void()> yes, FunctionRef<void()> no) {
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto* first = llvm::BasicBlock::Create(b.getContext(), "yes", f);
  auto* second = llvm::BasicBlock::Create(b.getContext(), "no", f);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "after", f);
  b.CreateCondBr(condition, first, second, llvm::MDBuilder(b.getContext()).createBranchWeights(1, 100));
  b.SetInsertPoint(first);
  yes();
  b.CreateBr(after);
  b.SetInsertPoint(second);
  no();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

// i1: whether vectors of so many bytes at an address are stored past the caches; null: never. Such stores need aligned, whole vectors.
Value* Emitter::passes_caches(Value* streams, Value* address, int vector) {
  if (!streams || vector < kLeastStreamed || (!frame.masks.empty() && !frame.full)) return nullptr;
  const auto within = static_cast<std::uint64_t>(std::min(vector, kLine)) - 1;
  Value* offset = b.CreateAnd(b.CreatePtrToInt(address, b.getInt64Ty()), b.getInt64(within));
  Value* passes = b.CreateAnd(streams, b.CreateICmpEQ(offset, b.getInt64(0)));
  return frame.masks.empty() ? passes : b.CreateAnd(passes, frame.full);
}

// An ordinary store reads the line first; one past the caches does not, so that a third less goes through the memory's bus in a copy.
void Emitter::store_vectors(Value* start, const Values& vectors, llvm::Align align, Value* streams) {
  llvm::Type* type = vectors[0]->getType();
  const auto bytes = static_cast<int>(type->getPrimitiveSizeInBits().getFixedValue() / 8);
  auto each = [&](FunctionRef<void(Value * vector, Value * to, std::size_t part)> put) {
    for (std::size_t p = 0; p < vectors.size(); ++p) put(vectors[p], p == 0 ? start : b.CreateConstGEP1_64(type, start, p), p);
  };
  auto ordinary = [&] {
    each([&](Value* vector, Value* to, std::size_t p) {
      if (frame.masks.empty())
        b.CreateAlignedStore(vector, to, align);
      else
        b.CreateMaskedStore(vector, to, align, frame.masks[p]);
    });
    prefetch_ahead(start, static_cast<int>(vectors.size()) * bytes, true);
  };
  Value* passes = passes_caches(streams, start, bytes);
  if (!passes) return ordinary();
  fence = true;
  auto* hint = llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1)));
  auto past = [&] {
    each([&](Value* vector, Value* to, std::size_t) {
      const llvm::Align whole(static_cast<std::uint64_t>(std::min(bytes, kLine)));
      b.CreateAlignedStore(vector, to, whole)->setMetadata(llvm::LLVMContext::MD_nontemporal, hint);
    });
  };
  either(passes, past, ordinary);
}

void Emitter::store(Value* buffer, Dtype storage, const Val& index, const Val& value, Value* streams) {
  llvm::Type* element = lane_type(b.getContext(), storage);
  const llvm::Align align(static_cast<std::uint64_t>(size_of(storage)));
  const Bundle i = bundles_[index.id];
  if (i.uniform && bundles_[value.id].uniform) {
    b.CreateAlignedStore(bundles_[value.id].parts[0], address(buffer, element, i.parts[0]), align);
    return;
  }
  const Values in = lanes(value);
  const bool tail = !frame.masks.empty();
  if (!contiguous(index) || (tail && !masked_access(storage) && !frame.folds)) {
    for (int p = 0; p < frame.parts; ++p) {
      const auto at = static_cast<std::size_t>(p);
      b.CreateMaskedScatter(in[at], addresses(buffer, element, index, p), align, frame.folds && tail ? frame.masks[at] : nullptr);
    }
    return;
  }
  store_vectors(address(buffer, element, i), in, align, streams);
}

// The index of a float32 inside the pairs.
Val Emitter::pair_index(const Val& index, int component) {
  const Val twice = emit(ops::Prim::mul, Dtype::int64, std::array{index, constant(Dtype::int64, 2)});
  return emit(ops::Prim::add, Dtype::int64, std::array{twice, constant(Dtype::int64, static_cast<std::uint64_t>(component))});
}

std::pair<Val, Val> Emitter::load_pair(Value* buffer, const Val& index, const Val* condition) {
  if (condition || !contiguous(index) || !frame.masks.empty()) {
    return {load(buffer, Dtype::float32, pair_index(index, 0), condition), load(buffer, Dtype::float32, pair_index(index, 1), condition)};
  }
  llvm::Type* both = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(2 * frame.width));
  Value* start = address(buffer, b.getInt64Ty(), bundles_[index.id]);
  Values parts[2];
  for (int p = 0; p < frame.parts; ++p) {
    Value* raw = b.CreateAlignedLoad(both, b.CreateConstGEP1_64(both, start, static_cast<std::uint64_t>(p)), llvm::Align(4));
    for (int component : {0, 1}) {
      llvm::SmallVector<int, 16> mask;
      for (int l = 0; l < frame.width; ++l) mask.push_back(2 * l + component);
      parts[component].push_back(b.CreateShuffleVector(raw, mask));
    }
  }
  prefetch_ahead(start, frame.parts * frame.width * 8, false);
  return {varying(Dtype::float32, parts[0]), varying(Dtype::float32, parts[1])};
}

void Emitter::store_pair(Value* buffer, const Val& index, const Val& re, const Val& im, Value* streams) {
  if (!contiguous(index) || !frame.masks.empty()) {
    store(buffer, Dtype::float32, pair_index(index, 0), re);
    store(buffer, Dtype::float32, pair_index(index, 1), im);
    return;
  }
  const Values real = lanes(re), imaginary = lanes(im);
  llvm::SmallVector<int, 32> mask;
  for (int l = 0; l < frame.width; ++l) mask.append({l, l + frame.width});
  Values both;
  for (std::size_t p = 0; p < real.size(); ++p) both.push_back(b.CreateShuffleVector(real[p], imaginary[p], mask));
  store_vectors(address(buffer, b.getInt64Ty(), bundles_[index.id]), both, llvm::Align(4), streams);
}

}  // namespace sinter::backends
