// Layers against what they are made of, or against references written here; under compile; their gradients.
#include "nn/models.h"

namespace sinter::tests {
namespace {

using Layer = std::function<Array(const Array&)>;

// The layer compiled is the layer, and its gradient by the input agrees with differences, summed over all elements.
void check(const std::string& what, const Layer& layer, const Array& x, const Array& expected) {
  random::seed(1);
  const Array y = layer(x);
  EXPECT_EQ(y.shape(), expected.shape()) << what;
  expect_near(y, values(expected), 2e-5, what);
  auto compiled = compile([layer](const Array& in) { return layer(in); }, {.captures = Captures::constant});
  random::seed(1);
  EXPECT_TRUE(same(compiled(x), y)) << what;
  if (!is_floating(x.dtype())) return;
  auto loss = [&](const Array& in) { return sum(layer(in) * cos(reshape(arange(y.size(), in.dtype()), y.shape()))); };
  const Array way = random::normal(x.shape(), x.dtype(), 0, 1, random::key(9));
  const double slope = sum(grad(loss)(x) * way).item<double>();
  const double h = 1e-2, difference = (loss(x + h * way).item<double>() - loss(x - h * way).item<double>()) / (2 * h);
  EXPECT_NEAR(slope, difference, 2e-2 * (1 + std::abs(slope))) << what;
}

Array draw(const Shape& s, std::uint64_t seed) { return random::normal(s, float32, 0, 1, random::key(seed)); }

TEST(Layers, are_what_they_are_made_of) {
  random::seed(5);
  const Array x = draw({2, 3, 8}, 1);
  const nn::Linear linear(8, 4), plain(8, 4, false);
  const nn::LayerNorm norm(8), bare(8, 1e-3, false);
  const nn::RMSNorm rms(8);
  const nn::Embedding table(10, 6);
  const nn::RoPE turn(8, true);
  const nn::PReLU slopes(8);
  const nn::Sequential both(nn::Linear(8, 5), nn::GELU(), nn::LayerNorm(5));
  check("linear", linear, x, matmul(x, transpose(linear.weight)) + linear.bias);
  check("linear without bias", plain, x, matmul(x, transpose(plain.weight)));
  check("layer norm", norm, x, layer_norm(x, ones({8}), zeros({8})));
  check("layer norm without weights", bare, x, layer_norm(x, {}, {}, 1e-3));
  check("rms norm", rms, x, rms_norm(x, ones({8})));
  check("embedding", table, Array({{1, 9, 0}}), stack({take(table.weight, Array({1, 9, 0}), 0)}));
  check(
      "embedding as output", [&](const Array& v) { return table.as_linear(v); }, draw({2, 6}, 2),
      matmul(draw({2, 6}, 2), transpose(table.weight)));
  check("rope", turn, x, rope(x, 8, true));
  check("prelu", slopes, x, where(x < 0, 0.25 * x, x));
  check("sequential", both, x, std::get<2>(both.layers)(gelu(std::get<0>(both.layers)(x))));
  check("relu", nn::ReLU(), x, maximum(x, 0));
  check("silu", nn::SiLU(), x, x / (1 + exp(-x)));
  const Array e = exp(x);
  check("sigmoid", nn::Sigmoid(), x, 1 / (1 + exp(-x)));
  check("tanh", nn::Tanh(), x, (e - 1 / e) / (e + 1 / e));
  check("relu6", nn::ReLU6(), 4 * x + 0.1, minimum(maximum(4 * x + 0.1, 0), 6));
  check("gelu", nn::GELU(), x, 0.5 * x * (1 + erf(x / std::sqrt(2.0))));
  check("gelu_tanh", nn::GELUTanh(), x, 0.5 * x * (1 + tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))));
  check("softplus", nn::Softplus(), x, log(1 + e));
  check("softsign", nn::Softsign(), x, x / (1 + abs(x)));
  check("selu", nn::SELU(), x, 1.05070098735548 * where(x > 0, x, 1.67326324235438 * (e - 1)));
  check("mish", nn::Mish(), x, x * tanh(log(1 + e)));
  check("hardswish", nn::HardSwish(), x, x * minimum(maximum(x + 3, 0), 6) / 6);
  check("log sigmoid", nn::LogSigmoid(), x, -log(1 + exp(-x)));
  check("elu", nn::ELU{0.5}, x, where(x > 0, x, 0.5 * (exp(x) - 1)));
  check("leaky relu", nn::LeakyReLU{0.2}, x, where(x > 0, x, 0.2 * x));
  check("softmax", nn::Softmax(), x, exp(x) / sum(exp(x), -1, true));
  check("log softmax", nn::LogSoftmax{1}, x, log(exp(x) / sum(exp(x), 1, true)));
  nn::Dropout off(0.5);
  off.training = false;
  check("dropout in evaluation", off, x, x);
}

