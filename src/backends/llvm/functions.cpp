#include "backends/llvm/functions.h"

namespace sinter::backends {

using llvm::Value;
using ops::Val;
using ops::Wide;

void describe(llvm::Function& f, const Target& target) {
  f.addFnAttr("target-cpu", target.cpu);
  f.addFnAttr("target-features", target.features);
  f.addFnAttr("prefer-vector-width", "512");
  f.addFnAttr("min-legal-vector-width", "512");
  f.addFnAttr("no-jump-tables", "true");  // they would need relocations
  f.addFnAttr("frame-pointer", "all");    // without one, spilled vectors are not aligned: each would cross a cache line
  f.addFnAttr(llvm::Attribute::NoUnwind);
}

llvm::Function* Functions::make(ops::Op op, Dtype compute, std::span<const Wide> operands) {
  llvm::IRBuilderBase& b = emitter_.b;
  const Frame frame = emitter_.frame;
  const auto width = static_cast<unsigned>(frame.width);
  auto type_of = [&](const Val& v) { return llvm::FixedVectorType::get(lane_type(b.getContext(), v.dtype), width); };
  llvm::SmallVector<llvm::Type*, 16> types;
  for (const Wide& w : operands) {
    types.append(static_cast<std::size_t>(frame.parts), type_of(w.re));
    if (is_complex(w.dtype)) types.append(static_cast<std::size_t>(frame.parts), type_of(w.im));
  }
  const Dtype result = ops::result_dtype(op, compute);
  const std::size_t count = static_cast<std::size_t>(frame.parts) * (is_complex(result) ? 2 : 1);
  llvm::Type* element = llvm::FixedVectorType::get(lane_type(b.getContext(), ops::machine_dtype(result)), width);
  auto* returned = llvm::StructType::get(b.getContext(), llvm::SmallVector<llvm::Type*, 16>(count, element));
  auto* type = llvm::FunctionType::get(returned, types, false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, std::string(ops::info(op).name), module_);
  f->setCallingConv(llvm::CallingConv::Fast);
  describe(*f, target_);

  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", f));
  // Nothing in an expansion depends on where its lanes stand.
  emitter_.frame.masks.clear();
  emitter_.frame.offsets.clear();
  std::vector<Wide> in(operands.begin(), operands.end());
  unsigned argument = 0;
  auto take = [&](Val& v) {
    Values parts;
    for (int p = 0; p < frame.parts; ++p) parts.push_back(f->getArg(argument++));
    v = emitter_.varying(v.dtype, parts);
  };
  for (Wide& w : in) {
    take(w.re);
    if (is_complex(w.dtype)) take(w.im);
  }
  const Wide out = ops::expand(op, compute, in);
  Values values = emitter_.lanes(out.re);
  if (is_complex(result)) values.append(emitter_.lanes(out.im));
  Value* all = llvm::PoisonValue::get(returned);
  for (std::size_t n = 0; n < values.size(); ++n) all = b.CreateInsertValue(all, values[n], static_cast<unsigned>(n));
  b.CreateRet(all);
  emitter_.frame = frame;
  return f;
}

Wide Functions::call(ops::Op op, Dtype compute, std::span<const Wide> operands) {
  llvm::IRBuilderBase& b = emitter_.b;
  const auto parts = static_cast<std::size_t>(emitter_.frame.parts);
  Values arguments;
  for (const Wide& w : operands) {
    arguments.append(emitter_.lanes(w.re));
    if (is_complex(w.dtype)) arguments.append(emitter_.lanes(w.im));
  }
  llvm::Function*& f = made_[{op, compute, emitter_.frame.parts, emitter_.frame.width}];
  if (!f) f = make(op, compute, operands);
  llvm::CallInst* call = b.CreateCall(f, arguments);
  call->setCallingConv(llvm::CallingConv::Fast);
  emitter_.called();
  Wide out{ops::result_dtype(op, compute), {}, {}};
  unsigned at = 0;
  auto take = [&] {
    Values values;
    for (std::size_t p = 0; p < parts; ++p) values.push_back(b.CreateExtractValue(call, at++));
    return emitter_.varying(ops::machine_dtype(out.dtype), values);
  };
  out.re = take();
  if (is_complex(out.dtype)) out.im = take();
  return out;
}

}  // namespace sinter::backends
