// Lanes: the Machine that computes at once, on N lanes: what the kernel interpreter and the tests of math.h run on. Layer: ops.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ops/val.h"

namespace sinter::ops {

/// Executes each primitive when it is emitted. A value is uniform (one lane, which stands for all) or has `lanes()` lanes; the result of
/// uniform operands is uniform. Lanes hold their bits in the low bytes of a word, the rest 0. Every guard that prims.def leaves to the
/// caller is checked: a zero divisor, a shift beyond the width or a conversion out of range is an InternalError.
class Lanes : public Machine {
  struct Slot {
    std::size_t start, size;  // words; size is 1 or lanes_
  };

 public:
  explicit Lanes(int lanes) : lanes_(lanes) {}
  int lanes() const { return lanes_; }

  /// A value given lane by lane (`words.size() == lanes()`), or one for all lanes. Bits beyond the dtype's width are dropped.
  Val vector(Dtype dtype, std::span<const std::uint64_t> words);
  Val uniform(Dtype dtype, std::uint64_t word) { return constant(dtype, word); }
  bool is_uniform(const Val& v) const { return slots_[v.id].size == 1; }
  /// The bits of one lane, or of all: one word if uniform. The span is good until the next value is made.
  std::uint64_t bits(const Val& v, int lane) const {
    const Slot& slot = slots_[v.id];
    return words_[slot.start + (slot.size == 1 ? 0 : static_cast<std::size_t>(lane))];
  }
  std::span<const std::uint64_t> words(const Val& v) const { return {words_.data() + slots_[v.id].start, slots_[v.id].size}; }

  /// Values made after mark() are forgotten by release(mark), so that a loop's body may run any number of times. What must outlive
  /// the release is read before (`words`) and made again after.
  struct Mark {
    std::size_t slots, words;
  };
  Mark mark() const { return {slots_.size(), words_.size()}; }
  void release(Mark m) {
    slots_.resize(m.slots);
    words_.resize(m.words);
  }

  Val constant(Dtype dtype, std::uint64_t word) override;
  Val emit(Prim prim, Dtype result, std::span<const Val> operands) override;
  std::vector<Val> loop(std::vector<Val> state, FunctionRef<Val(std::span<const Val>)> condition,
                        FunctionRef<std::vector<Val>(std::span<const Val>)> body) override;

 private:
  Val make(Dtype dtype, std::size_t size);

  int lanes_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> words_;
};

}  // namespace sinter::ops
