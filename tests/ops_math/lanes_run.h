// Runs one operation of the table on numbers, through ops/lanes.h, for the tests of this folder.
#pragma once
#include <cstdint>
#include <vector>

#include "ops/expand.h"
#include "ops/lanes.h"
#include "support/accuracy.h"

namespace sinter::ops {

using tests::float_bits;
using tests::float_value;
using Words = std::vector<std::uint64_t>;

inline Wide load_words(Lanes& machine, Dtype t, std::span<const std::uint64_t> words) {
  return load_form(machine.vector(storage_dtype(t), words), t);
}

/// The result's stored bits, element by element, for stored operands of dtype `compute` (not complex64; operand 0 of Where is bool).
inline Words run_bits(Op op, Dtype compute, const std::vector<Words>& operands) {
  constexpr std::size_t kLanes = 32;
  Lanes machine(kLanes);
  Words result;
  const std::size_t count = operands[0].size();
  for (std::size_t i = 0; i < count; i += kLanes) {
    std::vector<Wide> in;
    for (const Words& w : operands) {
      Words block(w.begin() + static_cast<std::ptrdiff_t>(i), w.begin() + static_cast<std::ptrdiff_t>(std::min(i + kLanes, count)));
      block.resize(kLanes);
      in.push_back(load_words(machine, info(op).rule == Rule::Where && in.empty() ? Dtype::bool_ : compute, block));
    }
    const Wide out = expand(op, compute, in);
    const Val stored = store_form(out);
    for (std::size_t k = 0; k < kLanes && i + k < count; ++k) result.push_back(machine.bits(stored, static_cast<int>(k)));
    machine.release({0, 0});
  }
  return result;
}

/// Of float32 or float64 numbers, with a result of that dtype.
inline std::vector<double> run(Op op, Dtype t, const std::vector<std::vector<double>>& operands) {
  std::vector<Words> words;
  for (const auto& numbers : operands) {
    words.emplace_back();
    for (const double v : numbers) words.back().push_back(float_bits(t, v));
  }
  std::vector<double> result;
  for (const std::uint64_t w : run_bits(op, t, words)) result.push_back(float_value(t, w));
  return result;
}

}  // namespace sinter::ops
