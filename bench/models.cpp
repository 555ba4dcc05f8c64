// The workloads with a model in them: training steps, a transformer block, decoding.
#include <cmath>

#include "bench.h"

namespace bench {

using namespace sinter;

namespace {

// In [-1, 1) / sqrt(last axis), the same on every run, made without the library as the inputs are.
Array numbers(const Shape& shape, std::int64_t last) {
  std::uint32_t bits = 7;
  std::vector<float> v(static_cast<std::size_t>(static_cast<std::int64_t>(shape.product())));
  for (float& x : v) {
    bits = bits * 1664525 + 1013904223;
    x = (static_cast<float>(bits >> 8) / (1 << 23) - 1) / std::sqrt(static_cast<float>(last));
  }
  return Array(v, shape);
}
template <class M>
M with_numbers(const M& model) {
  Arrays leaves = tree_flatten(model);
  for (Array& a : leaves) {
    if (a.dtype() == float32 && a.ndim() > 0) a = numbers(a.shape(), a.shape(-1));
  }
  return tree_unflatten(model, std::span<const Array>(leaves));
}

// Model and optimizer are state of the step.
template <class M>
struct Training {
  M model;
  optim::Adam optimizer{1e-3};
  SINTER_FIELDS(model, optimizer)
};
// One step: loss, gradients, Adam.
template <class M, auto loss>
Array train_step(Training<M>& t, const Array& x, const Array& y) {
  auto [value, gradients] = nn::value_and_grad(loss)(t.model, x, y);
  t.optimizer.update(t.model, gradients);
  return value;
}
template <class M, auto loss>
Work make_training(const M& model, const Array& x, const Array& y, std::function<void(const M&)> products = {}) {
  auto training = std::make_shared<Training<M>>();
  training->model = with_numbers(model);
  training->optimizer.init(training->model);
  eval(*training);
  auto compiled = compile(train_step<M, loss>);
  Work work{[=] {
              Training<M> mine = *training;  // the regular run starts from the same values and leaves the state alone
              const Array value = train_step<M, loss>(mine, x, y);
              eval(value, mine);
            },
            [=] { compiled(*training, x, y); }, [=] { return compiled.kernels(*training, x, y); },
            [compiled] { return compiled.explain(); }};
  if (products) work.products = [=] { products(training->model); };
  return work;
}

// ---- mlp_train --------------------------------------------------------------------------------------------------------------------------

struct Mlp {
  nn::Linear a, b, c;
  Array operator()(const Array& x) const { return c(relu(b(relu(a(x))))); }
  SINTER_FIELDS(a, b, c)
};
Array mlp_loss(const Mlp& m, const Array& x, const Array& labels) { return cross_entropy(m(x), labels, Reduction::mean); }

// The products of a step: forward, gradients of the weights, gradients of the layers' inputs but the first.
Arrays step_products(const Arrays& in) {
  const Array &x = in[0], &h1 = in[1], &h2 = in[2], &g3 = in[3], &w1 = in[4], &w2 = in[5], &w3 = in[6];
  return {matmul(x, transpose(w1)),
          matmul(h1, transpose(w2)),
          matmul(h2, transpose(w3)),
          matmul(transpose(g3), h2),
          matmul(g3, w3),
          matmul(transpose(h2), h1),
          matmul(h2, w2),
          matmul(transpose(h1), x)};
}

// ---- one transformer block --------------------------------------------------------------------------------------------------------------

constexpr int kWidth = 512, kHeads = 8;

nn::TransformerEncoderLayer block(bool causal) {
  nn::TransformerOptions options;
  options.activation = nn::Activation::gelu;
  options.attention.bias = true;
  options.attention.causal = causal;
  return {kWidth, kHeads, options};
}
Array forward(const nn::TransformerEncoderLayer& block, const Array& x) { return block(x); }
Array block_loss(const nn::TransformerEncoderLayer& block, const Array& x, const Array& y) {
  return mse_loss(block(x), y, Reduction::mean);
}

// ---- decoding ---------------------------------------------------------------------------------------------------------------------------

constexpr int kFirst = 4;  // positions in the cache at first

using Layers = std::vector<nn::TransformerEncoderLayer>;
using Caches = std::vector<nn::KeyValueCache>;

Array decode_token(const Layers& layers, Caches& caches, const Array& x) {
  Array y = x;
  for (std::size_t i = 0; i < layers.size(); ++i) y = layers[i](y, caches[i]);
  return y;
}
// Each call is a token; after kDecodeTokens of them the caches start again.
Work make_decoding(const Array& x, std::int64_t capacity) {
  const Layers layers = with_numbers(Layers(6, block(true)));
  nn::KeyValueCache cache(capacity);
  cache.keys = cache.values = zeros({1, kHeads, capacity == 0 ? kFirst : capacity, kWidth / kHeads});
  cache.length = Array(kFirst);
  const Caches begin = with_numbers(Caches(layers.size(), cache));
  struct Text {
    Caches caches;
    Array next;
    int tokens = 0;
  };
  auto compiled = compile(decode_token);
  auto token = [=](auto step) {
    return [=, text = std::make_shared<Text>(Text{begin, x})] {
      if (text->tokens++ == kDecodeTokens) *text = {begin, x, 1};
      text->next = step(layers, text->caches, text->next);
      eval(text->next, text->caches);
    };
  };
  return {token(decode_token), token(compiled),
          [=] {
            Caches caches = begin;
            return compiled.kernels(layers, caches, x);
          },
          [compiled] { return compiled.explain(); }};
}

}  // namespace

Work make_mlp_train(Arrays in) {
  std::vector<int> labels(256);
  for (int i = 0; i < 256; ++i) labels[static_cast<std::size_t>(i)] = i % 10;
  const Array x = in[0];
  auto products = compile(step_products);
  auto factors = std::make_shared<Arrays>();
  auto run_products = [=](const Mlp& m) {
    if (factors->empty()) {  // only now: they are no part of the step's memory
      *factors = {x, m.a(x), m.a(x) + 1, m.c(m.a(x)), m.a.weight + 0, m.b.weight + 0, m.c.weight + 0};
      eval(*factors);
    }
    products(*factors);
  };
  return make_training<Mlp, mlp_loss>({nn::Linear(784, 512), nn::Linear(512, 512), nn::Linear(512, 10)}, x, Array(labels), run_products);
}

Work make_block_fwd(Arrays in) {
  const nn::TransformerEncoderLayer model = with_numbers(block(true));
  const Array x = in[0];
  auto compiled = compile(forward);
  return {[=] { forward(model, x).eval(); }, [=] { compiled(model, x); }, [=] { return compiled.kernels(model, x); },
          [compiled] { return compiled.explain(); }};
}
Work make_block_train(Arrays in) { return make_training<nn::TransformerEncoderLayer, block_loss>(block(true), in[0], in[1]); }

Work make_decode(Arrays in) { return make_decoding(in[0], 0); }
Work make_decode_places(Arrays in) { return make_decoding(in[0], kFirst + kDecodeTokens); }

}  // namespace bench
