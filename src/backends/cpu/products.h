// Library calls on the CPU: products by oneDNN (float32; bfloat16 with AVX-512) and OpenBLAS (float64), convolutions by oneDNN, linear
// systems by the LAPACK that OpenBLAS holds; and sorting. Layer: backends.
#pragma once
#include <memory>
#include <span>

#include "kernel/call.h"
#include "ops/product.h"

namespace sinter::backends {

/// A library's routine that is ready to run on memory; making it is what costs (oneDNN generates code), so plans keep it.
class Routine {
 public:
  virtual ~Routine() = default;
  virtual const char* name() const = 0;
  virtual void run(std::span<void* const> memory) const = 0;
};

/// Whether a library serves this dtype on this processor.
bool has_product(Dtype t);
/// On memory of x, y and the result.
std::shared_ptr<const Routine> make_product(const kernel::CallDesc& desc);
/// Whether a product has the same bits as `part`, which is some of its rows (fewer m), of its columns (fewer n) or all of a matrix: found
/// by computing both, once in a process for two descriptions. Long products stand for longer ones, but along k.
bool rows_keep_bits(const ops::Product& whole, const ops::Product& part);
/// On memory of the matrices, row-major, which are overwritten; the right sides, column after column, which are overwritten; n int32 a
/// matrix; and the result, row-major.
std::shared_ptr<const Routine> make_solve(const kernel::SolveDesc& desc);

/// A routine whose last memory is as many bytes of workspace (64-byte aligned).
struct WithWorkspace {
  std::shared_ptr<const Routine> routine;
  std::int64_t workspace = 0;
};
/// On memory of the operands, the result, and the workspace.
WithWorkspace make_convolution(const kernel::ConvDesc& desc);
/// On memory of the elements, the positions, and the workspace.
WithWorkspace make_sort(const kernel::SortDesc& desc);

}  // namespace sinter::backends
