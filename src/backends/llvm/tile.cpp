// Tiles of the Emitter: what lies across lanes is transposed, square by square, into memory where it lies along them.
#include <llvm/IR/IntrinsicsX86.h>

#include "backends/llvm/emitter.h"
#include "kernel/kernel.h"

namespace sinter::backends {

using llvm::Value;
using ops::Val;

namespace {

constexpr int kSquaresAhead = 4;  // of a Tile: 2 and 8 are 5 % slower, none 25 %

}  // namespace

// One round of a transposition: the upper half of the vectors is laid between the lower. As many rounds as the number of lanes is a power
// of two transpose a square.
void Emitter::interleave(llvm::SmallVectorImpl<Value*>& rows) {
  const int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements());
  llvm::SmallVector<int, 16> low, high;
  for (int l = 0; l < lanes / 2; ++l) {
    low.append({l, lanes + l});
    high.append({lanes / 2 + l, lanes + lanes / 2 + l});
  }
  // LLVM looks for better shuffles in rounds of them, in vain, for a third of the time that it takes to make such a kernel: of numbers of
  // lanes in a register it knows nothing.
  const bool by_register = target_.avx512 && rows[0]->getType()->getPrimitiveSizeInBits() == 512 && lanes == 16;
  auto between = [&](Value* x, Value* y, llvm::ArrayRef<int> places, Value*& numbers) -> Value* {
    if (!by_register) return b.CreateShuffleVector(x, y, places);
    if (!numbers) {
      const llvm::SmallVector<std::uint32_t, 16> words(places.begin(), places.end());
      numbers = in_entry().CreateFreeze(llvm::ConstantDataVector::get(b.getContext(), words));
    }
    const bool floating = rows[0]->getType()->isFPOrFPVectorTy();
    return b.CreateIntrinsic(floating ? llvm::Intrinsic::x86_avx512_vpermi2var_ps_512 : llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                             {x, numbers, y});
  };
  llvm::SmallVector<Value*, 16> next;
  for (std::size_t r = 0; r < rows.size() / 2; ++r) {
    next.push_back(between(rows[r], rows[r + rows.size() / 2], low, between_[0]));
    next.push_back(between(rows[r], rows[r + rows.size() / 2], high, between_[1]));
  }
  rows.assign(next.begin(), next.end());
}

void Emitter::tile(Value* from, Dtype storage, const Val& index, Value* to, const Val& place, Value* step, Value* count, const Val* later) {
  const Bundle of = bundles_[index.id];
  check(frame.parts == 1 && of.base && contiguous(place), "codegen: a tile of several parts, or not in steps");
  llvm::Type* element = lane_type(b.getContext(), storage);
  Value* asked = later && bundles_[later->id].base ? address(from, element, bundles_[later->id]) : nullptr;
  const Walk walk{element, address(from, element, of), of.step, address(to, element, bundles_[place.id]), step, count, asked};
  if (frame.masks.empty()) return tile_of_all(walk);
  either(b.CreateNot(frame.full), [&] { tile_of_some(walk); }, [&] { tile_of_all(walk); });
}

