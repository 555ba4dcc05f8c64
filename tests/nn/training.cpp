// Compiled training steps: bit for bit the regular ones, for every optimizer; the strong guarantee; batches of other sizes; frozen
// parameters; the three ways to name state; counts of traces and bytes.
#include "nn/models.h"
#include "sinter/memory.h"

namespace sinter::tests {
namespace {

struct Batch {
  Array x, y;
};
Batch batch(int i, int n = 8) {
  const auto seed = static_cast<std::uint64_t>(i);
  return {random::normal({n, 6}, float32, 0, 1, random::key(seed)), random::randint(0, 3, {n}, int32, random::key(seed + 1000))};
}

template <class Model, class O>
Array train_step(Model& model, O& opt, const Array& x, const Array& y) {
  auto [loss, gradients] = nn::value_and_grad(
      [](Model& m, const Array& in, const Array& target) { return cross_entropy(m(in), target, Reduction::mean); })(model, x, y);
  auto [clipped, norm] = optim::clip_grad_norm(gradients, 0.5);
  opt.update(model, clipped);
  return loss;
}

template <class T>
void expect_same(const T& a, const T& b, const std::string& what) {
  const std::vector<Array> left = tree_flatten(a), right = tree_flatten(b);
  ASSERT_EQ(left.size(), right.size()) << what;
  for (std::size_t i = 0; i < left.size(); ++i) ASSERT_TRUE(same(left[i], right[i])) << what << ", array " << i;
}

template <class F>
void for_each_optimizer(F f) {
  const optim::Schedule rate = optim::warm_up(5, optim::cosine_decay(0.1, 30, 0.01));
  f("SGD", optim::SGD(rate));
  f("SGD with momentum", optim::SGD(rate, {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}));
  f("Adam", optim::Adam(rate));
  f("AdamW", optim::AdamW(rate));
  f("Adamax", optim::Adamax(rate));
  f("AdaGrad", optim::AdaGrad(rate));
  f("AdaDelta", optim::AdaDelta(rate));
  f("RMSprop", optim::RMSprop(rate));
  f("Lion", optim::Lion(rate));
  f("Adafactor", optim::Adafactor(rate, {.beta1 = 0.9}));
}

TEST(Training, twenty_compiled_steps_equal_twenty_regular_ones) {
  for_each_optimizer([](const std::string& what, auto opt) {
    using O = decltype(opt);
    random::seed(11);
    Mlp regular;
    Mlp compiled_model = regular, first = regular;
    opt.init(regular);
    O compiled_opt = opt;
    auto step = compile(train_step<Mlp, O>);
    const std::int64_t traces = step.stats().traces;
    for (int i = 0; i < 20; ++i) {
      const Batch b = batch(i);
      const Array loss = train_step(regular, opt, b.x, b.y);
      ASSERT_TRUE(same(step(compiled_model, compiled_opt, b.x, b.y), loss)) << what << ' ' << i;
      expect_same(regular, compiled_model, what);
      expect_same(opt, compiled_opt, what);
    }
    EXPECT_EQ(step.stats().traces - traces, 1) << what;
    EXPECT_EQ(opt.step.template item<int>(), 20);
    EXPECT_GT(max(abs(regular.up.weight - first.up.weight)).item<float>(), 1e-3f) << what;
  });
}

TEST(Training, an_exception_leaves_all_arrays) {
  for_each_optimizer([](const std::string& what, auto opt) {
    using O = decltype(opt);
    Mlp model;
    opt.init(model);
    // The exception comes last, when everything has been written.
    auto failing = [](Mlp& m, O& o, const Array& x, const Array& y, bool fail) {
      Array loss = train_step(m, o, x, y);
      if (fail) throw std::runtime_error("step 10");
      return loss;
    };
    auto step = compile(failing);
    for (int i = 0; i < 10; ++i) step(model, opt, batch(i).x, batch(i).y, false);
    const std::vector<Array> before = tree_flatten(std::tuple(model, opt));
    std::vector<std::vector<double>> bits;
    for (const Array& a : before) bits.push_back(values(a));
    EXPECT_EQ(thrown<std::runtime_error>([&] { step(model, opt, batch(10).x, batch(10).y, true); }), "step 10");
    // The traced call fails too where shapes do not fit.
    EXPECT_NE(thrown<ShapeError>([&] { step(model, opt, ones({8, 5}), batch(10).y, false); }), "");
    const std::vector<Array> after = tree_flatten(std::tuple(model, opt));
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i].get(), before[i].get()) << what;
      EXPECT_EQ(values(after[i]), bits[i]) << what;
    }
    step(model, opt, batch(10).x, batch(10).y, false);
    EXPECT_EQ(opt.step.template item<int>(), 11);
  });
}

