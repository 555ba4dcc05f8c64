// Initial values of parameters.
#pragma once
#include "sinter/array.h"

namespace sinter::nn::init {

// Each draws from `key`, or from the calling thread's generator. The fans of a shape (out, ..., in) are in * p and out * p, where p is the
// product of the axes between (a Linear's weight is (out, in)).

/// Uniform in [low, high).
SINTER_API Array uniform(const Shape& shape, double low = 0, double high = 1, Dtype t = float32, const std::optional<Array>& key = {});
/// Gaussian.
SINTER_API Array normal(const Shape& shape, double mean = 0, double std = 1, Dtype t = float32, const std::optional<Array>& key = {});
/// Uniform within gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
SINTER_API Array glorot_uniform(const Shape& shape, double gain = 1, Dtype t = float32, const std::optional<Array>& key = {});
/// Gaussian with variance gain^2 * 2 / (fan_in + fan_out).
SINTER_API Array glorot_normal(const Shape& shape, double gain = 1, Dtype t = float32, const std::optional<Array>& key = {});
/// Uniform within gain * sqrt(3 / fan_in) (He et al., 2015); gain: sqrt(2) for relu.
SINTER_API Array he_uniform(const Shape& shape, double gain = 1.4142135623730951, Dtype t = float32, const std::optional<Array>& key = {});
/// Gaussian with variance gain^2 / fan_in.
SINTER_API Array he_normal(const Shape& shape, double gain = 1.4142135623730951, Dtype t = float32, const std::optional<Array>& key = {});

}  // namespace sinter::nn::init
