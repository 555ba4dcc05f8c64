// Initial values. Layer: nn.
#include "sinter/nn/init.h"

#include <cmath>

#include "base/check.h"
#include "sinter/random.h"

namespace sinter::nn::init {
namespace {

struct Fans {
  double in, out;
};
Fans fans_of(const char* what, const Shape& shape) {
  if (shape.size() < 2) throw ShapeError(str(what, ": the shape has no fans; got ", shape, "; use two axes or more, or uniform"));
  double between = 1;
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) between *= static_cast<double>(static_cast<std::int64_t>(shape[i]));
  return {between * static_cast<double>(static_cast<std::int64_t>(shape.back())),
          between * static_cast<double>(static_cast<std::int64_t>(shape[0]))};
}
Array within(double limit, const Shape& shape, Dtype t, const std::optional<Array>& key) { return uniform(shape, -limit, limit, t, key); }

}  // namespace

Array uniform(const Shape& shape, double low, double high, Dtype t, const std::optional<Array>& key) {
  return random::uniform(low, high, shape, t, key);
}
Array normal(const Shape& shape, double mean, double std, Dtype t, const std::optional<Array>& key) {
  return random::normal(shape, t, mean, std, key);
}
Array glorot_uniform(const Shape& shape, double gain, Dtype t, const std::optional<Array>& key) {
  const Fans f = fans_of("glorot_uniform", shape);
  return within(gain * std::sqrt(6 / (f.in + f.out)), shape, t, key);
}
Array glorot_normal(const Shape& shape, double gain, Dtype t, const std::optional<Array>& key) {
  const Fans f = fans_of("glorot_normal", shape);
  return normal(shape, 0, gain * std::sqrt(2 / (f.in + f.out)), t, key);
}
Array he_uniform(const Shape& shape, double gain, Dtype t, const std::optional<Array>& key) {
  return within(gain * std::sqrt(3 / fans_of("he_uniform", shape).in), shape, t, key);
}
Array he_normal(const Shape& shape, double gain, Dtype t, const std::optional<Array>& key) {
  return normal(shape, 0, gain / std::sqrt(fans_of("he_normal", shape).in), t, key);
}

}  // namespace sinter::nn::init