// Square by square; the last begins earlier where it would not be whole. Each asks for lines that are read later: a store for each load
// fills the queues of memory accesses before enough loads wait at once. Where nobody says which, they are those kSquaresAhead later, at the
// end those of the next lanes.
void Emitter::tile_of_all(const Walk& walk) {
  auto number = [&](int n) { return b.getInt64(static_cast<std::uint64_t>(n)); };
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(walk.count);
  const bool whole = known && known->getZExtValue() % static_cast<std::uint64_t>(frame.width) == 0;
  Value* last = b.CreateSub(walk.count, number(frame.width));
  Value* squares = b.CreateUDiv(b.CreateAdd(walk.count, number(frame.width - 1)), number(frame.width));
  // A count is at least a square: so many squares ahead is some lanes further, and some elements.
  Value* distance = number(kSquaresAhead * frame.width);
  Value* further = b.CreateMul(walk.between_lanes, number(frame.width));
  Value* elements = b.CreateURem(distance, walk.count);
  Value* within = b.CreateAdd(elements, b.CreateMul(b.CreateUDiv(distance, walk.count), further));
  Value* beyond = b.CreateAdd(within, b.CreateSub(further, walk.count));
  repeat(squares, [&](Value* n) {
    Value* first = b.CreateMul(n, number(frame.width));
    if (walk.later) {
      ask_for_later(walk, n);
    } else {
      Value* fits = b.CreateICmpSLT(b.CreateAdd(first, elements), walk.count);
      Value* lane = b.CreateGEP(walk.element, walk.from, b.CreateAdd(first, b.CreateSelect(fits, within, beyond)));
      for (int l = 0; l < frame.width; ++l, lane = b.CreateGEP(walk.element, lane, walk.between_lanes))
        prefetch_lines(lane, frame.width * bytes_of(walk.element), false);
    }
    square(walk, whole ? first : b.CreateSelect(b.CreateICmpSLT(first, last), first, last));
  });
}

// What square `number` asks for of all that every second lane does: as many lines as the others, those of a lane one after the other, for
// neighbouring lines take less than those of other lanes.
void Emitter::ask_for_later(const Walk& walk, Value* number) {
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(walk.count);
  if (!known) return;
  const int count = static_cast<int>(known->getZExtValue()), lines = count * bytes_of(walk.element) / kLine;
  const int share = frame.width / 2 * lines / (count / frame.width), run = std::min(share, lines);
  for (int at = 0; run > 0 && at < share; at += run) {
    auto constant = [&](int n) { return b.getInt64(static_cast<std::uint64_t>(n)); };
    Value* line = b.CreateAdd(b.CreateMul(number, constant(share)), constant(at));
    Value* lane = b.CreateMul(b.CreateUDiv(line, constant(lines)), constant(2));
    Value* start = b.CreateGEP(walk.element, walk.later, b.CreateMul(lane, walk.between_lanes));
    Value* offset = b.CreateMul(b.CreateURem(line, constant(lines)), constant(kLine));
    prefetch_lines(b.CreateGEP(b.getInt8Ty(), start, offset), run * kLine, false, true);
  }
}

// Of as many elements as lanes, from `first` on.
void Emitter::square(const Walk& walk, Value* first) {
  llvm::Type* vector = llvm::FixedVectorType::get(walk.element, static_cast<unsigned>(frame.width));
  const llvm::Align align(static_cast<std::uint64_t>(bytes_of(walk.element)));
  ask_first();
  llvm::SmallVector<Value*, 16> rows;
  Value* lane = b.CreateGEP(walk.element, walk.from, first);
  for (int l = 0; l < frame.width; ++l, lane = b.CreateGEP(walk.element, lane, walk.between_lanes))
    rows.push_back(b.CreateAlignedLoad(vector, lane, align));
  for (int rounds = frame.width; rounds > 1; rounds /= 2) interleave(rows);
  Value* out = b.CreateGEP(walk.element, walk.to, b.CreateMul(first, walk.between_elements));
  for (Value* r : rows) {
    b.CreateAlignedStore(r, out, align);
    out = b.CreateGEP(walk.element, out, walk.between_elements);
  }
}

// Of the lanes that run, one element after the other.
void Emitter::tile_of_some(const Walk& walk) {
  const llvm::Align align(static_cast<std::uint64_t>(bytes_of(walk.element)));
  repeat(frame.rest, [&](Value* lane) {
    Value* line = b.CreateGEP(walk.element, walk.from, b.CreateMul(lane, walk.between_lanes));
    Value* column = b.CreateGEP(walk.element, walk.to, lane);
    repeat(walk.count, [&](Value* n) {
      Value* value = b.CreateAlignedLoad(walk.element, b.CreateGEP(walk.element, line, n), align);
      b.CreateAlignedStore(value, b.CreateGEP(walk.element, column, b.CreateMul(n, walk.between_elements)), align);
    });
  });
}

}  // namespace sinter::backends
