// Primitives: one instruction of prims.def as LLVM IR, on a scalar or on a vector of lanes. Layer: backends.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "backends/target.h"
#include "ops/val.h"

namespace sinter::backends {

using Values = llvm::SmallVector<llvm::Value*, 8>;

/// LLVM's type of one lane of a machine dtype: bool is i1.
llvm::Type* lane_type(llvm::LLVMContext& context, Dtype t);
/// `element`, or a vector of it with as many lanes as `like` has.
llvm::Type* shaped(llvm::Type* element, const llvm::Value* like);
/// One value in all `width` lanes.
llvm::Value* splat(llvm::IRBuilderBase& b, llvm::Value* scalar, int width);
/// Lanes [first, first + count) of a vector.
llvm::Value* lanes_of(llvm::IRBuilderBase& b, llvm::Value* v, int first, int count);

/// Room on the stack of the current function.
llvm::Value* stack(llvm::IRBuilderBase& b, llvm::Type* type, int count);

/// All operands are scalars, or all are vectors of the same number of lanes.
llvm::Value* primitive(llvm::IRBuilderBase& b, const Target& target, ops::Prim prim, Dtype result, llvm::ArrayRef<Dtype> dtypes,
                       llvm::ArrayRef<llvm::Value*> operands);

constexpr int kLine = 64;  // bytes of a cache line
inline int bytes_of(llvm::Type* element) { return static_cast<int>(element->getPrimitiveSizeInBits().getFixedValue() / 8); }

}  // namespace sinter::backends