TEST(Training, a_smaller_last_batch_is_one_trace_more) {
  Mlp a, b = a;
  optim::Adam oa(0.01), ob = oa;
  oa.init(a), ob.init(b);
  auto step = compile([](Mlp& m, optim::Adam& o, const Array& x, const Array& y) { return train_step(m, o, x, y); });
  for (int epoch = 0; epoch < 3; ++epoch)
    for (int i = 0; i < 4; ++i) {
      const Batch d = batch(i, i == 3 ? 5 : 8);
      EXPECT_TRUE(same(step(a, oa, d.x, d.y), train_step(b, ob, d.x, d.y)));
      expect_same(a, b, "model");
      expect_same(oa, ob, "optimizer");
    }
  EXPECT_EQ(step.stats().traces, 2);
}

TEST(Training, moments_made_in_the_first_step_cost_a_trace) {
  Mlp a, b = a;
  optim::Adam oa(0.01), ob = oa;
  auto step = compile(train_step<Mlp, optim::Adam>);
  const std::int64_t before = step.stats().traces;
  for (int i = 0; i < 5; ++i) {
    const Batch d = batch(i);
    step(a, oa, d.x, d.y), train_step(b, ob, d.x, d.y);
    expect_same(a, b, "model");
    expect_same(oa, ob, "optimizer");
  }
  EXPECT_EQ(step.stats().traces - before, 2);
}

TEST(Training, frozen_parameters_stay) {
  Mlp a, b = a;
  for (Mlp* m : {&a, &b}) nn::freeze(*m, "up.*");
  const Array weight = a.up.weight;
  optim::AdamW oa(0.01, 0.1), ob = oa;
  oa.init(a), ob.init(b);
  EXPECT_TRUE(oa.moments[0].empty());
  auto step = compile([](optim::AdamW& o, Mlp& m, const Array& x, const Array& y) { return train_step(m, o, x, y); });  // optimizer first
  for (int i = 0; i < 4; ++i) {
    if (i == 2)
      for (Mlp* m : {&a, &b}) nn::unfreeze(*m);
    const Batch d = batch(i);
    step(oa, a, d.x, d.y), train_step(b, ob, d.x, d.y);
    expect_same(a, b, "model");
    expect_same(oa, ob, "optimizer");
    EXPECT_EQ(a.up.weight.get() == weight.get(), i < 2) << i;
  }
  EXPECT_FALSE(oa.moments[0].empty());
  // Gradients of sinter::value_and_grad do not move them either.
  Mlp c;
  nn::freeze(c, "down.*");
  const Array down = c.down.weight;
  const Batch d = batch(1);
  optim::SGD(0.1).update(c, value_and_grad(mlp_loss)(c, d.x, d.y).second);
  EXPECT_EQ(c.down.weight.get(), down.get());
}

TEST(Training, three_ways_to_name_state) {
  struct State {
    Mlp model;
    optim::Adam opt{0.01};
    SINTER_FIELDS(model, opt)
  };
  State a;
  a.opt.init(a.model);
  State b = a, d = a;
  std::tuple<Mlp, optim::Adam> c(a.model, a.opt);
  auto by_reference = compile([](Mlp& m, optim::Adam& o, const Array& x, const Array& y) { return train_step(m, o, x, y); });
  auto as_struct = compile_with_state([](auto& s, const Array& x, const Array& y) { return train_step(s.model, s.opt, x, y); });
  auto as_tuple = compile_with_state(
      [](std::tuple<Mlp, optim::Adam>& s, const Array& x, const Array& y) { return train_step(std::get<0>(s), std::get<1>(s), x, y); });
  auto named = compile([&d](const Array& x, const Array& y) { return train_step(d.model, d.opt, x, y); }, captured(d.model, d.opt));
  for (int i = 0; i < 3; ++i) {
    const Batch in = batch(i);
    const Array l = by_reference(a.model, a.opt, in.x, in.y);
    EXPECT_TRUE(same(as_struct(b, in.x, in.y), l) && same(as_tuple(c, in.x, in.y), l) && same(named(in.x, in.y), l));
    expect_same(a, b, "struct");
    expect_same(a.model, std::get<0>(c), "tuple");
    expect_same(a.opt, std::get<1>(c), "tuple");
    expect_same(a, d, "captured");
  }
  EXPECT_EQ(by_reference.stats().traces + as_struct.stats().traces + as_tuple.stats().traces + named.stats().traces, 4);
}

TEST(Training, the_rate_may_change_without_a_trace) {
  Mlp m;
  optim::SGD opt(0.1);
  opt.init(m);
  auto step = compile([](Mlp& model, optim::SGD& o, const Array& x, const Array& y) { return train_step(model, o, x, y); });
  for (int i = 0; i < 4; ++i) {
    opt.learning_rate = Array(i == 3 ? 0.0 : 0.1 / (i + 1));
    const Array before = m.up.weight + 0;
    step(m, opt, batch(i).x, batch(i).y);
    EXPECT_EQ(same(before, m.up.weight), i == 3);
  }
  EXPECT_EQ(step.stats().traces, 1);
}

