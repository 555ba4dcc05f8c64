// The calling thread's random generator: a key that is split at each draw. Layer: engine.
#pragma once
#include "sinter/array.h"

namespace sinter::engine {

/// A new key. The first of the two that the state splits into becomes the state, as in MLX.
Array next_key();
/// The state: a uint32 array of shape (2). Compiled functions make it implicit state: they read it, put a placeholder in its place while
/// they trace, and write the new one back.
Array& generator_state();

/// n new keys from one, shape (n, 2); the key of a seed. random.h checks and documents them.
Array split_key(const Array& key, const Dim& n);
Array seed_key(std::uint64_t seed);

}  // namespace sinter::engine
