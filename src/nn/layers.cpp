// Layers. Layer: nn.
#include "sinter/nn/layers.h"

#include <cmath>

#include "base/check.h"
#include "sinter/nn/init.h"
#include "sinter/random.h"

namespace sinter::nn {
namespace {

double real(const Dim& d) { return static_cast<double>(static_cast<std::int64_t>(d)); }
PerAxis<2> per_axis(const std::array<int, 2>& a) { return {a[0], a[1]}; }
std::optional<Array> if_set(const Array& a) { return a.valid() ? std::optional<Array>(a) : std::nullopt; }

}  // namespace

Linear::Linear(Dim in, Dim out, bool with_bias) {
  if (in < 1 || out < 0) throw ShapeError(str("Linear: a size is out of range; got ", in, " and ", out, "; use positive sizes"));
  const double limit = 1 / std::sqrt(real(in));
  weight = init::uniform({out, in}, -limit, limit);
  if (with_bias) bias = init::uniform({out}, -limit, limit);
}
Array Linear::operator()(const Array& x) const { return bias.valid() ? addmm(bias, x, transpose(weight)) : matmul(x, transpose(weight)); }

Conv2d::Conv2d(Dim in, Dim out, PerAxis<2> kernel, PerAxis<2> stride, PerAxis<2> padding, PerAxis<2> dilation, int groups, bool with_bias)
    : stride(stride), padding(padding), dilation(dilation), groups(groups) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw ShapeError(
        str("Conv2d: the groups do not divide the channels; got ", groups, " for ", in, " and ", out, "; use a divisor of both"));
  const Shape shape{out, kernel[0], kernel[1], in / groups};
  const double limit = 1 / std::sqrt(real(shape.product() / out));
  weight = init::uniform(shape, -limit, limit);
  if (with_bias) bias = init::uniform({out}, -limit, limit);
}
Array Conv2d::operator()(const Array& x) const {
  const Array y = conv2d(x, weight, per_axis(stride), per_axis(padding), per_axis(dilation), groups);
  return bias.valid() ? y + bias : y;
}

MaxPool2d::MaxPool2d(PerAxis<2> kernel, PerAxisOrNone<2> stride, PerAxis<2> padding)
    : kernel(kernel), stride(stride.value_or(kernel)), padding(padding) {}
Array MaxPool2d::operator()(const Array& x) const { return max_pool2d(x, per_axis(kernel), per_axis(stride), per_axis(padding)); }

AvgPool2d::AvgPool2d(PerAxis<2> kernel, PerAxisOrNone<2> stride, PerAxis<2> padding)
    : kernel(kernel), stride(stride.value_or(kernel)), padding(padding) {}
Array AvgPool2d::operator()(const Array& x) const { return avg_pool2d(x, per_axis(kernel), per_axis(stride), per_axis(padding)); }

Embedding::Embedding(Dim count, Dim dims) : weight(init::normal({count, dims}, 0, std::sqrt(1 / real(dims)))) {}
Array Embedding::operator()(const Array& ids) const { return take(weight, ids, 0); }
Array Embedding::as_linear(const Array& x) const { return matmul(x, transpose(weight)); }

LayerNorm::LayerNorm(Dim dims, double eps, bool affine, bool with_bias) : eps(eps) {
  if (affine) weight = ones({dims});
  if (affine && with_bias) bias = zeros({dims});
}
Array LayerNorm::operator()(const Array& x) const { return layer_norm(x, if_set(weight), if_set(bias), eps); }

RMSNorm::RMSNorm(Dim dims, double eps) : weight(ones({dims})), eps(eps) {}
Array RMSNorm::operator()(const Array& x) const { return rms_norm(x, if_set(weight), eps); }

BatchNorm::BatchNorm(Dim features, double eps, double momentum, bool affine, bool track_running_stats) : eps(eps), momentum(momentum) {
  if (affine) {
    weight = ones({features});
    bias = zeros({features});
  }
  if (track_running_stats) {
    running_mean = Parameter(zeros({features}), Role::buffer);
    running_var = Parameter(ones({features}), Role::buffer);
  }
}

namespace {

struct Moments {
  Array mean, var;
};
Moments batch_moments(const Array& x) {
  if (x.ndim() < 2) throw ShapeError(str("BatchNorm: x has no batch; got ", x.shape(), "; use (batch, ..., features)"));
  std::vector<int> axes;
  for (int i = 0; i + 1 < x.ndim(); ++i) axes.push_back(i);
  const Array wide = is_half(x.dtype()) ? astype(x, float32) : x, center = mean(wide, axes, true);
  return {reshape(center, {x.shape(-1)}), mean(square(wide - center), axes)};
}
Array normalised(const BatchNorm& layer, const Array& x, const Moments& m) {
  Array y = (x - m.mean) * rsqrt(m.var + layer.eps);
  if (layer.weight.valid()) y = y * layer.weight + layer.bias;
  return astype(y, is_floating(x.dtype()) ? x.dtype() : float32);
}

}  // namespace

Array BatchNorm::operator()(const Array& x) {
  if (!training || !running_mean.valid()) return std::as_const(*this)(x);
  const Moments m = batch_moments(x);
  for (int i = 0; i + 1 < x.ndim(); ++i)
    if (x.shape(i) == 0)
      throw ShapeError(str("BatchNorm: an empty batch has no mean for the running statistics; got ", x.shape(),
                           "; leave it out in training, or call nn::eval(model)"));
  auto move = [this](Parameter& running, const Array& now) {
    running = astype((1 - momentum) * running + momentum * stop_gradient(now), running.dtype());
  };
  move(running_mean, m.mean);
  move(running_var, m.var);
  return normalised(*this, x, m);
}
Array BatchNorm::operator()(const Array& x) const {
  if (!running_mean.valid()) return normalised(*this, x, batch_moments(x));
  if (training)
    throw Error(
        "BatchNorm: a const layer cannot update its running statistics; got a layer in training; call nn::eval(model), or pass a "
        "model that can be written");
  return normalised(*this, x, {running_mean, running_var});
}

Dropout::Dropout(double p) : p(p) {
  if (!(p >= 0 && p < 1)) throw Error(str("Dropout: the probability is out of range; got ", p, "; use 0 to below 1"));
}
Array Dropout::operator()(const Array& x) const {
  if (!training || p == 0) return x;
  return where(random::bernoulli(1 - p, x.shape()), x * (1 / (1 - p)), 0);
}

RoPE::RoPE(int dims, bool traditional, double base, double scale) : dims(dims), traditional(traditional), base(base), scale(scale) {}
Array RoPE::operator()(const Array& x, const Operand& offset) const { return rope(x, dims, traditional, base, scale, offset); }

SinusoidalPositions::SinusoidalPositions(int dims, double min_freq, double max_freq) : dims(dims), min_freq(min_freq), max_freq(max_freq) {
  if (dims % 2 != 0) throw ShapeError(str("SinusoidalPositions: dims are odd; got ", dims, "; use an even number"));
}
Array SinusoidalPositions::operator()(const Array& positions) const {
  const int half = dims / 2;
  // From the highest frequency to the lowest, evenly by their logarithm.
  const double step = half > 1 ? std::log(min_freq / max_freq) / (half - 1) : 0;
  const Array angles = expand_dims(positions, -1) * (exp(arange(half, float32) * step) * max_freq);
  return concatenate({sin(angles), cos(angles)}, -1) * std::sqrt(2.0 / dims);
}

PReLU::PReLU(Dim count, double slope) : weight(full({count}, slope, float32)) {}
Array PReLU::operator()(const Array& x) const { return leaky_relu(x, weight); }

}  // namespace sinter::nn
