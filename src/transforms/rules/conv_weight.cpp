// ConvWeight: linear in input and in output; see convolutions.h. Layer: transforms.
#include "transforms/rules/convolutions.h"

namespace sinter::transforms::rules {

void ConvWeight::vjp(const Call& c, const Sym& g, Cotangents& to) { vjp_convolution(c, g, to); }
Sym ConvWeight::jvp(const Call& c, std::span<const Sym> t) { return jvp_convolution(c, t); }
Sym ConvWeight::batch(const BatchCall& c) { return batch_convolution(c); }

}  // namespace sinter::transforms::rules
