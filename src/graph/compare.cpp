// Sample inputs and comparison of results (interpret.h).
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/text.h"
#include "graph/interpret.h"
#include "ops/elements.h"

namespace sinter::graph {
namespace {

double as_double(std::uint64_t word, Dtype t) {
  std::uint64_t result = 0;
  ops::convert_elements(t, Dtype::float64, {&word, 1}, {&result, 1});
  return std::bit_cast<double>(result);
}

bool close(std::uint64_t a, std::uint64_t b, Dtype t, double tolerance) {
  if (a == b) return true;
  if (is_complex(t)) {
    return close(a & 0xffffffff, b & 0xffffffff, Dtype::float32, tolerance) && close(a >> 32, b >> 32, Dtype::float32, tolerance);
  }
  if (!is_floating(t)) return false;
  const double x = as_double(a, t), y = as_double(b, t);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return tolerance > 0 && (x == y || std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(x)));
}

}  // namespace

std::vector<Tensor> sample_inputs(const Graph& g, std::uint32_t seed) {
  static constexpr double kSpecial[] = {0,
                                        -0.0,
                                        1,
                                        -1,
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN(),
                                        1e30,
                                        1e-40,
                                        -3e9};
  std::mt19937 random(seed);
  std::vector<Tensor> inputs;
  for (Id id = 0; id < g.size(); ++id) {
    if (g[id].op != ops::Op::Input) continue;
    const Type& type = g[id].type;
    std::vector<std::uint64_t> words(static_cast<std::size_t>(static_cast<std::int64_t>(type.shape.product())));
    for (std::uint64_t& w : words) {
      const std::uint32_t r = random();
      const double v = r % 8 == 0 ? kSpecial[r / 8 % std::size(kSpecial)] : static_cast<double>(r / 8 % 4096) / 512 - 3;
      w = std::bit_cast<std::uint64_t>(v);
    }
    std::vector<std::uint64_t> elements(words.size());
    ops::convert_elements(Dtype::float64, type.dtype, words, elements);
    const auto slot = static_cast<std::size_t>(g[id].attrs[0]);
    if (inputs.size() <= slot) inputs.resize(slot + 1);
    inputs[slot] = from_words(type.dtype, type.shape, elements);
  }
  return inputs;
}

std::string difference(std::span<const Tensor> a, std::span<const Tensor> b, double tolerance) {
  if (a.size() != b.size()) return str(a.size(), " results against ", b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype != b[i].dtype || a[i].shape != b[i].shape)
      return str("result ", i, ": ", a[i].dtype, a[i].shape, " against ", b[i].dtype, b[i].shape);
    const std::vector<std::uint64_t> x = to_words(a[i]), y = to_words(b[i]);
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (close(x[k], y[k], a[i].dtype, tolerance)) continue;
      std::string text = str("result ", i, ", element ", k, ": ");
      text::append_literal(text, a[i].dtype, x[k]);
      text += " against ";
      text::append_literal(text, a[i].dtype, y[k]);
      return text;
    }
  }
  return "";
}

}  // namespace sinter::graph
