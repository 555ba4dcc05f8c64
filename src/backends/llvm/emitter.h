// Emitter: an ops::Machine that writes LLVM IR. Layer: backends.
//
// A Val names a Bundle: one scalar that all lanes share (uniform), or `parts` vectors of `width` lanes. Each primitive is written for
// all parts before the next one: that interleaving, not unrolling as such, is what keeps the arithmetic units busy.
// int64 values that are base + lane * step stay in that form through add, sub and mul, so that addresses are recognised as contiguous.
#pragma once
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "backends/codegen.h"
#include "backends/llvm/primitives.h"
#include "ops/expand.h"

namespace sinter::backends {

struct Bundle {
  Dtype dtype = Dtype::int64;
  bool uniform = true;
  Values parts;                   // uniform: one scalar. Affine and not yet needed lane by lane: empty
  llvm::Value* base = nullptr;    // affine: of lane 0 of part 0
  llvm::Value* step = nullptr;    // affine: uniform
  llvm::Value* outer = nullptr;   // affine, where base is a sum: what was added to the index; null: nothing
  llvm::Value* inner = nullptr;   // and the rest
  llvm::Value* spread = nullptr;  // of a uniform: the same in all lanes, once needed
  int calls = 0;                  // calls written before it
  Values slots;                   // of the stack, once needed behind a later call
};

/// The lanes for which code is being written.
struct Frame {
  int width = 1;                // lanes of a part
  int parts = 0;                // 0: outside Vector loops, all values are uniform
  Values offsets;               // int64: the lane's iteration minus that of lane 0 of part 0; padding lanes: 0
  Values masks;                 // padding lanes are false; empty when there are none
  llvm::Value* full = nullptr;  // i1, beside masks: there are no padding lanes
  llvm::Value* rest = nullptr;  // int64, beside masks: iterations from lane 0 of part 0 on
  bool folds = false;           // the loop carries partials, so padding lanes may differ from lane 0
  int prefetch = 0;             // bytes
};

class Emitter : public ops::Machine {
 public:
  Emitter(llvm::IRBuilderBase& builder, const Target& target) : b(builder), target_(target) {}

  ops::Val constant(Dtype dtype, std::uint64_t bits) override;
  ops::Val emit(ops::Prim prim, Dtype result, std::span<const ops::Val> operands) override;
  std::vector<ops::Val> loop(std::vector<ops::Val> state, FunctionRef<ops::Val(std::span<const ops::Val>)> condition,
                             FunctionRef<std::vector<ops::Val>(std::span<const ops::Val>)> body) override;

  ops::Val uniform(Dtype t, llvm::Value* scalar);
  ops::Val varying(Dtype t, Values parts);
  /// int64: base + step * (lane's offset in the frame).
  ops::Val affine(llvm::Value* base, llvm::Value* step);
  const Bundle& bundle(const ops::Val& v) const { return bundles_[v.id]; }
  /// Whether it is an index of lanes that follow each other.
  bool contiguous(const ops::Val& index) const;
  /// The value of each part, vectors of frame.width lanes.
  Values lanes(const ops::Val& v);

  /// Of a value that is equal in all lanes (loops of expansions leave even such values as vectors).
  llvm::Value* scalar(const ops::Val& v) {
    return bundles_[v.id].uniform ? bundles_[v.id].parts[0] : b.CreateExtractElement(lanes(v)[0], std::uint64_t{0});
  }

  /// An operation on an index and an Arg (kernel.h), if it takes less in this form: of an index that goes up by 1 from lane to lane.
  std::optional<ops::Val> index_operation(ops::Op op, const ops::Val& index, const ops::Val& argument);

  /// Elements at `index`, in their stored form; where there is a condition, zero bits in lanes where it is false, which read nothing.
  ops::Val load(llvm::Value* buffer, Dtype storage, const ops::Val& index, const ops::Val* condition = nullptr);
  /// `streams`, i1 or null: whether whole vectors go past the caches, by stores that need a fence at the kernel's end.
  void store(llvm::Value* buffer, Dtype storage, const ops::Val& index, const ops::Val& value, llvm::Value* streams = nullptr);
  /// `count` elements from each lane's `index` on, to `to`: element n of all lanes, one after the other, at `place` + n * step. Every
  /// second lane asks for as many from `later` on, if there is one.
  void tile(llvm::Value* from, Dtype storage, const ops::Val& index, llvm::Value* to, const ops::Val& place, llvm::Value* step,
            llvm::Value* count, const ops::Val* later);
  /// Asks for the elements at `index`, if they are contiguous and all lanes run, and a store would not go past the caches.
  void prefetch(llvm::Value* buffer, Dtype dtype, const ops::Val& index, bool write, llvm::Value* streams, bool far);
  /// complex64, at `index` pairs.
  std::pair<ops::Val, ops::Val> load_pair(llvm::Value* buffer, const ops::Val& index, const ops::Val* condition = nullptr);
  void store_pair(llvm::Value* buffer, const ops::Val& index, const ops::Val& re, const ops::Val& im, llvm::Value* streams = nullptr);

