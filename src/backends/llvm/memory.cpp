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

constexpr int kLine = 64;           // bytes of a cache line
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

// Vector instructions with a mask exist; otherwise LLVM makes a branch a lane of them.
bool Emitter::masked_access(Dtype storage) const { return target_.avx512 || size_of(storage) >= 4; }

Value* Emitter::addresses(Value* buffer, llvm::Type* element, const Val& index, int part) {
  const Bundle i = bundles_[index.id];
  if (!i.base) return b.CreateGEP(element, buffer, lanes(index)[static_cast<std::size_t>(part)]);
  Value* offset = frame.offsets[static_cast<std::size_t>(part)];
  if (!is_one(i.step)) offset = b.CreateMul(offset, splat(b, i.step, frame.width));
  return b.CreateGEP(element, address(buffer, element, i.base), offset);
}

void Emitter::prefetch_lines(Value* address, int ahead, int bytes, bool write) {
  for (int at = 0; at < bytes; at += kLine) {
    Value* place = b.CreateConstGEP1_64(b.getInt8Ty(), address, static_cast<std::uint64_t>(ahead + at));
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {place->getType()}, {place, b.getInt32(write), b.getInt32(3), b.getInt32(1)});
  }
}

void Emitter::prefetch(Value* buffer, Dtype dtype, const Val& index, bool write, Value* streams) {
  if (!frame.masks.empty() || !contiguous(index)) return;
  llvm::Type* element = llvm::IntegerType::get(b.getContext(), static_cast<unsigned>(8 * size_of(dtype)));
  Value* start = address(buffer, element, bundles_[index.id].base);
  const int vector = frame.width * size_of(dtype);
  auto ask = [&] { prefetch_lines(start, 0, frame.parts * vector, write); };
  if (Value* passes = passes_caches(streams, start, vector))
    either(passes, [] {}, ask);
  else
    ask();
}

Val Emitter::load(Value* buffer, Dtype storage, const Val& index) {
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
  Value* start = address(buffer, element, i.base);
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
void Emitter::repeat(int count, FunctionRef<void(Value*)> body) {
  if (count == 1) return body(b.getInt64(0));
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
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(static_cast<std::uint64_t>(count))), inside, after);
  b.SetInsertPoint(after);
}

// One round of a transposition: the upper half of the vectors is laid between the lower. As many rounds as the number of lanes is a power
// of two transpose a square.
void Emitter::interleave(llvm::SmallVectorImpl<Value*>& rows) {
  const int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements());
  llvm::SmallVector<int, 16> low, high;
  for (int l = 0; l < lanes / 2; ++l) {
    low.append({l, lanes + l});
    high.append({lanes / 2 + l, lanes + lanes / 2 + l});
  }
  llvm::SmallVector<Value*, 16> next;
  for (std::size_t r = 0; r < rows.size() / 2; ++r) {
    next.push_back(b.CreateShuffleVector(rows[r], rows[r + rows.size() / 2], low));
    next.push_back(b.CreateShuffleVector(rows[r], rows[r + rows.size() / 2], high));
  }
  rows.assign(next.begin(), next.end());
}

// Two rounds at once, then the others two at a time in a loop: written out, LLVM would take 10 ms for the shuffles. But all lanes are read
// before anything else, since they are as many misses of the cache.
Value* Emitter::tile(Value* buffer, Dtype storage, const Val& index) {
  const int width = frame.width, squares = kernel::kTile / width;
  check(frame.parts == 1 && kernel::kTile % width == 0, "codegen: a tile of several parts");
  llvm::Type* element = lane_type(b.getContext(), storage);
  llvm::Type* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
  const llvm::Align align(static_cast<std::uint64_t>(size_of(storage)));
  auto number = [&](int n) { return b.getInt64(static_cast<std::uint64_t>(n)); };
  auto at = [&](Value* memory, Value* row) { return b.CreateGEP(vector, memory, row); };
  Value* starts = addresses(buffer, element, index, 0);
  Value* whole = stack(b, vector, kernel::kTile);
  repeat(squares, [&](Value* square) {
    Value* tile = at(whole, b.CreateMul(square, number(width)));
    llvm::SmallVector<Value*, 16> rows;
    for (int l = 0; l < width; ++l)
      rows.push_back(b.CreateAlignedLoad(vector, at(b.CreateExtractElement(starts, number(l)), square), align));
    for (int rounds = std::min(width, 4); rounds > 1; rounds /= 2) interleave(rows);
    Value* from = width > 4 ? stack(b, vector, width) : tile;
    for (int l = 0; l < width; ++l) b.CreateStore(rows[static_cast<std::size_t>(l)], at(from, number(l)));
    for (int left = width / 4; left > 1; left /= 4) {
      const int group = std::min(left, 4), groups = width / group;
      Value* to = left > 4 ? stack(b, vector, width) : tile;
      repeat(groups, [&](Value* g) {
        rows.clear();
        for (int n = 0; n < group; ++n) rows.push_back(b.CreateLoad(vector, at(from, b.CreateAdd(g, number(n * groups)))));
        for (int rounds = group; rounds > 1; rounds /= 2) interleave(rows);
        Value* first = b.CreateMul(g, number(group));
        for (int n = 0; n < group; ++n) b.CreateStore(rows[static_cast<std::size_t>(n)], at(to, b.CreateAdd(first, number(n))));
      });
      from = to;
    }
  });
  return whole;
}

Val Emitter::pick(Value* tile, Dtype storage, Value* number) {
  llvm::Type* vector = llvm::FixedVectorType::get(lane_type(b.getContext(), storage), static_cast<unsigned>(frame.width));
  return varying(storage, {b.CreateLoad(vector, b.CreateGEP(vector, tile, number))});
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
  store_vectors(address(buffer, element, i.base), in, align, streams);
}

// The index of a float32 inside the pairs.
Val Emitter::pair_index(const Val& index, int component) {
  const Val twice = emit(ops::Prim::mul, Dtype::int64, std::array{index, constant(Dtype::int64, 2)});
  return emit(ops::Prim::add, Dtype::int64, std::array{twice, constant(Dtype::int64, static_cast<std::uint64_t>(component))});
}

std::pair<Val, Val> Emitter::load_pair(Value* buffer, const Val& index) {
  if (!contiguous(index) || !frame.masks.empty()) {
    return {load(buffer, Dtype::float32, pair_index(index, 0)), load(buffer, Dtype::float32, pair_index(index, 1))};
  }
  llvm::Type* both = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(2 * frame.width));
  Value* start = address(buffer, b.getInt64Ty(), bundles_[index.id].base);
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
  store_vectors(address(buffer, b.getInt64Ty(), bundles_[index.id].base), both, llvm::Align(4), streams);
}

}  // namespace sinter::backends
