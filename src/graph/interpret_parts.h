// What the files of the interpreter share: values, and elements as numbers. Layer: graph.
#pragma once
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/interpret.h"
#include "ops/elements.h"

namespace sinter::graph::interpreter {

using Word = std::uint64_t;
using Words = std::vector<Word>;
using Index = std::vector<std::int64_t>;
using Ints = std::span<const std::int64_t>;

// A node's value while the graph runs.
struct Value {
  const Type* type;
  Words words;
  std::vector<Tensor> results = {};  // of a node that has several
};

inline std::size_t count_of(const Shape& s) { return static_cast<std::size_t>(static_cast<std::int64_t>(s.product())); }

// Calls f(position, index) for each element in row-major order.
template <class F>
void for_each_index(const Shape& s, F f) {
  const std::size_t count = count_of(s);
  Index index(s.size(), 0);
  for (std::size_t at = 0; at < count; ++at) {
    f(at, static_cast<const Index&>(index));
    for (std::size_t axis = s.size(); axis-- > 0;) {
      if (++index[axis] < s[axis]) break;
      index[axis] = 0;
    }
  }
}

inline std::size_t offset_of(const Shape& s, Ints index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < s.size(); ++i) offset = offset * s[i] + index[i];
  return static_cast<std::size_t>(offset);
}

inline Words converted(const Words& words, Dtype from, Dtype to) {
  Words result(words.size());
  ops::convert_elements(from, to, words, result);
  return result;
}

// Elements as numbers. Integers exactly as int64 (uint64 by its bits), everything else exactly as a pair of doubles.
struct Numbers {
  bool integer;
  std::vector<std::int64_t> ints;
  std::vector<std::complex<double>> reals;
};
inline Numbers numbers_of(const Words& words, Dtype t) {
  Numbers n{is_integer(t), {}, {}};
  if (n.integer) {
    const int shift = 64 - 8 * size_of(t);
    for (Word w : words) n.ints.push_back(is_signed(t) ? static_cast<std::int64_t>(w << shift) >> shift : static_cast<std::int64_t>(w));
  } else if (is_complex(t)) {
    for (Word w : words)
      n.reals.emplace_back(std::bit_cast<float>(static_cast<std::uint32_t>(w)), std::bit_cast<float>(static_cast<std::uint32_t>(w >> 32)));
  } else {
    for (Word w : converted(words, t, Dtype::float64)) n.reals.emplace_back(std::bit_cast<double>(w), 0.0);
  }
  return n;
}
inline Word word_of(std::int64_t v, Dtype t) {
  return size_of(t) == 8 ? static_cast<Word>(v) : static_cast<Word>(v) & ((Word{1} << (8 * size_of(t))) - 1);
}
inline Word word_of(std::complex<double> v, Dtype t) {
  if (is_complex(t))
    return std::bit_cast<std::uint32_t>(static_cast<float>(v.real())) |
           static_cast<Word>(std::bit_cast<std::uint32_t>(static_cast<float>(v.imag()))) << 32;
  const Word word = std::bit_cast<Word>(v.real());
  Word result = 0;
  ops::convert_elements(Dtype::float64, t, {&word, 1}, {&result, 1});
  return result;
}

// -1, 0 or 1 for numbers of one real dtype; NaN compares equal to all.
inline int compare(const Numbers& n, Dtype t, std::size_t a, std::size_t b) {
  if (!n.integer) return n.reals[a].real() < n.reals[b].real() ? -1 : n.reals[a].real() > n.reals[b].real();
  if (!is_signed(t))
    return static_cast<Word>(n.ints[a]) < static_cast<Word>(n.ints[b]) ? -1 : static_cast<Word>(n.ints[a]) > static_cast<Word>(n.ints[b]);
  return n.ints[a] < n.ints[b] ? -1 : n.ints[a] > n.ints[b];
}
inline bool is_nan(const Numbers& n, std::size_t a) { return !n.integer && std::isnan(n.reals[a].real()); }

// interpret_bodies.cpp: the results of a node that holds graphs.
std::vector<Tensor> run_bodies(const Node& n, std::vector<Tensor> operands);

// interpret_products.cpp. Sums of products in double precision, or in whole numbers. The result is of this type; c may be null.
Words matmul(const Type& type, const Value& a, const Value& b, const Value* c);
Words convolution(const Node& n, const Value& a, const Value& b);
Words solve(const Type& type, const Value& a, const Value& b);

}  // namespace sinter::graph::interpreter
