// SPEC 6: shapes that change. Every operation is in tests/shapeless.
#include "sinter/nn.h"
#include "spec/helpers.h"

namespace spec {
namespace {

Array numbers(const Shape& shape) { return sin(arange(shape.product(), float32)).reshape(shape); }

TEST(spec_6_1, a_new_shape_neither_traces_nor_generates_code) {
  auto fun = [](const Array& x, const Array& y) { return softmax(x * 2 + y, -1) - mean(x); };
  std::int64_t kernels = 0;
  for (auto& f : {compile(fun, {.shapeless = true}), compile(fun, true)}) {  // one identity
    for (auto [n, m] : {std::pair(4, 8), {2, 3}, {64, 5}, {3, 1000}}) {
      const Array x = numbers({n, m}), y = numbers({m});
      EXPECT_TRUE(same(f(x, y), fun(x, y)));
      if (kernels == 0) kernels = f.stats().kernels;
    }
    EXPECT_EQ(f.stats().traces, 1) << f.explain();
    EXPECT_EQ(f.stats().hits, f.stats().calls - 1);
    EXPECT_EQ(f.stats().entries, 1);
    EXPECT_LE(f.stats().kernels, kernels + 2) << f.explain();
  }
}

TEST(spec_6_1, another_number_of_axes_is_another_signature) {
  auto f = compile([](const Array& x) { return sum(x, -1); }, true);
  f(numbers({2, 3}));
  f(numbers({5, 7}));
  f(numbers({4}));
  EXPECT_EQ(f.stats().traces, 2);
}

TEST(spec_6_2, sizes_that_are_read_follow) {
  auto fun = [](const Array& x) {
    return std::vector<Array>{reshape(x, {x.shape(0) * x.shape(1), -1}), arange(x.shape(0)), x / x.size(), ones({x.shape(1) + 1}),
                              slice(x, {0}, {x.shape(0) / 2})};
  };
  auto f = compile(fun, true);
  for (auto [n, m, k] : {std::tuple(2, 3, 4), {5, 2, 7}, {9, 9, 2}}) {
    const Array x = numbers({n, m, k});
    const auto got = f(x), expected = fun(x);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same(got[i], expected[i])) << i;
  }
  EXPECT_EQ(f.stats().traces, 1) << f.explain();
}

TEST(spec_6_2, what_needs_the_number_is_a_guard) {
  auto loop = [](const Array& x) {
    Array y = zeros({x.shape(1)});
    for (int i = 0; i < x.shape(0); ++i) y = y * 2 + take(x, i, 0);
    return y;
  };
  auto f = compile(loop, true);
  for (auto [n, m] : {std::pair(3, 4), {3, 9}, {5, 4}, {3, 2}}) EXPECT_TRUE(same(f(numbers({n, m})), loop(numbers({n, m}))));
  EXPECT_EQ(f.stats().traces, 2) << f.explain();
  EXPECT_TRUE(has(f.explain(), "holds for s0 == 3")) << f.explain();
  EXPECT_TRUE(has(f.explain(), "s0 is input 0.shape(0)")) << f.explain();
  auto branch = [](const Array& x) { return x.shape(0) > 10 ? x * 2 : x + 1; };
  auto g = compile(branch, true);
  for (int n : {3, 5, 10, 11, 30, 2}) EXPECT_TRUE(same(g(numbers({n})), branch(numbers({n}))));
  EXPECT_EQ(g.stats().traces, 2) << g.explain();
  EXPECT_TRUE(has(g.explain(), "holds for s0 <= 10")) << g.explain();
  auto real = [](const Array& x) { return x * std::sqrt(static_cast<double>(x.shape(0))); };
  auto h = compile(real, true);
  for (int n : {3, 5, 3}) EXPECT_TRUE(same(h(numbers({n})), real(numbers({n}))));
  EXPECT_EQ(h.stats().traces, 2);
}

TEST(spec_6_2, sizes_among_results_are_those_of_the_call) {
  auto f = compile([](const Array& x) { return std::pair(x * 2, x.shape()); }, true);
  for (int n : {3, 5, 4}) EXPECT_EQ(f(numbers({n})).second, (Shape{n}));
}

TEST(spec_6_2, messages_print_numbers) {
  auto f = compile([](const Array& x) { return reshape(x, {x.shape(0) + 1}); }, true);
  EXPECT_EQ(thrown<ShapeError>([&] { f(numbers({3})); }),
            "reshape: the number of elements does not fit; got (3) to (4); the sizes' product must be 3");
}

TEST(spec_6_3, what_the_regular_call_rejects_is_rejected) {
  auto fun = [](const Array& x, const Array& y) { return x + y; };
  auto f = compile(fun, true);
  auto call = [&](std::int64_t n, std::int64_t m) {
    const Array x = numbers({n}), y = numbers({m});
    std::string expected = thrown<ShapeError>([&] { fun(x, y); });
    EXPECT_EQ(thrown<ShapeError>([&] { f(x, y); }), expected);
    if (expected.empty()) {
      EXPECT_TRUE(same(f(x, y), fun(x, y)));
    }
  };
  call(2, 2);
  call(2, 3);
  call(7, 7);
  call(1, 4);
  call(5, 1);
  call(0, 0);
  call(0, 1);
  call(0, 2);
  call(3, 4);
  call(9, 9);
}

TEST(spec_6_3, an_axis_of_size_1_is_still_reduced) {
  for (auto reduce :
       {+[](const Array& x) { return sum(x); }, +[](const Array& x) { return mean(x); }, +[](const Array& x) { return max(x); },
        +[](const Array& x) { return argmax(x); }, +[](const Array& x) { return all(x > 15); }}) {
    auto fun = [reduce](const Array& x, const Array& i) { return reduce(take(x, i)); };
    auto f = compile(fun, true);
    const Array x({10.f, 20.f, 30.f, 40.f, 50.f});
    for (int n : {1, 2, 3, 4, 1}) EXPECT_TRUE(same(f(x, arange(n)), fun(x, arange(n))));
  }
}

TEST(spec_6_4, the_third_size_is_symbolic) {
  auto fun = [](const Array& x, const Array& y) { return x * y; };
  auto f = compile(fun);
  for (int n = 2; n < 40; ++n) EXPECT_TRUE(same(f(numbers({n, 3}), numbers({3})), fun(numbers({n, 3}), numbers({3}))));
  EXPECT_EQ(f.stats().traces, 3) << f.explain();
  EXPECT_TRUE(has(f.explain(), "(float32[s0,3], float32[3])")) << f.explain();
  EXPECT_TRUE(has(f.explain(), "s0 is input 0.shape(0)")) << f.explain();
  EXPECT_TRUE(has(f.graph(numbers({50, 3}), numbers({3})), "float32[s0,3]")) << f.graph(numbers({50, 3}), numbers({3}));
  EXPECT_EQ(f.stats().kernels, 1);
  auto never = compile(fun, {.dynamic = Dynamic::never});
  for (int n = 2; n < 9; ++n) never(numbers({n, 3}), numbers({3}));
  EXPECT_EQ(never.stats().traces, 7);
}

TEST(spec_6_4, a_size_that_every_trace_needs_stays_a_number) {
  auto f = compile([](const Array& x) {
    Array y = x;
    for (int i = 0; i < x.shape(0); ++i) y = y + 1;
    return y;
  });
  for (int round = 0; round < 2; ++round)
    for (int n = 2; n < 30; ++n) EXPECT_EQ(f(zeros({n})).to_vector<float>()[0], n);
  EXPECT_EQ(f.stats().traces, 28) << "each size once";
}

TEST(spec_6_4, a_growing_cache) {
  struct Cache {
    Array keys = zeros({2, 0, 4}), values = zeros({2, 0, 4});
    SINTER_FIELDS(keys, values)
  };
  auto token = [](Cache& c, const Array& x) {
    c.keys = concatenate({c.keys, x}, 1);
    c.values = concatenate({c.values, x * 2}, 1);
    const Array scores = softmax(sum(c.keys * x, 2), -1);
    return sum(expand_dims(scores, 2) * c.values, 1, true);
  };
  auto f = compile(token, {.name = "token"});
  Cache regular, compiled;
  Array a = numbers({2, 1, 4}), b = a;
  std::int64_t kernels = 0;
  for (int i = 0; i < 500; ++i) {
    a = token(regular, a);
    b = f(compiled, b);
    eval(a, regular);
    if (i % 50 == 0) {
      ASSERT_TRUE(same(a, b)) << i;
    }
    if (i == 20) kernels = f.stats().kernels;
  }
  EXPECT_TRUE(same(regular.keys, compiled.keys));
  EXPECT_EQ(compiled.keys.shape(1), 500);
  EXPECT_LE(f.stats().traces, 3) << f.explain();
  EXPECT_LE(f.stats().kernels, kernels + 2) << f.explain();
}

TEST(spec_6, transforms_of_shapeless_functions) {
  auto f = compile([](const Array& x) { return sum(square(x)) / x.size(); }, true);
  for (int n : {3, 5, 8}) {
    const Array x = numbers({n});
    auto plain = [](const Array& v) { return sum(square(v)) / v.size(); };
    EXPECT_TRUE(same(grad(f)(x), grad(plain)(x)));
    const Array rows = numbers({2, n});
    EXPECT_TRUE(same(vmap(f)(rows), vmap(plain)(rows)));
  }
  auto g = compile(grad(f), true);
  for (int n : {3, 5, 8}) EXPECT_TRUE(same(g(numbers({n})), grad(f)(numbers({n}))));
  EXPECT_EQ(g.stats().traces, 1);
}

TEST(spec_6, training_on_batches_of_changing_sizes) {
  auto loss = [](const Array& w, const Array& x, const Array& y) { return mse_loss(matmul(x, w), y, Reduction::mean); };
  auto step = [&](Array& w, const Array& x, const Array& y) {
    auto [l, g] = value_and_grad(loss)(w, x, y);
    w = w - 0.1 * g;
    return l;
  };
  auto f = compile(step);
  Array w = numbers({4, 2}), v = w;
  for (int n : {8, 8, 3, 8, 5, 2, 16, 7, 8}) {
    const Array a = step(w, numbers({n, 4}), numbers({n, 2})), b = f(v, numbers({n, 4}), numbers({n, 2}));
    EXPECT_TRUE(same(a, b) && same(w, v)) << n;
  }
  EXPECT_EQ(f.stats().traces, 3) << f.explain();
}

}  // namespace
}  // namespace spec
