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

}  // namespace sinter::random