TEST(Layers, convolutions) {
  random::seed(6);
  const nn::Conv2d conv(4, 6, {3, 2}, 2, {1, 0}, 1, 2), plain(4, 6, 1, 1, 0, 1, 1, false);
  const Array x = draw({2, 5, 6, 4}, 1);
  EXPECT_EQ(conv.weight.shape(), (Shape{6, 3, 2, 2}));
  check("conv2d", conv, x, conv2d(x, conv.weight, 2, {1, 0}, 1, 2) + conv.bias);
  check("conv2d of one place", plain, x, matmul(x, transpose(reshape(plain.weight, {6, 4}))));
  check("max pool", nn::MaxPool2d(2), x, max_pool2d(x, 2, 2));
  check("avg pool", nn::AvgPool2d({2, 3}, 1, {1, 0}), x, avg_pool2d(x, {2, 3}, 1, {1, 0}));
  EXPECT_EQ(thrown<ShapeError>([] { nn::Conv2d(4, 6, 3, 1, 0, 1, 4); }),
            "Conv2d: the groups do not divide the channels; got 4 for 4 and 6; use a divisor of both");
}

TEST(Layers, sinusoidal_positions) {
  const nn::SinusoidalPositions p(6, 0.01, 1);
  std::vector<double> expected;
  for (const double at : {0.0, 3.0}) {
    for (const double f : {1.0, 0.1, 0.01}) expected.push_back(std::sqrt(1 / 3.0) * std::sin(at * f));
    for (const double f : {1.0, 0.1, 0.01}) expected.push_back(std::sqrt(1 / 3.0) * std::cos(at * f));
  }
  expect_near(p(Array({0, 3})), expected, 1e-6);
}

TEST(Layers, initial_values_have_their_moments) {
  random::seed(3);
  const Shape s{300, 200};
  auto variance = [](const Array& a) { return a.var().item<double>(); };
  EXPECT_NEAR(variance(nn::init::glorot_uniform(s)), 2 / 500.0, 1e-4);
  EXPECT_NEAR(variance(nn::init::glorot_normal(s, 2)), 8 / 500.0, 4e-4);
  EXPECT_NEAR(variance(nn::init::he_uniform(s)), 2 / 200.0, 2e-4);
  EXPECT_NEAR(variance(nn::init::he_normal(s, 1)), 1 / 200.0, 1e-4);
  EXPECT_NEAR(variance(nn::init::he_normal({30, 3, 3, 200}, 1)), 1 / 1800.0, 1e-5);
  EXPECT_NEAR(variance(nn::init::uniform(s, -1, 3)), 16 / 12.0, 2e-2);
  EXPECT_NEAR(mean(nn::init::uniform(s, -1, 3)).item<double>(), 1, 2e-2);
  EXPECT_NEAR(variance(nn::init::normal(s, 5, 2)), 4, 0.1);
  EXPECT_NEAR(mean(nn::init::normal(s, 5, 2)).item<double>(), 5, 3e-2);
  EXPECT_TRUE(same(nn::init::he_normal(s, 1, float32, random::key(1)), nn::init::he_normal(s, 1, float32, random::key(1))));
  EXPECT_EQ(nn::init::glorot_normal(s, 1, float64).dtype(), float64);
  EXPECT_NEAR(variance(nn::Linear(200, 300).weight), 1 / 600.0, 1e-4);
  EXPECT_NEAR(variance(nn::Embedding(300, 200).weight), 1 / 200.0, 1e-4);
  EXPECT_EQ(thrown<ShapeError>([] { nn::init::he_normal({3}); }),
            "he_normal: the shape has no fans; got (3); use two axes or more, or uniform");
}

// ---- BatchNorm, Dropout under compile ---------------------------------------------------------------------------------------------------

