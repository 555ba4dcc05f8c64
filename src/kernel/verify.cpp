#include <algorithm>

#include "base/check.h"
#include "kernel/kernel.h"

namespace sinter::kernel {
namespace {

// One pass in order. For each value: the loop it stands in, and whether it is per lane; for loops, whether they are open.
class Verifier {
 public:
  explicit Verifier(const Kernel& k) : k_(k) {}

  void run() {
    parallel_ =
        std::any_of(k_.body.begin(), k_.body.end(), [](const Inst& i) { return i.code == Code::Loop && i.kind == LoopKind::Parallel; });
    home_.resize(k_.body.size(), kNone);
    varies_.resize(k_.body.size(), false);
    for (at_ = 0; at_ < k_.body.size(); ++at_) {
      const Inst& i = k_.body[at_];
      home_[at_] = open_.empty() ? kNone : open_.back();
      check_unused_fields(i);
      inst(i);
      carries_allowed_ = i.code == Code::Loop || (i.code == Code::Carry && carries_allowed_);
    }
    require(open_.empty(), "a loop is not closed");
  }

 private:
  // The message names the instruction by its position, which is its number in the text.
  void require(bool ok, const char* rule) const {
    if (!ok) throw InternalError(str("internal: kernel ", k_.name, ": instruction %", at_, ": ", rule));
  }

  bool is_open(Ref loop) const { return loop == kNone || std::find(open_.begin(), open_.end(), loop) != open_.end(); }
  const Inst* vector() const {
    for (Ref l : open_) {
      if (k_.body[l].kind == LoopKind::Vector) return &k_.body[l];
    }
    return nullptr;
  }

  // An operand: defined before, in an open loop; a carry also right after its loop, in the loop around it.
  Dtype use(Ref r) {
    require(r < at_, "an operand is not defined before its use");
    const Inst& d = k_.body[r];
    require(d.code != Code::End && d.code != Code::Store && d.code != Code::Tile && d.code != Code::Prefetch, "an operand has no value");
    if (d.code == Code::Carry && !is_open(home_[r])) {
      require(is_open(home_[home_[r]]), "an operand belongs to a closed loop");
      require(k_.body[home_[r]].kind != LoopKind::Vector, "only Combine reads the carry of a closed Vector loop");
    } else {
      require(is_open(d.code == Code::Loop ? r : home_[r]), "an operand belongs to a closed loop");
    }
    varies_[at_] = varies_[at_] || (varies_[r] && vector() != nullptr);
    return result_dtype(k_, r);
  }

  bool varies(Ref r) const { return varies_[r] && vector() != nullptr; }

  void check_unused_fields(const Inst& i) const {
    const Inst none{.code = i.code};
    const bool loop = i.code == Code::Loop, op = i.code == Code::Compute || i.code == Code::Combine;
    const bool number = i.code == Code::Arg || i.code == Code::Range || i.code == Code::Scalar || i.code == Code::Const ||
                        i.code == Code::Load || i.code == Code::Store || i.code == Code::Prefetch || i.code == Code::Tile;
    const bool dtype = !loop && i.code != Code::Arg && i.code != Code::Range && i.code != Code::End;
    require(loop || (i.kind == none.kind && i.unroll == none.unroll && i.prefetch == none.prefetch),
            "kind, unroll and prefetch belong to loops");
    require(op || i.op == none.op, "an operation belongs to Compute and Combine");
    require(number || i.imm == none.imm, "a number belongs to Arg, Range, Scalar, Const, Load, Store, Prefetch and Tile");
    require(i.code == Code::Tile || i.to == none.to || (i.code == Code::Prefetch && i.to == 1), "a second buffer belongs to Tile");
    require(dtype || i.dtype == none.dtype, "loops, Arg, Range and End have the dtype int64");
    int used = 0;
    switch (i.code) {
      case Code::Arg:
      case Code::Range:
      case Code::Scalar:
      case Code::Const:
      case Code::End: break;
      case Code::Load: used = i.in[1] == kNone ? 1 : 2; break;
      case Code::Cast:
      case Code::Prefetch:
      case Code::Combine: used = 1; break;
      case Code::Loop:
      case Code::Carry:
      case Code::Store: used = 2; break;
      case Code::Tile: used = i.in[4] == kNone ? 4 : 5; break;
      case Code::Compute: used = ops::info(i.op).operands; break;
    }
    for (int n = 0; n < 5; ++n) require((i.in[n] != kNone) == (n < used), "the number of operands is wrong");
  }

  void inst(const Inst& i) {
    switch (i.code) {
      case Code::Arg: return require(i.imm >= 0 && i.imm < k_.integers, "there is no such integer argument");
      case Code::Range: return require(parallel_ && (i.imm == 0 || i.imm == 1), "a Range without a Parallel loop, or neither 0 nor 1");
      case Code::Scalar: return require(i.imm >= 0 && i.imm < k_.scalars, "there is no such scalar argument");
      case Code::Const:
        return require(size_of(i.dtype) == 8 || static_cast<std::uint64_t>(i.imm) >> (8 * size_of(i.dtype)) == 0,
                       "a literal has bits beyond its dtype");
      case Code::Loop: return loop(i);
      case Code::Carry: return carry(i);
      case Code::End:
        require(!open_.empty(), "End without a loop");
        for (Ref c = open_.back() + 1; k_.body[c].code == Code::Carry; ++c) end_carry(c);
        open_.pop_back();
        return;
      case Code::Compute: return compute(i);
      case Code::Cast: return static_cast<void>(use(i.in[0]));
      case Code::Tile:
      case Code::Load:
      case Code::Prefetch:
      case Code::Store: {
        require(i.imm >= 0 && static_cast<std::size_t>(i.imm) < k_.buffers.size(), "there is no such buffer");
        const Buffer& b = k_.buffers[static_cast<std::size_t>(i.imm)];
        require(i.dtype == b.dtype, "the dtype is not the buffer's");
        require(!b.large || (i.code != Code::Load && i.code != Code::Tile), "a large buffer is read");
        require(use(i.in[0]) == Dtype::int64, "an index is not int64");
        if (i.code == Code::Tile) return tile(i);
        if (i.code == Code::Load && i.in[1] != kNone) require(use(i.in[1]) == Dtype::bool_, "the condition of a Load is not bool");
        if (i.code != Code::Store) return;
        require(use(i.in[1]) == b.dtype, "the stored value has not the buffer's dtype");
        require(b.written, "the buffer is not written");
        return require(!parallel_ || !open_.empty(), "a Store outside the Parallel loop");
      }
      case Code::Combine: return combine(i);
    }
    require(false, "there is no such code");
  }

