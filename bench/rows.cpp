// The workloads. Functions are written from primitives, as a user without the library's own gelu or softmax would write them.
#include <cmath>

#include "bench.h"

namespace bench {

using namespace sinter;

namespace {

void finish(const Array& a) { a.eval(); }
void finish(const Arrays& arrays) {
  for (const Array& a : arrays) a.eval();
}

// A workload from a function of its inputs.
template <auto f>
Work make(Arrays in) {
  auto compiled = compile(f);
  auto shapeless = compile(f, true);
  return {[in] { finish(f(in)); },
          [in, compiled] { finish(compiled(in)); },
          [in, compiled] { return compiled.kernels(in); },
          [compiled] { return compiled.explain(); },
          {},
          [in, shapeless] { finish(shapeless(in)); }};
}

Array expneg_add(const Arrays& in) { return exp(-in[0]) + in[1]; }

Array gelu_erf(const Arrays& in) {
  const Array& x = in[0];
  return x * (1 + erf(x / std::sqrt(2.0))) / 2;
}

Array gelu_tanh(const Arrays& in) {
  const Array& x = in[0];
  return 0.5 * x * (1 + tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

Array black_scholes(const Arrays& in) {
  const Array &spot = in[0], &strike = in[1], &time = in[2];
  constexpr double kRate = 0.03, kVolatility = 0.2;
  auto normal = [](const Array& z) { return 0.5 * (1 + erf(z / std::sqrt(2.0))); };
  Array root = sqrt(time);
  Array d1 = (log(spot / strike) + (kRate + kVolatility * kVolatility / 2) * time) / (kVolatility * root);
  Array d2 = d1 - kVolatility * root;
  return spot * normal(d1) - strike * exp(-kRate * time) * normal(d2);
}

// The parameters and both moments are state: updated in place.
void adam(Arrays& state, const Array& gradient) {
  Array &p = state[0], &m = state[1], &v = state[2];
  m = 0.9 * m + 0.1 * gradient;
  v = 0.999 * v + 0.001 * gradient * gradient;
  p = p - 1e-3 * m / (sqrt(v) + 1e-8);
}
Work make_adam(Arrays in) {
  auto state = std::make_shared<Arrays>(Arrays{in[0], in[2], in[3]});
  Array gradient = in[1];
  in.clear();
  auto compiled = compile(adam);
  auto shapeless = compile(adam, true);
  return {[=] {
            Arrays mine = *state;  // the regular run starts from the same values and leaves the state alone
            adam(mine, gradient);
            finish(mine);
          },
          [=] { compiled(*state, gradient); },
          [=] { return compiled.kernels(*state, gradient); },
          [compiled] { return compiled.explain(); },
          {},
          [=] { shapeless(*state, gradient); }};
}

Array bcast_t(const Arrays& in) { return (transpose(in[0]) + expand_dims(in[1], 1)) * in[2]; }

Array softmax_rows(const Arrays& in) {
  Array e = exp(in[0] - max(in[0], -1, true));
  return e / sum(e, -1, true);
}

Array layernorm(const Arrays& in) {
  Array centred = in[0] - mean(in[0], -1, true);
  Array variance = mean(centred * centred, -1, true);
  return centred * rsqrt(variance + 1e-5) * in[1] + in[2];
}

// The same for one row, and by vmap for all: it shall cost no more than what is written for all.
Array layernorm_vmap(const Arrays& in) {
  return vmap([&](const Array& row) { return layernorm({row, in[1], in[2]}); })(in[0]);
}

// mlp_train's network alone: the loss, and the loss with its gradient by the parameters, which come before the input.
Array mlp_forward(const Arrays& in) {
  Array h = in[6];
  for (std::size_t i = 0; i < 6; i += 2) {
    if (i > 0) h = relu(h);
    h = matmul(h, in[i]) + in[i + 1];
  }
  return mean(cross_entropy(h, arange(256) % 10));
}
Arrays mlp_gradient(const Arrays& in) {
  auto loss = [&](Arrays parameters) {
    parameters.push_back(in[6]);
    return mlp_forward(parameters);
  };
  auto [value, gradients] = value_and_grad(loss)(Arrays(in.begin(), in.end() - 1));
  gradients.push_back(value);
  return gradients;
}

Array rmsnorm(const Arrays& in) { return in[0] * rsqrt(mean(in[0] * in[0], -1, true) + 1e-5) * in[1]; }

Array colsum_var(const Arrays& in) { return var(in[0], 0); }

Array chain200(const Arrays& in) {
  Array x = in[0];
  for (int i = 0; i < 100; ++i) x = tanh(x) * 1.01 + 0.1;
  return x;
}

Array tiny(const Array& x) { return exp(-x) + x; }
Work make_tiny(Arrays in) {
  auto compiled = compile(tiny);
  auto shapeless = compile(tiny, true);
  Array x = in[0];
  return {[=] { tiny(x).eval(); }, [=] { compiled(x); }, [=] { return compiled.kernels(x); }, [compiled] { return compiled.explain(); }, {},
          [=] { shapeless(x); }};
}

// A graph of n operations; its first call is what counts.
template <int n>
Array operations(const Arrays& in) {
  Array x = in[0];
  for (int i = 0; i < n; i += 4) x = tanh(x * 1.01 + in[1]) - in[2];
  return x;
}

// And its gradient by the first input.
template <int n>
Array gradient_of_operations(const Arrays& in) {
  return grad([&](const Array& x) { return sum(operations<n>({x, in[1], in[2]})); })(in[0]);
}

// The same for a graph in which operations use any of the last hundred results.
template <int n>
Array random_operations(const Arrays& in) {
  Arrays made = in;
  std::uint32_t seed = 1;
  auto any = [&]() -> const Array& {
    seed = seed * 1664525u + 1013904223u;
    return made[made.size() - 1 - (seed >> 8) % std::min<std::size_t>(made.size(), 100)];
  };
  while (made.size() < n) {
    const std::uint32_t kind = seed >> 30;
    const Array& y = any();
    const Array& x = kind % 2 ? any() : y;
    made.push_back(kind == 0 ? tanh(x) : kind == 1 ? maximum(x, y) : kind == 2 ? x * 0.5 : x - y);
  }
  Array total = made.back();
  for (std::size_t i = made.size() - 100; i < made.size(); ++i) total = total + made[i];
  return total;
}

constexpr std::int64_t kMillion = 1'000'000;

const std::vector<std::string> kAnySizes{"shapeless_ratio"};  // functions that serve all sizes

const Row kRows[] = {
    {"expneg_add", {{10 * kMillion}, {10 * kMillion}}, 10 * kMillion, make<expneg_add>, 1, 0, false, kAnySizes},
    {"gelu_erf", {{4, 1000, 4096}}, 4 * 1000 * 4096, make<gelu_erf>, 1, 0, false, kAnySizes},
    {"gelu_tanh", {{4, 1000, 4096}}, 4 * 1000 * 4096, make<gelu_tanh>, 1, 0, false, kAnySizes},
    {"black_scholes", {{4 * kMillion}, {4 * kMillion}, {4 * kMillion}}, 4 * kMillion, make<black_scholes>, 1, 0, false, kAnySizes},
    {"adam", {{10 * kMillion}, {10 * kMillion}, {10 * kMillion}, {10 * kMillion}}, 30 * kMillion, make_adam, 1, 0, false, kAnySizes},
    {"bcast_t", {{4096, 4096}, {4096}, {4096, 4096}}, 4096 * 4096, make<bcast_t>, 1, 0, false, kAnySizes},
    {"softmax", {{4096, 4096}}, 4096 * 4096, make<softmax_rows>, 1, 0, false, kAnySizes},
    {"softmax_vocab", {{256, 50257}}, 256 * 50257, make<softmax_rows>, 1, 0, false, kAnySizes},
    {"layernorm", {{4096, 4096}, {4096}, {4096}}, 4096 * 4096, make<layernorm>, 1, 0, false, kAnySizes},
    {"layernorm_vmap", {{4096, 4096}, {4096}, {4096}}, 4096 * 4096, make<layernorm_vmap>},
    {"rmsnorm", {{4096, 4096}, {4096}}, 4096 * 4096, make<rmsnorm>, 1, 0, false, kAnySizes},
    {"colsum_var", {{4096, 4096}}, 4096, make<colsum_var>, 1, 0, false, kAnySizes},
    {"chain200", {{kMillion}}, kMillion, make<chain200>, 1, 0, false, kAnySizes},
    {"mlp_train", {{256, 784}}, 3 * kMlpParameters, make_mlp_train, 1, 3 * kMlpParameters},
    {"mlp_forward", {{784, 512}, {512}, {512, 512}, {512}, {512, 10}, {10}, {256, 784}}, 1, make<mlp_forward>},
    {"mlp_gradient", {{784, 512}, {512}, {512, 512}, {512}, {512, 10}, {10}, {256, 784}}, kMlpParameters, make<mlp_gradient>},
    {"block_fwd", {{8, 256, 512}}, 8 * 256 * 512, make_block_fwd, 1, kBlockParameters},
    {"block_train", {{8, 256, 512}, {8, 256, 512}}, 3 * kBlockParameters, make_block_train, 1, 3 * kBlockParameters},
    {"decode", {{1, 1, 512}}, 512, make_decode, kDecodeTokens, 6 * kBlockParameters, true},
    {"decode_places", {{1, 1, 512}}, 512, make_decode_places, kDecodeTokens, 6 * kBlockParameters},
    {"tiny_call", {{16}}, 16, make_tiny, 1000, 0, false, {"callers_speedup", "shapeless_ratio"}},
    {"small_call", {{1536}}, 1536, make_tiny, 1000, 0, false, {"callers_speedup", "shapeless_ratio"}},
    {"compile_1k", {{1024}, {1024}, {1024}}, 1024, make<operations<1'000>>, 1, 0, false, kAnySizes},
    {"compile_10k", {{1024}, {1024}, {1024}}, 1024, make<operations<10'000>>},
    {"grad_1k", {{1024}, {1024}, {1024}}, 1024, make<gradient_of_operations<1'000>>},
    {"grad_10k", {{1024}, {1024}, {1024}}, 1024, make<gradient_of_operations<10'000>>},
    {"random_1k", {{1024}, {1024}, {1024}}, 1024, make<random_operations<1'000>>},
    {"random_10k", {{1024}, {1024}, {1024}}, 1024, make<random_operations<10'000>>},
};

}  // namespace

std::span<const Row> rows() { return kRows; }

const Row* find_row(const std::string& name) {
  for (const Row& row : kRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

std::int64_t Row::read() const {
  std::int64_t total = parameters;
  for (const Shape& shape : inputs) total += shape.product();
  return total;
}

Arrays make_inputs(const Row& row) {
  std::uint32_t bits = 1;
  Arrays arrays;
  for (const Shape& shape : row.inputs) {
    std::vector<float> v(static_cast<std::size_t>(static_cast<std::int64_t>(shape.product())));
    for (float& x : v) {
      bits = bits * 1664525 + 1013904223;
      x = 0.5f + static_cast<float>(bits >> 8) / (1 << 24);
    }
    arrays.push_back(Array(v, shape));
  }
  return arrays;
}

}  // namespace bench
