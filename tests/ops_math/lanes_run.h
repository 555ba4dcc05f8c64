// Runs one operation of the table on numbers, through ops/lanes.h, for the tests of this folder.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "ops/expand.h"
#include "ops/lanes.h"

namespace sinter::ops {

/// Stored bits of a float32 or float64 number, and back.
inline std::uint64_t float_bits(Dtype t, double v) {
  return t == Dtype::float32 ? std::bit_cast<std::uint32_t>(static_cast<float>(v)) : std::bit_cast<std::uint64_t>(v);
}
inline double float_value(Dtype t, std::uint64_t bits) {
  return t == Dtype::float32 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits)) : std::bit_cast<double>(bits);
}

using Words = std::vector<std::uint64_t>;

inline Wide load_words(Lanes& machine, Dtype t, std::span<const std::uint64_t> words) {
  return {t, load_form(machine.vector(storage_dtype(t), words), t), {}};
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
    const Val stored = store_form(out.re, out.dtype);
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