  /// Calls keep no vector registers. Every value that is used behind a call is therefore kept on the stack by us: LLVM would do the
  /// same, but takes time quadratic in the number of calls to find that out.
  void called() { ++calls_; }

  /// if (condition) yes(); else no(); yes() is laid out of the way, and neither leaves a value for the code behind it.
  void either(llvm::Value* condition, FunctionRef<void()> yes, FunctionRef<void()> no);

  llvm::IRBuilderBase& b;
  Frame frame;
  bool fence = false;           // the kernel's end needs one where buffers stream
  llvm::Value* near = nullptr;  // i1: kernel::kNear

 private:
  // A loop over the parts of a bundle, for code that is seldom run: written once, for the part that `part` names at run time.
  struct Rolled {
    llvm::BasicBlock* before;  // where parts are stored, for use in the loop
    Frame frame;               // there
    llvm::Value* part;
    std::size_t bundles;  // those made before the loop have several parts
    std::map<std::uint32_t, llvm::Value*> arrays;
    llvm::Value* offsets = nullptr;
  };
  using Condition = FunctionRef<ops::Val(std::span<const ops::Val>)>;
  using Body = FunctionRef<std::vector<ops::Val>(std::span<const ops::Val>)>;

  ops::Val add(Bundle bundle);
  Values from_stack(std::uint32_t id);
  llvm::Value* rolled_part(const ops::Val& v);
  llvm::Value* rolled_offsets();
  llvm::Value* array_of(const Values& parts);
  llvm::Value* element(llvm::Type* type, llvm::Value* array) { return b.CreateLoad(type, b.CreateGEP(type, array, rolled_->part)); }
  llvm::Value* any(const ops::Val& condition);
  std::vector<ops::Val> while_any(std::vector<ops::Val> state, Condition condition, Body body);
  std::vector<ops::Val> part_by_part(std::vector<ops::Val> state, Condition condition, Body body);
  bool emit_affine(ops::Prim prim, std::span<const ops::Val> operands, ops::Val* result);
  llvm::Value* address(llvm::Value* buffer, llvm::Type* element, llvm::Value* index) { return b.CreateGEP(element, buffer, index); }
  llvm::Value* address(llvm::Value* buffer, llvm::Type* element, const Bundle& index);
  llvm::Value* addresses(llvm::Value* buffer, llvm::Type* element, const ops::Val& index, int part);
  void prefetch_lines(llvm::Value* address, int bytes, bool write, bool far = false);
  /// At the end of the entry block: for values that all of the function may use.
  llvm::IRBuilder<> in_entry() { return llvm::IRBuilder<>(b.GetInsertBlock()->getParent()->getEntryBlock().getTerminator()); }
  llvm::Value* ahead_of(llvm::Value* address);
  void prefetch_ahead(llvm::Value* address, int bytes, bool write) {
    if (frame.prefetch != 0) prefetch_lines(ahead_of(address), bytes, write);
  }
  void interleave(llvm::SmallVectorImpl<llvm::Value*>& rows);
  // From an address in steps between lanes, to one in steps between elements.
  struct Walk {
    llvm::Type* element;
    llvm::Value *from, *between_lanes, *to, *between_elements, *count, *later;
  };
  void square(const Walk& walk, llvm::Value* first);
  void ask_for_later(const Walk& walk, llvm::Value* number);
  void tile_of_all(const Walk& walk);
  void tile_of_some(const Walk& walk);
  void ask_first();
  void repeat(llvm::Value* count, FunctionRef<void(llvm::Value*)> body);
  void store_vectors(llvm::Value* start, const Values& vectors, llvm::Align align, llvm::Value* streams);
  llvm::Value* passes_caches(llvm::Value* streams, llvm::Value* address, int vector);
  ops::Val load_where(llvm::Value* buffer, Dtype storage, const ops::Val& index, const ops::Val& condition);
  bool masked_access(Dtype storage) const;
  ops::Val pair_index(const ops::Val& index, int component);
  llvm::Value* divided(llvm::Value* index, llvm::Value* size, bool rest);

  const Target& target_;
  std::vector<Bundle> bundles_;
  int calls_ = 0;
  Rolled* rolled_ = nullptr;
  llvm::Value* between_[2] = {};           // numbers of lanes, for interleave()
  std::map<int, llvm::Value*> distances_;  // by the number of elements: that, or 0 where `near`
  std::map<std::pair<Dtype, std::uint64_t>, std::uint32_t> constants_;
  std::map<std::tuple<llvm::Value*, llvm::Type*, llvm::Value*>, llvm::Value*> starts_;           // by buffer, element and place
  std::map<std::tuple<llvm::BasicBlock*, llvm::Value*, llvm::Value*>, llvm::Value*> quotients_;  // by place, index and size
};

}  // namespace sinter::backends
