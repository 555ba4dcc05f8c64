// Elements: kernel values from and to stored bits, on Lanes, and whole operations on elements given by their bits: what the interpreters,
// constant folding and the tests of rules run on. A word holds an element's stored form in its low bytes. Layer: ops.
#pragma once
#include <cstdint>
#include <span>

#include "ops/expand.h"
#include "ops/lanes.h"

namespace sinter::ops {

/// One word for every lane (uniform), or one a lane.
Wide wide_of(Lanes& m, Dtype t, std::span<const std::uint64_t> words);
/// The stored form: one word if the value is uniform, else one a lane. Good until the next value is made.
struct Words {
  std::span<const std::uint64_t> low, high;  // high: the imaginary parts, of complex64 alone
  std::uint64_t operator[](std::size_t lane) const {
    const std::uint64_t l = low[low.size() == 1 ? 0 : lane];
    return high.empty() ? l : l | high[high.size() == 1 ? 0 : lane] << 32;
  }
};
Words words_of(Lanes& m, const Wide& w);

/// `op` on elements of dtype `compute` (Where: operand 0 bool); an operand has one word, which stands for all, or result.size() words.
void evaluate(Op op, Dtype compute, std::span<const std::span<const std::uint64_t>> operands, std::span<std::uint64_t> result);
/// The bits of a size as an element; they follow it.
Dim bits_of_size(const Dim& n, Dtype t);
/// Conversion of each element.
void convert_elements(Dtype from, Dtype to, std::span<const std::uint64_t> words, std::span<std::uint64_t> result);

}  // namespace sinter::ops
