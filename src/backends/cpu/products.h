// Library products on the CPU: oneDNN (float32; bfloat16 with AVX-512) and OpenBLAS (float64), behind one file. Layer: backends.
#pragma once
#include <memory>

#include "kernel/call.h"

namespace sinter::backends {

/// A product that is ready to run; making it is what costs (oneDNN generates code), so plans keep it.
class Product {
 public:
  virtual ~Product() = default;
  virtual void run(const void* x, const void* y, void* out) const = 0;
};

/// Whether a library serves this dtype on this processor.
bool has_product(Dtype t);
std::shared_ptr<const Product> make_product(const kernel::CallDesc& desc);

}  // namespace sinter::backends
