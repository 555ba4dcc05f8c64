// Random numbers, counter-based (threefry 2x32): the same on every device and with any number of threads.
//
// A key is a uint32 array of shape (2). Without one, a function draws from the calling thread's generator, which is itself a key that is
// split at each draw. `key split bits uniform` equal MLX's from the same key.
#pragma once
#include "sinter/array.h"

namespace sinter::random {

/// The key of a seed: its high and low 32 bits.
SINTER_API Array key(std::uint64_t seed);
/// n new keys from one: shape (n, 2).
SINTER_API Array split(const Array& key, Dim n = 2);
/// Restarts the calling thread's generator.
SINTER_API void seed(std::uint64_t seed);
/// Uniform integers of `width` bytes: uint8, uint16 or uint32.
SINTER_API Array bits(const Shape& shape, int width = 4, const std::optional<Array>& key = {});
/// Uniform in [low, high), from 32 random bits; shapes of low and high broadcast to `shape`. DtypeError unless floating.
SINTER_API Array uniform(const Operand& low, const Operand& high, const Shape& shape, Dtype t = float32,
                         const std::optional<Array>& key = {});
/// Uniform in [0, 1).
SINTER_API Array uniform(const Shape& shape, Dtype t = float32, const std::optional<Array>& key = {});
/// Gaussian with mean `loc` and standard deviation `scale`. DtypeError unless floating.
SINTER_API Array normal(const Shape& shape, Dtype t = float32, const Operand& loc = 0, const Operand& scale = 1,
                        const std::optional<Array>& key = {});
/// Uniform integers in [low, high), from 32 random bits. DtypeError for floating dtypes.
SINTER_API Array randint(const Operand& low, const Operand& high, const Shape& shape, Dtype t = int32,
                         const std::optional<Array>& key = {});
// Where braces could be a shape or a number a count, a key is exactly an Array or std::optional<Array>.
template <class K>
concept Key = std::same_as<K, Array> || std::same_as<K, std::optional<Array>>;

/// bool: true with probability p, which broadcasts to `shape` (without one: its own).
SINTER_API Array bernoulli(const Operand& p, const Shape& shape, const std::optional<Array>& key = {});
SINTER_API Array bernoulli(const Operand& p = 0.5);
template <Key K>
Array bernoulli(const Operand& p, const K& key) {
  return bernoulli(p, p.array() ? p.array()->shape() : Shape(), key);
}
/// Gaussian (mean 0, standard deviation 1) among the numbers from lower to upper, which broadcast to `shape`.
SINTER_API Array truncated_normal(const Operand& lower, const Operand& upper, const Shape& shape, Dtype t = float32,
                                  const std::optional<Array>& key = {});
/// Standard Gumbel: -log(-log(u)).
SINTER_API Array gumbel(const Shape& shape, Dtype t = float32, const std::optional<Array>& key = {});
/// uint32 positions along `axis`, drawn with probabilities softmax(logits): one for each of the other axes' elements, or `num_samples`
/// along a new last axis.
SINTER_API Array categorical(const Array& logits, Axis axis, Dim num_samples, const std::optional<Array>& key = {});
SINTER_API Array categorical(const Array& logits, Axis axis = -1);
namespace detail {
SINTER_API Array draw_category(const Array& logits, Axis axis, const std::optional<Array>& key);
SINTER_API Array random_order(Dim n, const std::optional<Array>& key);
}  // namespace detail
template <Key K>
Array categorical(const Array& logits, Axis axis, const K& key) {
  return detail::draw_category(logits, axis, key);
}
/// uint32: the numbers 0 to n - 1, each order equally likely but for the places of equal ones among n random words of 32 bits, which keep
/// theirs: about one pair of 100,000.
template <class N>
  requires std::integral<N> || std::same_as<N, Dim>
Array permutation(const N& n, const std::optional<Array>& key = {}) {
  return detail::random_order(n, key);
}
/// x in such an order along an axis; what lies across it stays together.
SINTER_API Array permutation(const Array& x, Axis axis = 0, const std::optional<Array>& key = {});
template <std::same_as<Array> A, Key K>
Array permutation(const A& x, const K& key) {
  return permutation(x, 0, key);
}

}  // namespace sinter::random