struct Wide {
  nn::Linear up{256, 512}, down{512, 10};
  Array operator()(const Array& x) const { return down(relu(up(x))); }
  SINTER_FIELDS(up, down)
};
TEST(Training, parameters_and_moments_are_updated_in_place) {
  Wide m;
  optim::Adam opt(0.001);
  opt.init(m);
  auto step = compile([](Wide& model, optim::Adam& o, const Array& x, const Array& y) { return train_step(model, o, x, y); });
  const Array x = random::normal({4, 256}), y = random::randint(0, 10, {4});
  for (const auto& [name, a] : nn::parameters(std::tuple(m, opt))) a.eval();
  step(m, opt, x, y).eval();
  step(m, opt, x, y).eval();
  std::size_t state = 0;
  for (const Array& a : tree_flatten(std::tuple(m, opt))) state += static_cast<std::size_t>(a.nbytes());
  const float* weight = m.up.weight.data<float>();
  const std::size_t before = active_memory();
  for (int i = 0; i < 10; ++i) {
    reset_peak_memory();
    step(m, opt, x, y).eval();
    EXPECT_EQ(active_memory(), before) << i;  // nothing grows
    // Beside the state: the gradients, each once, and little else.
    EXPECT_LT(peak_memory(), before + state / 3 * 5 / 4) << i;
  }
  EXPECT_EQ(m.up.weight.data<float>(), weight);
}

TEST(Training, regular_steps_do_not_grow) {
  Mlp m;
  optim::Adam opt(0.01);
  std::size_t after_three = 0;
  for (int i = 0; i < 12; ++i) {
    train_step(m, opt, batch(0).x, batch(0).y).eval();
    if (i == 2) after_three = active_memory();
  }
  EXPECT_LE(active_memory(), after_three);
}

// A small language model, with all that may go wrong: tables, masks, several heads, dropout, halves.
struct Characters {
  nn::Embedding table{11, 16};
  nn::TransformerEncoder encoder{
      2,
      16,
      4,
      {.dropout = 0.1, .activation = nn::Activation::silu, .attention = {.kv_heads = 2, .bias = true, .causal = true, .rope = true}}};
  nn::RMSNorm norm{16};
  Array operator()(const Array& ids) const { return table.as_linear(norm(encoder(table(ids)))); }
  SINTER_FIELDS(table, encoder, norm)
};
TEST(Training, a_transformer_compiled_equals_it_regular) {
  for (const Dtype t : {float32, bfloat16}) {
    random::seed(12);
    Characters a;
    for (const nn::detail::Leaf& leaf : nn::detail::leaves_of(a)) *leaf.array = astype(*leaf.array, t);
    Characters b = a;
    optim::AdamW oa(optim::cosine_decay(0.02, 12), 0.01), ob = oa;
    oa.init(a), ob.init(b);
    auto step = compile([](Characters& m, optim::AdamW& o, const Array& x, const Array& y) { return train_step(m, o, x, y); });
    const std::int64_t before = step.stats().traces;
    const Array ids = random::randint(0, 11, {4, 9}, int32, random::key(5));
    const Array x = slice(ids, {0, 0}, {4, 8}), y = slice(ids, {0, 1}, {4, 9});
    float first = 0, last = 0;
    for (int i = 0; i < 12; ++i) {
      random::seed(static_cast<std::uint64_t>(i));
      const Array loss = train_step(a, oa, x, y);
      random::seed(static_cast<std::uint64_t>(i));
      ASSERT_TRUE(same(step(b, ob, x, y), loss)) << t << ' ' << i;
      expect_same(a, b, "model");
      expect_same(oa, ob, "optimizer");
      (i == 0 ? first : last) = loss.item<float>();
    }
    EXPECT_EQ(a.table.weight.dtype(), t);
    EXPECT_LT(last, 0.75f * first) << t;
    EXPECT_EQ(step.stats().traces - before, 1);
  }
}

TEST(Training, a_checkpoint_goes_on_where_it_was) {
  const std::string path = file_in_temp("state.safetensors");
  auto step = compile([](Mlp& m, optim::Adam& o, const Array& x, const Array& y) { return train_step(m, o, x, y); });
  std::tuple<Mlp, optim::Adam> a(Mlp(), optim::Adam(optim::cosine_decay(0.1, 10))), b(Mlp(), optim::Adam(optim::cosine_decay(0.1, 10)));
  for (auto* s : {&a, &b}) std::get<1>(*s).init(std::get<0>(*s));
  for (int i = 0; i < 3; ++i) step(std::get<0>(a), std::get<1>(a), batch(i).x, batch(i).y);
  nn::save(path, a);
  nn::load(path, b);
  for (int i = 3; i < 6; ++i)
    for (auto* s : {&a, &b}) step(std::get<0>(*s), std::get<1>(*s), batch(i).x, batch(i).y);
  expect_same(a, b, "after the checkpoint");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sinter::tests
