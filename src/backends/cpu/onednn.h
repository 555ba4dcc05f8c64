// What the files that call oneDNN share. Layer: backends.
#pragma once
#include <dnnl.hpp>

#include "sinter/dtype.h"

namespace sinter::backends {

inline dnnl::engine& cpu_engine() {
  static auto* e = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *e;
}

inline dnnl::memory::data_type onednn_type(Dtype t) {
  return t == Dtype::bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace sinter::backends