TEST(Layers, batch_norm) {
  nn::BatchNorm norm(3, 1e-5, 0.25);
  const Array x = draw({4, 5, 3}, 6) * 2 + 1;
  const std::vector<double> v = values(x);
  std::vector<double> expected(v.size()), means(3), vars(3);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = c; i < v.size(); i += 3) means[c] += v[i] / 20;
    for (std::size_t i = c; i < v.size(); i += 3) vars[c] += (v[i] - means[c]) * (v[i] - means[c]) / 20;
    for (std::size_t i = c; i < v.size(); i += 3) expected[i] = (v[i] - means[c]) / std::sqrt(vars[c] + 1e-5);
  }
  expect_near(norm(x), expected, 1e-5);
  expect_near(norm.running_mean, {means[0] / 4, means[1] / 4, means[2] / 4}, 1e-6);
  expect_near(norm.running_var, {0.75 + vars[0] / 4, 0.75 + vars[1] / 4, 0.75 + vars[2] / 4}, 1e-6);
  // Its gradient goes through mean and variance of the batch; the layer itself stays.
  check("batch norm in training", [norm](const Array& in) { return nn::BatchNorm(norm)(in); }, x, Array(expected, x.shape()));
  EXPECT_TRUE(has(thrown<Error>([&] { std::as_const(norm)(x); }), "BatchNorm: a const layer cannot update its running statistics"));
  for (const Shape& empty : {Shape{0, 3}, Shape{2, 0, 3}}) {
    const std::vector<Array> before = tree_flatten(norm);
    EXPECT_TRUE(
        has(thrown<ShapeError>([&] { norm(zeros(empty)); }), "BatchNorm: an empty batch has no mean for the running statistics; got ("));
    const std::vector<Array> after = tree_flatten(norm);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].get(), after[i].get());
  }
  nn::eval(norm);
  EXPECT_EQ(norm(zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_TRUE(allclose(std::as_const(norm)(x), (x - norm.running_mean) / sqrt(norm.running_var + 1e-5), 1e-4, 1e-5).item<bool>());
  EXPECT_EQ(norm(astype(x, float16)).dtype(), float16);
}

TEST(Layers, batch_norm_compiled_keeps_statistics) {
  nn::BatchNorm a(3), b = a;
  auto step = compile([](nn::BatchNorm& n, const Array& x) { return n(x); });
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Array x = draw({i == 3 ? 2 : 5, 3}, i);
    EXPECT_TRUE(same(step(b, x), a(x)));
    EXPECT_TRUE(same(a.running_mean, b.running_mean) && same(a.running_var, b.running_var)) << i;
  }
  EXPECT_EQ(step.stats().traces, 2);
  nn::eval(b);
  const Array before = b.running_mean;
  step(b, draw({5, 3}, 9));
  EXPECT_EQ(before.get(), b.running_mean.get());
  EXPECT_EQ(step.stats().traces, 3);
}

TEST(Layers, dropout_has_new_masks_in_every_compiled_call) {
  const nn::Dropout drop(0.3);
  const Array x = ones({2000}) + 1;
  auto compiled = compile([](const nn::Dropout& d, const Array& in) { return d(in); });
  random::seed(4);
  const Array a = drop(x), b = drop(x);
  random::seed(4);
  const Array c = compiled(drop, x), d = compiled(drop, x);
  EXPECT_TRUE(same(a, c) && same(b, d));
  EXPECT_FALSE(same(a, b));
  EXPECT_EQ(compiled.stats().traces, 1);
  EXPECT_NEAR(mean(a == 0).item<double>(), 0.3, 0.04);
  EXPECT_TRUE(all(logical_or(a == 0, isclose(a, 2 / 0.7))).item<bool>());
  // The gradient passes where the mask did.
  random::seed(4);
  const Array g = grad([&](const Array& in) { return sum(drop(in)); })(x);
  EXPECT_TRUE(same(g * 2 == 0, a == 0));
  // Under value_and_grad inside compile too.
  struct Net {
    nn::Parameter w{ones({2000})};
    nn::Dropout drop{0.5};
    SINTER_FIELDS(w, drop)
  };
  auto loss = [](Net& n) { return sum(n.drop(n.w)); };
  auto step = compile([loss](Net& n) { return nn::value_and_grad(loss)(n).second.w; });
  Net n;
  random::seed(6);
  const Array first = nn::value_and_grad(loss)(n).second.w, second = nn::value_and_grad(loss)(n).second.w;
  random::seed(6);
  EXPECT_TRUE(same(step(n), first) && same(step(n), second));
  EXPECT_FALSE(same(first, second));
  EXPECT_EQ(thrown<Error>([] { nn::Dropout(1); }), "Dropout: the probability is out of range; got 1; use 0 to below 1");
}

// ---- attention
// ---------------------------------------------------------------------------------------------------------------------------

