// Layers: plain structs that are called. Their names, arguments and defaults are those of MLX's mlx.nn.
//
// A default constructed layer has unset parameters; constructors with sizes draw them from the calling thread's generator. Layers with
// a const call operator change nothing when they are called; those that keep statistics have a non-const one besides.
#pragma once
#include <array>
#include <tuple>

#include "sinter/functions.h"
#include "sinter/nn/module.h"

namespace sinter::nn {

/// x weight^T + bias, along the last axis. weight (out, in), drawn from [-1, 1) / sqrt(in).
struct SINTER_API Linear {
  Linear() = default;
  Linear(Dim in, Dim out, bool with_bias = true);
  Array operator()(const Array& x) const;
  Parameter weight, bias;  // bias unset: none
  SINTER_FIELDS(weight, bias)
};

/// conv2d and a bias: x (batch, height, width, in). weight (out, kernel, kernel, in / groups), drawn from [-1, 1) / sqrt(what an output
/// sees).
struct SINTER_API Conv2d {
  Conv2d() = default;
  Conv2d(Dim in, Dim out, PerAxis<2> kernel, PerAxis<2> stride = 1, PerAxis<2> padding = 0, PerAxis<2> dilation = 1, int groups = 1,
         bool with_bias = true);
  Array operator()(const Array& x) const;
  Parameter weight, bias;
  std::array<int, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int groups = 1;
  SINTER_FIELDS(weight, bias, stride, padding, dilation, groups)
};
/// max_pool2d and avg_pool2d as layers. The stride is the kernel's size, if not given.
struct SINTER_API MaxPool2d {
  explicit MaxPool2d(PerAxis<2> kernel = 1, PerAxisOrNone<2> stride = {}, PerAxis<2> padding = 0);
  Array operator()(const Array& x) const;
  std::array<int, 2> kernel, stride, padding;
  SINTER_FIELDS(kernel, stride, padding)
};
struct SINTER_API AvgPool2d {
  explicit AvgPool2d(PerAxis<2> kernel = 1, PerAxisOrNone<2> stride = {}, PerAxis<2> padding = 0);
  Array operator()(const Array& x) const;
  std::array<int, 2> kernel, stride, padding;
  SINTER_FIELDS(kernel, stride, padding)
};

/// Rows of a table. weight (count, dims), normal with variance 1 / dims.
struct SINTER_API Embedding {
  Embedding() = default;
  Embedding(Dim count, Dim dims);
  /// ids: integers of any shape; the result has a last axis more.
  Array operator()(const Array& ids) const;
  /// x weight^T: the same table as an output layer.
  Array as_linear(const Array& x) const;
  Parameter weight;
  SINTER_FIELDS(weight)
};

/// layer_norm along the last axis.
struct SINTER_API LayerNorm {
  LayerNorm() = default;
  explicit LayerNorm(Dim dims, double eps = 1e-5, bool affine = true, bool with_bias = true);
  Array operator()(const Array& x) const;
  Parameter weight, bias;
  double eps = 1e-5;
  SINTER_FIELDS(weight, bias, eps)
};

/// rms_norm along the last axis.
struct SINTER_API RMSNorm {
  RMSNorm() = default;
  explicit RMSNorm(Dim dims, double eps = 1e-5);
  Array operator()(const Array& x) const;
  Parameter weight;
  double eps = 1e-5;
  SINTER_FIELDS(weight, eps)
};

/// (x - mean) / sqrt(variance + eps) * weight + bias for each feature, the last axis (Ioffe and Szegedy, 2015). In training mean and
/// variance are those of the batch, all other axes, and the running ones move towards them by `momentum`: ShapeError where the
/// batch is empty. Else they are the running ones.
struct SINTER_API BatchNorm {
  BatchNorm() = default;
  explicit BatchNorm(Dim features, double eps = 1e-5, double momentum = 0.1, bool affine = true, bool track_running_stats = true);
  Array operator()(const Array& x);
  /// Of a layer that cannot change: Error in training with running statistics.
  Array operator()(const Array& x) const;
  Parameter weight, bias, running_mean, running_var;
  double eps = 1e-5, momentum = 0.1;
  bool training = true;
  SINTER_FIELDS(weight, bias, running_mean, running_var, eps, momentum, training)
};

/// In training each element is 0 with probability p, and else divided by 1 - p. The mask comes from the calling thread's generator, in
/// compiled functions too: each call has a new one.
struct SINTER_API Dropout {
  explicit Dropout(double p = 0.5);
  Array operator()(const Array& x) const;
  double p = 0.5;
  bool training = true;
  SINTER_FIELDS(p, training)
};

/// rope as a layer.
struct SINTER_API RoPE {
  explicit RoPE(int dims = 0, bool traditional = false, double base = 10000, double scale = 1);
  Array operator()(const Array& x, const Operand& offset = 0) const;
  int dims;
  bool traditional;
  double base, scale;
  SINTER_FIELDS(dims, traditional, base, scale)
};

/// Positions (any shape) to (..., dims): sines, then cosines, of dims / 2 frequencies between max_freq and min_freq (Vaswani et al., 2017),
/// times sqrt(2 / dims).
struct SINTER_API SinusoidalPositions {
  explicit SinusoidalPositions(int dims = 0, double min_freq = 0.0001, double max_freq = 1);
  Array operator()(const Array& positions) const;
  int dims;
  double min_freq, max_freq;
  SINTER_FIELDS(dims, min_freq, max_freq)
};

// ---- activations ------------------------------------------------------------------------------------------------------------------------

/// An elementwise function as a layer.
template <Array (*function)(const Operand&)>
struct Elementwise {
  Array operator()(const Array& x) const { return function(x); }
  SINTER_FIELDS()
};
using Sigmoid = Elementwise<sigmoid>;
using Tanh = Elementwise<tanh>;
using ReLU = Elementwise<relu>;
using ReLU6 = Elementwise<relu6>;
using SiLU = Elementwise<silu>;
using GELU = Elementwise<gelu>;
using GELUTanh = Elementwise<gelu_tanh>;
using Softplus = Elementwise<softplus>;
using Softsign = Elementwise<softsign>;
using SELU = Elementwise<selu>;
using Mish = Elementwise<mish>;
using HardSwish = Elementwise<hardswish>;
using LogSigmoid = Elementwise<log_sigmoid>;
struct ELU {
  double alpha = 1;
  Array operator()(const Array& x) const { return elu(x, alpha); }
  SINTER_FIELDS(alpha)
};
struct LeakyReLU {
  double slope = 0.01;
  Array operator()(const Array& x) const { return leaky_relu(x, slope); }
  SINTER_FIELDS(slope)
};
/// leaky_relu with slopes that are learned: one, or one a feature.
struct SINTER_API PReLU {
  explicit PReLU(Dim count = 1, double slope = 0.25);
  Array operator()(const Array& x) const;
  Parameter weight;
  SINTER_FIELDS(weight)
};
struct Softmax {
  int axis = -1;
  Array operator()(const Array& x) const { return softmax(x, axis); }
  SINTER_FIELDS(axis)
};
struct LogSoftmax {
  int axis = -1;
  Array operator()(const Array& x) const { return log_softmax(x, axis); }
  SINTER_FIELDS(axis)
};

// ---- composition ------------------------------------------------------------------------------------------------------------------------

/// Layers one after the other: nn::Sequential(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 10)).
template <class... L>
struct Sequential {
  Sequential() = default;
  explicit Sequential(L... l)
    requires(sizeof...(L) > 0)
      : layers(std::move(l)...) {}
  Array operator()(const Array& x) const { return run(layers, x); }
  Array operator()(const Array& x) { return run(layers, x); }
  std::tuple<L...> layers;
  SINTER_FIELDS(layers)

 private:
  template <class T>
  static Array run(T& layers, const Array& x) {
    Array y = x;
    std::apply([&y](auto&... l) { ((y = l(y)), ...); }, layers);
    return y;
  }
};

}  // namespace sinter::nn
