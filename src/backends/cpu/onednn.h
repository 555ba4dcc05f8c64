// What the files that call oneDNN share. Layer: backends.
#pragma once
#include <dnnl.hpp>

#include "base/once.h"
#include "sinter/dtype.h"

namespace sinter::backends {

inline dnnl::engine& cpu_engine() {
  static constinit std::atomic<dnnl::engine*> place{nullptr};
  return base::once(place, [] { return dnnl::engine(dnnl::engine::kind::cpu, 0); });
}

inline dnnl::memory::data_type onednn_type(Dtype t) {
  return t == Dtype::bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace sinter::backends