TEST(Attention, is_made_of_heads) {
  random::seed(7);
  const nn::MultiHeadAttention attention(8, 4, {.kv_heads = 2, .bias = true});
  const Array x = draw({2, 5, 8}, 1);
  // Each head by itself; two of queries share one of keys and values.
  const Array q = attention.query_proj(x), k = attention.key_proj(x), v = attention.value_proj(x);
  std::vector<Array> heads;
  for (int h = 0; h < 4; ++h) {
    auto part = [](const Array& a, int i) { return slice(a, {0, 0, 2 * i}, {2, 5, 2 * i + 2}); };
    const Array scores = matmul(part(q, h), swapaxes(part(k, h / 2), 1, 2)) / std::sqrt(2.0);
    heads.push_back(matmul(softmax(scores, -1), part(v, h / 2)));
  }
  check("attention", [&](const Array& in) { return attention(in); }, x, attention.out_proj(concatenate(heads, -1)));
  EXPECT_EQ(nn::parameter_count(attention), 2 * (64 + 8) + 2 * (32 + 4));
  EXPECT_EQ(thrown<ShapeError>([] { nn::MultiHeadAttention(8, 3); }),
            "MultiHeadAttention: the heads do not fit; got dims 8, heads 3 and kv_heads 3; make dims a multiple of heads, and heads one of "
            "kv_heads");
}

TEST(Attention, a_cache_gives_what_the_whole_sequence_gives) {
  random::seed(8);
  const nn::TransformerEncoder net(2, 8, 2,
                                   {.activation = nn::Activation::gelu, .attention = {.kv_heads = 1, .causal = true, .rope = true}});
  const Array x = draw({2, 7, 8}, 3), whole = net(x);
  auto part = [](const Array& a, int from, int to) { return slice(a, {0, from}, {2, to}); };
  for (const std::int64_t capacity : {0, 7, 12}) {
    auto step =
        compile([](const nn::TransformerEncoder& n, std::vector<nn::KeyValueCache>& caches, const Array& in) { return n(in, caches); });
    const std::int64_t before = step.stats().traces;
    std::vector<nn::KeyValueCache> regular(2, nn::KeyValueCache(capacity)), compiled = regular;
    for (const auto& [from, to] : {std::pair(0, 3), {3, 4}, {4, 5}, {5, 6}, {6, 7}}) {
      const Array y = net(part(x, from, to), regular);
      EXPECT_TRUE(allclose(y, part(whole, from, to), 1e-4, 1e-5).item<bool>()) << capacity << ' ' << from;
      EXPECT_TRUE(same(step(net, compiled, part(x, from, to)), y)) << capacity << ' ' << from;
      EXPECT_EQ(compiled[1].length.item<int>(), to);
    }
    // The first step of a cache makes its arrays; then a step of one position is one trace with places, and a few where the cache grows.
    EXPECT_LE(step.stats().traces - before, capacity == 0 ? 5 : 2) << capacity;
  }
  std::vector<nn::KeyValueCache> one(1);
  EXPECT_EQ(thrown<Error>([&] { net(x, one); }), "TransformerEncoder: the caches do not fit the layers; got 1 for 2; give one each");
}

TEST(Attention, encoder_layers) {
  random::seed(9);
  const Array x = draw({2, 4, 8}, 5), mask({{true, true, false, true}});
  for (const bool first : {true, false}) {
    const nn::TransformerEncoderLayer l(8, 2, {.mlp_dims = 16, .norm_first = first});
    auto network = [&](const Array& h) { return l.linear2(relu(l.linear1(h))); };
    const Array y = first ? x + l.attention(l.ln1(x), mask) : l.ln1(x + l.attention(x, mask));
    check("encoder layer", [&](const Array& in) { return l(in, mask); }, x, first ? y + network(l.ln2(y)) : l.ln2(y + network(y)));
    nn::TransformerEncoder stack(2, 8, 2, {.mlp_dims = 16, .norm_first = first});
    const Array through = stack.layers[1](stack.layers[0](x, mask), mask);
    check("encoder", [&](const Array& in) { return stack(in, mask); }, x, first ? stack.ln(through) : through);
    // A key that no query sees does not matter.
    const Array other = where(expand_dims(mask, 2), x, 100);
    EXPECT_TRUE(allclose(take(l(x, mask), Array({0, 1, 3}), 1), take(l(other, mask), Array({0, 1, 3}), 1), 1e-4, 1e-5).item<bool>());
  }
}

}  // namespace
}  // namespace sinter::tests
