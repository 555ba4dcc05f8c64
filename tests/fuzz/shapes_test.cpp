// Random functions called with random shapes: the regular call, the shapeless one, and the one whose axes become symbolic by themselves
// give the same bits, or the same error. SINTER_FUZZ_SECONDS sets the time, SINTER_FUZZ_SEED the first seed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "sinter/sinter.h"

namespace sinter {
namespace {

using Arrays = std::vector<Array>;

// A function made of a seed: the same steps whatever the shapes, but for what it asks sizes for.
class Program {
 public:
  explicit Program(std::uint32_t seed) : seed_(seed) {}

  Arrays operator()(const Arrays& x) const {
    std::mt19937 random(seed_);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Arrays values = x;
    const std::size_t steps = 3 + pick(9);
    for (std::size_t i = 0; i < steps; ++i) {
      const Array a = values[pick(values.size())], b = values[pick(values.size())];
      const std::size_t kind = pick(22), axis = pick(2), extra = pick(4);
      values.push_back(step(kind, static_cast<int>(axis), static_cast<std::int64_t>(extra), a, b));
    }
    if (pick(3) == 0) {
      const Array weights = x[0] + 1;
      values.push_back(grad([&](const Array& v) { return sum(square(v * weights)) + sum(step(pick(22), 0, 1, v, v)); })(x[0]));
    }
    values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(x.size()));
    return values;
  }

 private:
  static Array step(std::size_t kind, int axis, std::int64_t extra, const Array& a, const Array& b) {
    const int at = a.ndim() == 0 ? 0 : axis % a.ndim();
    const bool scalar = a.ndim() == 0;
    switch (kind) {
      case 0: return a + b;
      case 1: return a * b - a;
      case 2: return scalar ? exp(a) : a - mean(a, at, true);
      case 3: return scalar ? a : sum(a, at);
      case 4: return scalar ? a : softmax(a, at);
      case 5: return transpose(a);
      case 6: return scalar ? a : concatenate({a, flip(a, at)}, at);
      case 7: return scalar ? a : slice(a, {extra}, {100 - extra}, {extra % 2 + 1});
      case 8: return pad(a, extra);
      case 9: return reshape(a, {-1});
      case 10: return scalar ? a : cumsum(a, at);
      case 11: return a.ndim() == 2 ? matmul(a, transpose(a)) : a;
      case 12: return scalar ? a : a / a.shape(at);
      case 13: return scalar ? a : broadcast_to(sum(a, at, true), a.shape()) * 0.5;
      case 14: return scalar ? a : max(a, at);
      case 15: return scalar ? a : a * arange(a.shape(-1)).astype(float32);
      case 16: return where(a > b, a, b);
      case 17: return scalar ? a : take(a, 0, at);
      case 18: return a.ndim() == 2 && a.shape(0) > 3 ? a * 2 : a + 1;  // a branch on a size
      case 19: return scalar ? a : stack({a, a * 2}, at);
      case 20: return expand_dims(a, 0);
      default: return tanh(a) + ones(b.shape());
    }
  }
  std::uint32_t seed_;
};

struct Outcome {
  Arrays results;
  std::string error;
};
template <class F>
Outcome outcome(F& f, const Arrays& x) {
  Outcome o;
  try {
    o.results = f(x);
    eval(o.results);
  } catch (const Error& e) {
    o.error = e.what();
  }
  return o;
}

std::string difference(const Outcome& a, const Outcome& b) {
  if (a.error != b.error) return a.error + " | " + b.error;
  if (a.results.size() != b.results.size()) return "another number of results";
  for (std::size_t i = 0; i < a.results.size(); ++i) {
    const Array &x = a.results[i], &y = b.results[i];
    if (x.dtype() != y.dtype() || !(x.shape() == y.shape()) || !array_equal(x, y, true).item<bool>())
      return "result " + std::to_string(i) + ": " + to_string(x) + " | " + to_string(y);
  }
  return "";
}

double number(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atof(text) : otherwise;
}

TEST(Shapes, CallsAgreeWhateverTheSizes) {
  const double seconds = number("SINTER_FUZZ_SECONDS", 20);
  std::uint32_t seed = static_cast<std::uint32_t>(number("SINTER_FUZZ_SEED", 1));
  const auto start = ::std::chrono::steady_clock::now();
  int programs = 0;
  for (; ::std::chrono::duration<double>(::std::chrono::steady_clock::now() - start).count() < seconds; ++seed, ++programs) {
    Program f(seed);
    auto shapeless = compile(f, true);
    auto automatic = compile(f);
    ::std::mt19937 random(seed ^ 0x9e3779b9u);
    for (int call = 0; call < 7; ++call) {
      const auto size = [&] { return static_cast<std::int64_t>(random() % 4 == 0 ? random() % 3 : 2 + random() % 7); };
      const std::int64_t n = size(), m = size();
      const Arrays x{random::normal({n, m}, float32, 0, 1, random::key(seed)), random::normal({m}, float32, 0, 1, random::key(seed + 1))};
      const Outcome expected = outcome(f, x);
      ASSERT_EQ(difference(expected, outcome(shapeless, x)), "") << "shapeless, seed " << seed << ", sizes " << n << ", " << m;
      ASSERT_EQ(difference(expected, outcome(automatic, x)), "") << "automatic, seed " << seed << ", sizes " << n << ", " << m;
    }
  }
  std::printf("%d functions, next seed %u\n", programs, seed);
}

}  // namespace
}  // namespace sinter
