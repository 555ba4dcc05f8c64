// Checks of transforms that need no expected values: derivatives against central differences, vjp against jvp, vmap against a loop.
#pragma once
#include <bit>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "graph/interpret.h"
#include "ops/elements.h"
#include "transforms/transforms.h"

namespace sinter::tests {

using graph::Graph;
using graph::Tensor;
using Slots = std::vector<std::int64_t>;

inline std::vector<double> numbers(const Tensor& t) {
  std::vector<std::uint64_t> words = graph::to_words(t), wide(words.size());
  ops::convert_elements(t.dtype, Dtype::float64, words, wide);
  std::vector<double> values;
  for (std::uint64_t w : wide) values.push_back(std::bit_cast<double>(w));
  return values;
}
inline Tensor tensor(Dtype t, Shape shape, std::span<const double> values) {
  std::vector<std::uint64_t> wide, words(values.size());
  for (double v : values) wide.push_back(std::bit_cast<std::uint64_t>(v));
  ops::convert_elements(Dtype::float64, t, wide, words);
  return graph::from_words(t, std::move(shape), words);
}

/// The elementwise operations that have derivatives.
inline std::vector<ops::Op> elementwise_derivatives() {
  std::vector<ops::Op> list;
  for (std::size_t i = 0; i < ops::all_ops().size(); ++i) {
    const auto op = static_cast<ops::Op>(i);
    if (!ops::is_elementwise(op) || op == ops::Op::StopGradient) continue;
    const ops::Rule r = ops::info(op).rule;
    if (r == ops::Rule::Integer || r == ops::Rule::Shift || !is_floating(ops::result_dtype(op, Dtype::float64))) continue;
    list.push_back(op);
  }
  return list;
}

/// The types of inputs, by slot.
inline std::vector<graph::Type> input_types(const Graph& g) {
  std::vector<graph::Type> types;
  for (graph::Id id = 0; id < g.size(); ++id) {
    if (g[id].op != ops::Op::Input) continue;
    const auto slot = static_cast<std::size_t>(g[id].attrs[0]);
    if (types.size() <= slot) types.resize(slot + 1);
    types[slot] = g[id].type;
  }
  return types;
}
/// Numbers from an interval; whole ones for integers, coins for bool. For complex64 both parts.
inline Tensor random_tensor(const graph::Type& t, std::mt19937& random, double low = -2, double high = 2) {
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> values;
  for (std::int64_t i = 0; i < t.shape.product(); ++i) values.push_back(t.dtype == Dtype::bool_ ? random() & 1 : draw(random));
  Tensor x = tensor(t.dtype, t.shape, values);
  if (!is_complex(t.dtype)) return x;
  std::vector<std::uint64_t> words = graph::to_words(x);
  for (std::uint64_t& w : words) w |= std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(draw(random)))} << 32;
  return graph::from_words(t.dtype, t.shape, words);
}
inline std::vector<Tensor> random_inputs(const Graph& g, std::uint32_t seed, double low = -2, double high = 2) {
  std::mt19937 random(seed);
  std::vector<Tensor> inputs;
  for (const graph::Type& t : input_types(g)) inputs.push_back(random_tensor(t, random, low, high));
  return inputs;
}

inline std::vector<Tensor> joined(std::span<const Tensor> a, std::span<const Tensor> b) {
  std::vector<Tensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}
/// x + h * t, of float64 tensors.
inline Tensor moved(const Tensor& x, const Tensor& t, double h) {
  std::vector<double> a = numbers(x), b = numbers(t);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += h * b[i];
  return tensor(x.dtype, x.shape, a);
}
inline double dot(std::span<const Tensor> a, std::span<const Tensor> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = numbers(a[i]), y = numbers(b[i]);
    for (std::size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
  }
  return sum;
}
inline bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance * (1 + std::fabs(a) + std::fabs(b)); }

inline Slots floating_slots(const Graph& g) {
  Slots slots;
  const std::vector<graph::Type> types = input_types(g);
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i].dtype == Dtype::float64) slots.push_back(static_cast<std::int64_t>(i));
  return slots;
}

