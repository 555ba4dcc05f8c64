#include "engine/generator.h"

#include <pthread.h>

#include <atomic>
#include <random>

#include "base/check.h"
#include "base/once.h"
#include "engine/value.h"

namespace sinter::engine {
namespace {

// Threads differ, and so do runs, until they are seeded.
std::uint64_t fresh_seed() {
  static constinit std::atomic<std::uint64_t*> place{nullptr};
  const std::uint64_t process = base::once(place, [] {
    ::std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  });
  static std::atomic<std::uint64_t> threads{0};
  return process + 0x9E3779B97F4A7C15u * threads++;
}

Array row(const Array& keys, std::int64_t i) {
  const Array slice = make(ops::Op::Slice, {keys}, {i, 0, 1, 2, 1, 1}, Dtype::uint32, Shape{1, 2});
  return make(ops::Op::Reshape, {slice}, {2}, Dtype::uint32, Shape{2});
}

}  // namespace

Array seed_key(std::uint64_t seed) { return Array({static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(seed)}); }

Array split_key(const Array& key, const Dim& n) { return make(ops::Op::RandomBits, {key}, {4}, Dtype::uint32, Shape{n, 2}); }

namespace {

thread_local constinit Array* current = nullptr;
// What a key of the system holds is freed after all thread_local objects, whose destructors may draw numbers, and as often as it is made.
pthread_key_t key_of_state() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    const int failed = pthread_key_create(&made, [](void* state) {
      current = nullptr;
      delete static_cast<Array*>(state);
    });
    check(failed == 0, "random: the system has no key left for the state of a thread");
    return made;
  }();
  return key;
}
[[maybe_unused]] const pthread_key_t made_at_load = key_of_state();  // see ForkMutex

}  // namespace

Array& generator_state() {
  if (!current) [[unlikely]] {
    current = new Array(seed_key(fresh_seed()));
    pthread_setspecific(key_of_state(), current);
  }
  return *current;
}

Array next_key() {
  Array& state = generator_state();
  const Array keys = split_key(state, 2);
  state = row(keys, 0);
  return row(keys, 1);
}

}  // namespace sinter::engine