  void tile(const Inst& i) {
    require(vector() != nullptr, "a Tile outside a Vector loop");
    require(i.to < k_.buffers.size() && k_.buffers[i.to].scratch && k_.buffers[i.to].dtype == i.dtype,
            "a Tile does not go to a scratch buffer of its dtype");
    require(varies(i.in[0]), "the index of a Tile is the same in all lanes");
    require(use(i.in[1]) == Dtype::int64 && varies(i.in[1]), "the place of a Tile is not an int64 of each lane");
    for (Ref r : {i.in[2], i.in[3]})
      require(use(r) == Dtype::int64 && !varies(r), "the step or the count of a Tile is not a uniform int64");
    if (i.in[4] != kNone) require(use(i.in[4]) == Dtype::int64 && varies(i.in[4]), "what a Tile asks for is not an int64 of each lane");
  }

  void loop(const Inst& i) {
    require(use(i.in[0]) == Dtype::int64 && use(i.in[1]) == Dtype::int64, "a loop's bounds are not int64");
    require(!varies_[at_], "the bounds of a loop inside a Vector loop differ between lanes");
    if (i.kind == LoopKind::Parallel) {
      require(open_.empty(), "a Parallel loop is not outermost");
      require(!seen_parallel_, "there is a second Parallel loop");
      seen_parallel_ = true;
    } else if (parallel_ && open_.empty()) {
      require(!seen_parallel_, "a loop after the Parallel loop");
    }
    if (i.kind == LoopKind::Vector) {
      require(vector() == nullptr, "a Vector loop inside a Vector loop");
      require(i.unroll >= 1 && i.unroll <= 8 && (i.unroll & (i.unroll - 1)) == 0, "unroll is not 1, 2, 4 or 8");
      varies_[at_] = true;
    } else {
      require(i.unroll == 1 && i.prefetch == 0, "unroll and prefetch belong to Vector loops");
    }
    open_.push_back(at_);
  }

  void carry(const Inst& i) {
    require(carries_allowed_, "a Carry does not stand right after its loop");
    const LoopKind kind = k_.body[open_.back()].kind;
    require(use(i.in[0]) == i.dtype, "the initial value has not the dtype of its Carry");
    require(kind != LoopKind::Vector || !varies_[at_], "the initial value of a Vector loop's Carry differs between lanes");
    varies_[at_] = vector() != nullptr;
  }

  // At the loop's End, where the next value is known.
  void end_carry(Ref c) { require(use(k_.body[c].in[1]) == k_.body[c].dtype, "the next value has not the dtype of its Carry"); }

  void compute(const Inst& i) {
    const ops::OpInfo& op = ops::info(i.op);
    require(op.kind == ops::OpKind::Elementwise, "Compute needs an elementwise operation");
    Dtype in[3];
    for (int n = 0; n < op.operands; ++n) {
      in[n] = use(i.in[n]);
      const bool condition = op.rule == ops::Rule::Where && n == 0;
      require(in[n] == (condition ? Dtype::bool_ : i.dtype), "an operand has not the compute dtype");
    }
    bool ok = true;
    try {
      ok = ops::elementwise_type(i.op, {in, static_cast<std::size_t>(op.operands)}).compute == i.dtype;
    } catch (const Error&) {
      ok = false;
    }
    require(ok, "the operation does not take this dtype");
  }

  void combine(const Inst& i) {
    const Ref c = i.in[0];
    require(c < at_ && k_.body[c].code == Code::Carry, "Combine needs a Carry");
    require(k_.body[home_[c]].kind == LoopKind::Vector && !is_open(home_[c]) && is_open(home_[home_[c]]),
            "Combine needs the Carry of a closed Vector loop");
    require(i.dtype == k_.body[c].dtype, "the dtype is not that of the Carry");
    const ops::OpInfo& op = ops::info(i.op);
    require(op.kind == ops::OpKind::Elementwise && op.operands == 2 && (op.traits & ops::kCommutative),
            "Combine needs a commutative operation");
    require(ops::result_dtype(i.op, i.dtype) == i.dtype, "the operation of Combine changes the dtype");
  }

  const Kernel& k_;
  Ref at_ = 0;
  std::vector<Ref> open_;     // open loops, outermost first
  std::vector<Ref> home_;     // the loop that each instruction stands in; kNone: none
  std::vector<bool> varies_;  // per lane
  bool parallel_ = false, seen_parallel_ = false;
  bool carries_allowed_ = false;
};

}  // namespace

void verify(const Kernel& k) { Verifier(k).run(); }

}  // namespace sinter::kernel
