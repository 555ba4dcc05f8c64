// ConvInput: linear in output and in weight; see convolutions.h. Layer: transforms.
#include "transforms/rules/convolutions.h"

namespace sinter::transforms::rules {

void ConvInput::vjp(const Call& c, const Sym& g, Cotangents& to) { vjp_convolution(c, g, to); }
Sym ConvInput::jvp(const Call& c, std::span<const Sym> t) { return jvp_convolution(c, t); }
Sym ConvInput::batch(const BatchCall& c) { return batch_convolution(c); }

}  // namespace sinter::transforms::rules
