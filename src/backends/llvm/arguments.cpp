#include "backends/llvm/arguments.h"

namespace sinter::backends {

using kernel::Inst;
using llvm::Value;
using ops::Wide;

Arguments::Arguments(const kernel::Kernel& k, llvm::Function& f, bool may_stream, Emitter& emitter)
    : begin(f.getArg(0)), end(f.getArg(1)), block_(f.getArg(2)) {
  llvm::IRBuilderBase& b = emitter.b;
  for (std::size_t n = 0; n < k.buffers.size(); ++n) buffers.push_back(word(b, b.getPtrTy(), n));

  std::vector<const Inst*> of(static_cast<std::size_t>(k.scalars));
  for (const Inst& i : k.body) {
    if (i.code == kernel::Code::Scalar) of[static_cast<std::size_t>(i.imm)] = &i;
  }
  std::size_t number = k.buffers.size() + static_cast<std::size_t>(k.integers);
  for (const Inst* i : of) {
    Wide w;
    if (i) {
      const Dtype part = ops::storage_dtype(i->dtype);
      llvm::Type* type = lane_type(b.getContext(), part);
      w = ops::load_form(emitter.uniform(part, word(b, type, number)), i->dtype);
      if (is_complex(i->dtype)) w.im = emitter.uniform(part, word(b, type, number, 4));
    }
    scalars.push_back(w);
    ++number;
  }

  for (std::size_t n = 0; n < k.buffers.size(); ++n) {
    const bool never = !may_stream || !k.buffers[n].large || n >= kernel::kMostStreams;
    Value* bit = never ? nullptr : b.CreateAnd(f.getArg(3), b.getInt64(std::uint64_t{1} << n));
    streams.push_back(never ? nullptr : b.CreateICmpNE(bit, b.getInt64(0)));
  }
}

// Of the block, which does not change during a launch: the load may be moved.
Value* Arguments::word(llvm::IRBuilderBase& b, llvm::Type* type, std::size_t number, std::size_t offset) const {
  Value* from = b.CreateConstGEP1_64(b.getInt8Ty(), block_, 8 * number + offset);
  llvm::LoadInst* load = b.CreateAlignedLoad(type, from, llvm::Align(offset ? 4 : 8));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  return load;
}

}  // namespace sinter::backends