/// Where vjp or jvp with respect to these float64 inputs is wrong; empty: nowhere. Where the function has a jump or a kink nearby, or is
/// not finite, nothing is compared with the difference.
inline std::string derivative_error(const Graph& g, std::span<const Tensor> inputs, const Slots& wrt, std::uint32_t seed,
                                    int* compared = nullptr) {
  std::mt19937 random(seed);
  const Graph forward = transforms::jvp(g, wrt), backward = transforms::vjp(g, wrt);
  graph::verify(forward);
  graph::verify(backward);
  std::vector<Tensor> tangents, cotangents;
  for (std::int64_t s : wrt) tangents.push_back(random_tensor(input_types(g)[static_cast<std::size_t>(s)], random));
  const std::size_t outputs = g.outputs().size();
  std::vector<std::size_t> floating;
  for (std::size_t i = 0; i < outputs; ++i) {
    const graph::Type& t = g[g.outputs()[i]].type;
    if (!is_floating(t.dtype) && !is_complex(t.dtype)) continue;
    if (t.dtype != Dtype::float64) return "an output is floating and not float64";
    floating.push_back(i);
    cotangents.push_back(random_tensor(t, random));
  }
  auto shifted = [&](double h) {
    std::vector<Tensor> x(inputs.begin(), inputs.end());
    for (std::size_t i = 0; i < wrt.size(); ++i)
      x[static_cast<std::size_t>(wrt[i])] = moved(x[static_cast<std::size_t>(wrt[i])], tangents[i], h);
    return graph::interpret(g, x);
  };
  const std::vector<Tensor> out = graph::interpret(g, inputs), moving = graph::interpret(forward, joined(inputs, tangents));
  for (std::size_t i = 0; i < outputs; ++i)
    if (std::string d = graph::difference({&out[i], 1}, {&moving[i], 1}); !d.empty()) return "jvp changes an output: " + d;
  auto difference_error = [&](double step) -> std::string {
    const std::vector<Tensor> at[] = {shifted(-2 * step), shifted(-step), shifted(step), shifted(2 * step)};
    for (std::size_t k = 0; k < floating.size(); ++k) {
      const std::vector<double> t = numbers(moving[outputs + k]);
      std::vector<double> y[4];
      for (int j = 0; j < 4; ++j) y[j] = numbers(at[j][floating[k]]);
      for (std::size_t e = 0; e < t.size(); ++e) {
        const double one = (y[2][e] - y[1][e]) / (2 * step), two = (y[3][e] - y[0][e]) / (4 * step), left = (y[1][e] - y[0][e]) / step,
                     right = (y[3][e] - y[2][e]) / step;
        if (!std::isfinite(one) || std::fabs(one) > 1e4 || (std::isfinite(t[e]) && std::fabs(t[e]) > 1e4) || !near(one, two, 1e-5) ||
            !near(left, right, 1e-2))
          continue;
        if (compared) ++*compared;
        if (!near(one, t[e], 1e-4)) return str("output ", floating[k], ", element ", e, ": jvp gives ", t[e], ", the difference ", one);
      }
    }
    return "";
  };
  // A wrong derivative is wrong by every step; cancellation inside the function spoils small ones.
  if (std::string wrong = difference_error(1e-5); !wrong.empty() && !difference_error(1e-4).empty()) return wrong;
  const std::vector<Tensor> back = graph::interpret(backward, joined(inputs, cotangents));
  for (std::size_t i = 0; i < outputs; ++i)
    if (std::string d = graph::difference({&out[i], 1}, {&back[i], 1}); !d.empty()) return "vjp changes an output: " + d;
  const double there = dot(std::span(moving).subspan(outputs), cotangents), here = dot(std::span(back).subspan(outputs), tangents);
  if (std::isfinite(there) && std::isfinite(here) && !near(there, here, 1e-9)) return str("<w, J t> = ", there, ", <J' w, t> = ", here);
  return "";
}

/// x's part number i along an axis, without the axis, and the reverse.
inline Tensor part(const Tensor& x, std::size_t axis, std::int64_t i) {
  std::int64_t before = 1, after = 1;
  Shape shape = x.shape;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d != axis) (d < axis ? before : after) *= shape[d];
  const std::int64_t n = shape[axis];
  shape.erase(axis);
  const std::vector<std::uint64_t> words = graph::to_words(x);
  std::vector<std::uint64_t> some;
  for (std::int64_t b = 0; b < before; ++b)
    for (std::int64_t a = 0; a < after; ++a) some.push_back(words[static_cast<std::size_t>((b * n + i) * after + a)]);
  return graph::from_words(x.dtype, shape, some);
}

/// Where vmap over these axes differs from a loop; empty: nowhere.
inline std::string vmap_error(const Graph& g, std::span<const std::int64_t> in_axes, std::span<const std::int64_t> out_axes,
                              std::int64_t size, FunctionRef<Tensor(const graph::Type&)> draw, double tolerance = 0) {
  const Graph batched = transforms::vmap(g, size, in_axes, out_axes);
  graph::verify(batched);
  std::vector<Tensor> inputs;
  for (const graph::Type& t : input_types(batched)) inputs.push_back(draw(t));
  const std::vector<Tensor> together = graph::interpret(batched, inputs);
  for (std::int64_t i = 0; i < size; ++i) {
    std::vector<Tensor> example = inputs, parts;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (in_axes[k] >= 0) example[k] = part(inputs[k], static_cast<std::size_t>(in_axes[k]), i);
    for (std::size_t k = 0; k < together.size(); ++k)
      parts.push_back(out_axes[k] < 0 ? together[k] : part(together[k], static_cast<std::size_t>(out_axes[k]), i));
    if (std::string d = graph::difference(parts, graph::interpret(g, example), tolerance); !d.empty()) return str("example ", i, ": ", d);
  }
  return "";
}

}  // namespace sinter::tests
