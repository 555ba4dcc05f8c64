// grad, vjp, jvp and vmap on functions: values, trees, nesting with each other and with compile().
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "sinter/sinter.h"
#include "sinter/transforms.h"
#include "support/thrown.h"

namespace {

using namespace sinter;

float value(const Array& a) { return a.item<float>(); }
std::vector<float> values(const Array& a) { return a.to_vector<float>(); }
void expect_near(const Array& a, const std::vector<float>& b, float tolerance = 1e-5f) {
  std::vector<float> v = values(a);
  ASSERT_EQ(v.size(), b.size());
  for (std::size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(v[i], b[i], tolerance * (1 + std::fabs(b[i]))) << i;
}
using tests::thrown;

TEST(Grad, OfTheFirstArgument) {
  auto f = [](const Array& x) { return sum(x * x * x); };
  expect_near(grad(f)(Array({1.f, 2.f, 3.f})), {3, 12, 27});
  EXPECT_FLOAT_EQ(value(grad([](const Array& x) { return sin(x); })(0.5)), std::cos(0.5f));
}

TEST(Grad, OfNumbers) {
  auto power = [](const auto& x, int n) {
    Array p(1.0);
    for (int i = 0; i < n; ++i) p = p * x;
    return p;
  };
  EXPECT_FLOAT_EQ(value(grad(power)(3.0, 2)), 6);
  EXPECT_FLOAT_EQ(value(value_and_grad(power)(2.f, 3).second), 12);
}

TEST(Grad, OfOthersAndSeveral) {
  auto f = [](const Array& x, int power, const Array& y) {
    Array p = x;
    for (int i = 1; i < power; ++i) p = p * x;
    return sum(p * y);
  };
  Array x({2.f, 3.f}), y({5.f, 7.f});
  expect_near(grad<2>(f)(x, 2, y), {4, 9});
  auto [gx, gy] = grad<0, 2>(f)(x, 2, y);
  expect_near(gx, {20, 42});
  expect_near(gy, {4, 9});
}

struct Layer {
  Array w, b;
  int power = 1;
  SINTER_FIELDS(w, b, power)
};
struct Net {
  std::vector<Layer> layers;
  std::map<std::string, Array> scales;
  Array operator()(const Array& x) const {
    Array h = x;
    for (const Layer& l : layers) h = tanh(matmul(h, l.w) + l.b);
    return h * scales.at("out");
  }
  SINTER_FIELDS(layers, scales)
};

TEST(Grad, HasTheTypeOfTheArgument) {
  Net net{{{ones({3, 4}) * 0.1, zeros({4}), 7}, {ones({4, 2}) * 0.2, zeros({2}), 8}}, {{"out", Array(2.0)}}};
  Array x = random::normal({5, 3}, float32, 0, 1, random::key(1));
  auto loss = [](const Net& n, const Array& in) { return mean(square(n(in))); };
  auto [l, g] = value_and_grad(loss)(net, x);
  EXPECT_FLOAT_EQ(value(l), value(loss(net, x)));
  EXPECT_EQ(g.layers[1].power, 8);
  EXPECT_EQ(g.layers[0].w.shape(), (Shape{3, 4}));
  // Against finite differences, at one parameter of each array.
  auto nudge = [&](auto change) {
    Net up = net, down = net;
    change(up, 1e-2), change(down, -1e-2);
    return (value(loss(up, x)) - value(loss(down, x))) / 2e-2f;
  };
  EXPECT_NEAR(value(g.scales.at("out")), nudge([](Net& n, double d) { n.scales["out"] += d; }), 1e-3);
  EXPECT_NEAR(value(sum(g.layers[0].b)), nudge([](Net& n, double d) { n.layers[0].b += d; }), 1e-3);
  EXPECT_NEAR(value(sum(g.layers[1].w)), nudge([](Net& n, double d) { n.layers[1].w += d; }), 1e-3);
}

TEST(Grad, WithIntegersBesideTheLoss) {
  auto f = [](const Array& x) { return std::tuple(sum(x * x), argmax(x), x > 1, Array(3)); };
  auto [result, g] = value_and_grad(f)(Array({1.f, 2.f}));
  EXPECT_EQ(std::get<1>(result).item<int>(), 1);
  EXPECT_EQ(values(std::get<2>(result)), (std::vector<float>{0, 1}));
  EXPECT_EQ(std::get<3>(result).item<int>(), 3);
  expect_near(g, {2, 4});
}

TEST(Grad, WithSomethingBesideTheLoss) {
  auto f = [](const Array& x) { return std::pair(sum(x * x), std::vector<Array>{x + 1, exp(x)}); };
  auto [result, g] = value_and_grad(f)(Array({1.f, 2.f}));
  EXPECT_EQ(value(result.first), 5);
  expect_near(result.second[0], {2, 3});
  expect_near(g, {2, 4});
}

TEST(Grad, MayLookAtValues) {
  int steps = 0;
  auto newton_root = [&steps](const Array& a) {
    Array x = a;
    while (std::fabs(value(x * x - a)) > 1e-6f) x = 0.5 * (x + a / x), ++steps;
    return x;
  };
  EXPECT_NEAR(value(grad(newton_root)(2.0)), 0.5f / std::sqrt(2.0f), 1e-4);
  EXPECT_GT(steps, 1);
  EXPECT_NE(thrown<TraceError>([&] { compile(grad([&](const Array& a) { return newton_root(a); }))(2.0); }).find("TraceError"), 0u);
  EXPECT_THROW(compile(grad([&](const Array& a) { return newton_root(a); }))(2.0), TraceError);
}

TEST(Grad, Nests) {
  auto f = [](const Array& x) { return x * x * x * x; };
  EXPECT_FLOAT_EQ(value(grad(grad(f))(2.0)), 48);
  EXPECT_FLOAT_EQ(value(grad(grad(grad(f)))(2.0)), 48);
  // The inner gradient depends on the outer variable through a capture.
  auto outer = [](const Array& x) { return x * grad([x](const Array& y) { return x * y * y; })(3.0); };
  EXPECT_FLOAT_EQ(value(grad(outer)(2.0)), 24);  // d/dx 6 x^2
}

TEST(Grad, WithCompile) {
  auto f = [](const Array& x, const Array& y) { return sum(exp(-x) * y + x * y); };
  Array x({0.5f, 1.5f}), y({2.f, 3.f});
  std::vector<float> regular = values(grad(f)(x, y));
  auto both = compile(value_and_grad(f));
  for (int i = 0; i < 3; ++i) {
    auto [l, g] = both(x, y);
    EXPECT_EQ(values(g), regular);
    EXPECT_EQ(value(l), value(f(x, y)));
  }
  EXPECT_EQ(both.stats().traces, 1);
  EXPECT_EQ(values(grad(compile(f))(x, y)), regular);
  EXPECT_EQ(values(compile(grad(compile(f)))(x, y)), regular);
  EXPECT_EQ(values(compile(grad(f))(x, y)), regular);
}

TEST(Grad, OfACompiledStepWithState) {
  auto loss = [](const Layer& l, const Array& x, const Array& y) { return mean(square(matmul(x, l.w) + l.b - y)); };
  auto step = [loss](Layer& l, const Array& x, const Array& y) {
    auto [value, g] = value_and_grad(loss)(l, x, y);
    l.w = l.w - 0.1 * g.w;
    l.b = l.b - 0.1 * g.b;
    return value;
  };
  Array x = random::normal({20, 3}, float32, 0, 1, random::key(1)), y = matmul(x, Array({{1.f}, {-2.f}, {0.5f}})) + 3;
  Layer a{zeros({3, 1}), zeros({1})}, b = a;
  auto compiled = compile(step);
  Array last;
  for (int i = 0; i < 50; ++i) {
    last = compiled(a, x, y);
    EXPECT_EQ(value(last), value(step(b, x, y)));
  }
  EXPECT_EQ(values(a.w), values(b.w));
  EXPECT_LT(value(last), 0.02f);
  EXPECT_EQ(compiled.stats().traces, 1);
}

TEST(Vjp, PullsBackEveryArgument) {
  auto f = [](const Array& x, const Array& y) { return std::pair(x * y, sum(x)); };
  Array x({1.f, 2.f}), y({3.f, 4.f});
  auto [out, pullback] = vjp(f, x, y);
  expect_near(out.first, {3, 8});
  for (int i = 0; i < 2; ++i) {
    auto [gx, gy] = pullback({Array({1.f, 10.f}), Array(100.f)});
    expect_near(gx, {103, 140});
    expect_near(gy, {1, 20});
  }
}

TEST(Vjp, ResultsThatAreNotFloatingTakeACotangentWhichCountsForNothing) {
  const Array outside({3, 4});
  auto f = [&](const Array& x) { return std::vector<Array>{x * 2, x > 1, argmax(x), Array(true), outside}; };
  auto [out, pullback] = vjp(f, Array({1.f, 2.f}));
  expect_near(pullback({Array({1.f, 10.f}), out[1], out[2], out[3], out[4]}), {2, 20});
  auto compiled = compile(
      [&](const Array& x) {
        auto [y, back] = vjp(f, x);
        return back(y);
      },
      {.captures = Captures::constant});
  expect_near(compiled(Array({1.f, 2.f})), {4, 8});
  auto wrong = [&] { pullback({Array({1.f, 10.f}), Array({1, 0}), out[2], out[3], out[4]}); };
  EXPECT_THROW(wrong(), ShapeError);
}

TEST(Jvp, PushesForward) {
  auto f = [](const Array& x, const Array& y) { return std::vector<Array>{x * y, sin(x)}; };
  auto [out, along] = jvp(f, std::tuple(Array(2.0), Array(3.0)), std::tuple(Array(1.0), Array(10.0)));
  EXPECT_FLOAT_EQ(value(out[0]), 6);
  EXPECT_FLOAT_EQ(value(along[0]), 23);
  EXPECT_FLOAT_EQ(value(along[1]), std::cos(2.0f));
  // Forward over reverse.
  auto [g, h] = jvp(grad([](const Array& x) { return sum(x * x * x); }), std::tuple(Array({1.f, 2.f})), std::tuple(Array({1.f, 0.f})));
  expect_near(g, {3, 12});
  expect_near(h, {6, 0});
}

TEST(Vmap, MapsOverAxes) {
  auto dot = [](const Array& a, const Array& b) { return sum(a * b); };
  Array x = arange(6).reshape({2, 3}).astype(float32), y = ones({3});
  expect_near(vmap(dot)(x, x), {5, 50});
  expect_near(vmap(dot, {0, {}})(x, y), {3, 12});
  expect_near(vmap(dot, {1, 1})(x, x), {9, 17, 29});
  Array columns = vmap([](const Array& a) { return a * 2; }, {0}, 1)(x);
  EXPECT_EQ(columns.shape(), (Shape{3, 2}));
  // Nested: an outer product.
  Array outer =
      vmap(vmap([](const Array& a, const Array& b) { return a * b; }, {{}, 0}), {0, {}})(Array({1.f, 2.f}), Array({3.f, 4.f, 5.f}));
  expect_near(outer, {3, 4, 5, 6, 8, 10});
}

TEST(Vmap, WithGradAndCompile) {
  auto loss = [](const Array& w, const Array& x) { return sum(tanh(matmul(x, w))); };
  Array w = random::normal({3, 2}, float32, 0, 1, random::key(4)), x = random::normal({5, 4, 3}, float32, 0, 1, random::key(5));
  auto each = vmap(grad(loss), {{}, 0});
  Array g = each(w, x);
  ASSERT_EQ(g.shape(), (Shape{5, 3, 2}));
  for (int i = 0; i < 5; ++i)
    expect_near(slice(g, {i, 0, 0}, {i + 1, 3, 2}), values(grad(loss)(w, slice(x, {i, 0, 0}, {i + 1, 4, 3}).reshape({4, 3}))), 1e-4f);
  EXPECT_EQ(values(compile(each)(w, x)), values(g));
  EXPECT_EQ(values(vmap(compile(grad(loss)), {{}, 0})(w, x)), values(g));
  // The gradient of a mapped function.
  auto total = [&](const Array& v) { return sum(vmap(loss, {{}, 0})(v, x)); };
  expect_near(grad(total)(w), values(sum(g, 0)), 1e-4f);
}

TEST(Jacobian, RowsColumnsAndSecondDerivatives) {
  auto g = [](const Array& x, const Array& a) { return matmul(a, sin(x)); };
  Array a = random::normal({2, 3}, float32, 0, 1, random::key(2)), x({0.1f, 0.2f, 0.3f});
  std::vector<float> expected;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      expected.push_back(values(a)[static_cast<std::size_t>(i * 3 + j)] * std::cos(values(x)[static_cast<std::size_t>(j)]));
  Array rows = jacrev(g)(x, a), columns = jacfwd(g)(x, a);
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(columns.shape(), (Shape{2, 3}));
  expect_near(rows, expected);
  expect_near(columns, expected);
  expect_near(compile(jacrev(g))(x, a), expected);
  Array h = hessian([](const Array& v) { return sum(v * v * v) + prod(v); })(Array({1.f, 2.f, 3.f}));
  expect_near(h, {6, 3, 2, 3, 12, 1, 2, 1, 18});
}

TEST(StopGradient, IsAConstant) {
  auto f = [](const Array& x) { return sum(x * stop_gradient(x)); };
  expect_near(grad(f)(Array({1.f, 2.f})), {1, 2});
  expect_near(compile(grad(f))(Array({1.f, 2.f})), {1, 2});
  expect_near(compile([](const Array& x) { return stop_gradient(x) + 1; })(Array({1.f, 2.f})), {2, 3});
}

TEST(Norm, HasAGradientAtZero) {
  auto f = [](const Array& x) { return norm(x); };
  EXPECT_FLOAT_EQ(value(f(Array({3.f, 4.f}))), 5);
  expect_near(grad(f)(Array({3.f, 4.f})), {0.6f, 0.8f});
  expect_near(grad(f)(zeros({3})), {0, 0, 0});
  expect_near(norm(Array({{3.f, 4.f}, {5.f, 12.f}}), 1), {5, 13});
}

// <w, J v> = <J^T w, v>, and both are NaN or neither: where derivatives have jumps, where values are equal, infinite or NaN.
TEST(SingularPoints, ExtremesOfNaN) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Array (*const extremes[])(const Array&, const Axes&) = {[](const Array& x, const Axes& axes) { return max(x, axes); },
                                                          [](const Array& x, const Axes& axes) { return -min(-x, axes); }};
  for (const auto& extreme : extremes) {
    const auto guarded = [&](const Array& x) { return sum(where(isnan(sum(x, 1)), 0, extreme(x, 1))); };
    const Array rows({{1.0f, nan}, {3.0f, 4.0f}});
    EXPECT_EQ(grad(guarded)(rows).to_vector<float>(), (std::vector<float>{0, 0, 0, 1}));
    EXPECT_EQ(compile(grad(guarded))(rows).to_vector<float>(), (std::vector<float>{0, 0, 0, 1}));
    const auto pole = [&](const Array& x) { return 1 / (extreme(x, {}) - 3); };
    EXPECT_EQ(grad(pole)(Array({1.0f, 2.0f, 3.0f})).to_vector<float>(), (std::vector<float>{0, 0, -inf}));
  }
}

TEST(SingularPoints, ForwardAndReverseAgree) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<const char*, Array (*)(const Array&)> functions[] = {
      {"sum", [](const Array& x) { return sum(x); }},
      {"prod", [](const Array& x) { return prod(x); }},
      {"max", [](const Array& x) { return max(x); }},
      {"min", [](const Array& x) { return min(x); }},
      {"var", [](const Array& x) { return var(x); }},
      {"std", [](const Array& x) { return sinter::std(x); }},
      {"std of samples", [](const Array& x) { return sinter::std(x, {}, false, 1); }},
      {"norm", [](const Array& x) { return norm(x); }},
      {"logsumexp", [](const Array& x) { return logsumexp(x); }},
      {"softmax", [](const Array& x) { return softmax(x); }},
      {"log_softmax", [](const Array& x) { return log_softmax(x); }},
      {"layer_norm", [](const Array& x) { return layer_norm(x); }},
      {"sort", [](const Array& x) { return sort(x); }},
      {"cummax", [](const Array& x) { return cummax(x); }},
      {"logcumsumexp", [](const Array& x) { return logcumsumexp(x); }},
      {"maximum", [](const Array& x) { return maximum(x, flip(x)); }},
      {"logaddexp", [](const Array& x) { return logaddexp(x, flip(x)); }},
      {"arctan2", [](const Array& x) { return arctan2(x, flip(x)); }},
      {"hypot", [](const Array& x) { return hypot(x, flip(x)); }},
      {"power", [](const Array& x) { return power(x, flip(x)); }},
      {"divide", [](const Array& x) { return x / flip(x); }},
      {"abs", [](const Array& x) { return abs(x); }},
      {"sqrt", [](const Array& x) { return sqrt(x); }},
      {"log", [](const Array& x) { return log(x); }},
      {"relu", [](const Array& x) { return relu(x); }},
      {"clip", [](const Array& x) { return clip(x, 0, 1); }},
      {"max_pool2d", [](const Array& x) { return max_pool2d(reshape(x, {1, 3, 1, 1}), {3, 1}); }},
      {"cross_entropy", [](const Array& x) { return cross_entropy(x, Array(1)); }},
  };
  const Array points[] = {Array({2.f, 2.f, 2.f}),    Array({0.f, 0.f, 0.f}),  Array({1.f, nan, 2.f}),  Array({1.f, inf, 2.f}),
                          Array({inf, inf, 1.f}),    Array({-inf, 1.f, 2.f}), Array({0.f, 1.f, 0.f}),  Array({-0.f, 0.f, 1.f}),
                          Array({-inf, -inf, -inf}), Array({inf, -inf, 0.f}), Array({1.f, -1.f, 1.f}), Array({nan, nan, nan})};
  const Array v({0.7f, 1.3f, -0.4f});
  for (const auto& [name, f] : functions)
    for (const Array& x : points) {
      const auto [y, along] = jvp(f, std::tuple(x), std::tuple(v));
      const Array w = reshape(cos(arange(y.size(), float32)) + 0.1, y.shape());
      const float forward = value(sum(w * along)), reverse = value(sum(vjp(f, x).second(w) * v));
      EXPECT_EQ(std::isnan(forward), std::isnan(reverse)) << name << " at " << x << ": " << forward << " and " << reverse;
      if (std::isfinite(forward) || std::isfinite(reverse)) {
        EXPECT_NEAR(forward, reverse, 1e-4 * (1 + std::fabs(forward))) << name << " at " << x;
      }
    }
  expect_near(grad([](const Array& x) { return sinter::std(x); })(points[0]), {0, 0, 0});
  for (float g : values(grad([](const Array& x) { return max(x); })(points[2]))) EXPECT_TRUE(std::isnan(g));
}

TEST(Errors, NameWhatIsWrong) {
  struct Case {
    std::function<void()> f;
    const char* text;
  };
  Array x({1.f, 2.f}), i({1, 2});
  auto twice = [](const Array& a) { return a * 2; };
  auto add = [](const Array& a, const Array& b) { return a + b; };
  const Case cases[] = {
      {[&] { grad(twice)(x); }, "grad: the function must return a scalar; got float32[2]; reduce it, for example with sum or mean"},
      {[&] { grad([](const Array& a) { return sum(a); })(i); },
       "grad: only floating arrays have derivatives; got int32[2] as array 0 of the arguments; convert it with astype, or take the "
       "gradient of "
       "others"},
      {[&] { value_and_grad([](const Array& a) { return sum(a).astype(int32); })(x); },
       "value_and_grad: the loss must be floating; got int32[]; convert it with astype"},
      {[&] { vjp(twice, x).second(ones({3})); },
       "vjp: a cotangent does not fit; got float32[3] for float32(2); give one of the same shape and dtype"},
      {[&] { jvp(twice, std::tuple(x), std::tuple(Array(1.0))); },
       "jvp: a tangent does not fit; got float32[] for float32(2); give one of the same shape and dtype"},
      {[&] { vmap(add)(ones({2, 3}), ones({4, 3})); }, "vmap: sizes of the mapped axes differ; got 2 and 4; map over axes of one size"},
      {[&] { vmap(twice, {3})(x); }, "vmap: there is no such axis to map over; got axis 3 of float32[2]; choose another in_axes"},
      {[&] { vmap(add, {0})(x, x); },
       "vmap: in_axes do not match the arguments; got 1 axes for 2 arguments; give one for each, or none at all"},
      {[&] { vmap(twice, {{}})(x); },
       "vmap: there is nothing to map over; got no argument with an axis; give at least one array and its axis"},
      {[&] { vmap(twice, {0}, {})(x); },
       "vmap: a result differs between the elements of the batch; got no out_axes for float32[]; say along which axis they go"},
  };
  for (const Case& c : cases) EXPECT_EQ(thrown<Error>(c.f), c.text);
}

// ---- compiled functions under transforms
// ---------------------------------------------------------------------------------------------------

TEST(OfCompiled, AreTracedOnce) {
  int runs = 0;
  auto f = compile([&runs](const Array& x, const Array& y) {
    ++runs;
    return sum(tanh(x * y) + random::normal({3}, float32, 0, 0, random::key(1)));
  });
  const Array x({1.f, 2.f, 3.f}), y({0.5f, 0.25f, 0.1f}), xs = ones({4, 3}), ys = ones({4, 3});
  auto plain = [](const Array& x, const Array& y) { return sum(tanh(x * y)); };
  for (int i = 0; i < 3; ++i) {
    expect_near(grad(f)(x, y), values(grad(plain)(x, y)));
    expect_near(value_and_grad<1>(f)(x, y).second, values(grad<1>(plain)(x, y)));
    expect_near(vjp(f, x, y).first, values(plain(x, y)));
    expect_near(jvp(f, std::tuple(x, y), std::tuple(y, x)).second, values(jvp(plain, std::tuple(x, y), std::tuple(y, x)).second));
    expect_near(vmap(f)(xs, ys), values(vmap(plain)(xs, ys)));
    expect_near(vmap(grad(f))(xs, ys), values(vmap(grad(plain))(xs, ys)));
    expect_near(grad(grad([&](const Array& a) { return f(a * x, y); }))(2.0),
                values(grad(grad([&](const Array& a) { return plain(a * x, y); }))(2.0)));
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(f.stats().traces, 1);
}

TEST(OfCompiled, SeeTheArraysThatTheyHold) {
  const Array x({1.f, 2.f});
  auto outer = [&](const Array& w) {
    auto f = compile([w](const Array& v) { return sum(w * v * v); });
    return f(x) * 2;
  };
  expect_near(grad(outer)(x), {2, 8});
  expect_near(vmap(outer)(stack({x, x})), {18, 18});
  auto by_reference = [&](const Array& w) {
    auto f = compile([&w](const Array& v) { return sum(w * v * v); }, {.captures = Captures::constant});
    return f(x) * 2;
  };
  expect_near(grad(by_reference)(x), {2, 8});
}

TEST(OfCompiled, ChangeTheirState) {
  struct Count {
    Array n{0.0};
    SINTER_FIELDS(n)
  };
  auto f = compile([](Count& c, const Array& x) {
    c.n = c.n + 1;
    return sum(x * x) * c.n;
  });
  Count c;
  const Array x({1.f, 2.f});
  for (int i = 1; i <= 3; ++i) {
    expect_near(grad([&](const Array& v) { return f(c, v); })(x), {2.f * static_cast<float>(i), 4.f * static_cast<float>(i)});
    EXPECT_FLOAT_EQ(value(c.n), static_cast<float>(i));
  }
  EXPECT_EQ(f.stats().traces, 1);
}

// A regular gradient through one has the bits of that through the function itself, also where its sizes have become ones that change.
TEST(OfCompiled, OfSizesThatChange) {
  const auto inner = [](const Array& q) { return q * 2 + broadcast_to(q, q.shape()) * reshape(q, q.shape()); };
  const auto through = [](auto f) {
    return grad<0, 1>([f](const Array& x, const Array& v) { return sum(sin(f(x) * v + broadcast_to(v, x.shape())) * f(v)); });
  };
  const auto twice = [](auto f) {  // the gradient of a gradient
    return grad([f](const Array& x, const Array& v) {
      return sum(square(grad([f](const Array& x, const Array& v) { return sum(sin(f(x) * v + x)); })(x, v)));
    });
  };
  for (const bool shapeless : {false, true}) {
    const auto compiled = compile(inner, {.shapeless = shapeless});
    for (int n = 1; n < 8; ++n) {
      const Array x = random::normal({n, 6}, float32, 0, 1, random::key(1)), v = random::normal({6}, float32, 0, 1, random::key(2));
      const auto [a, b] = through(inner)(x, v);
      const auto [c, d] = through(compiled)(x, v);
      EXPECT_TRUE(array_equal(a, c).item<bool>() && array_equal(b, d).item<bool>()) << n << shapeless;
      EXPECT_TRUE(array_equal(twice(inner)(x, v), twice(compiled)(x, v)).item<bool>()) << n << shapeless;
    }
  }
}

TEST(OfCompiled, MayNotLookAtValues) {
  auto f = compile([](const Array& x) { return x.item<float>() > 0 ? x * x : x; });
  EXPECT_TRUE(tests::has(thrown<TraceError>([&] { grad(f)(2.0); }), "item: the value is not known while compiled function"));
  disable_compile();
  EXPECT_FLOAT_EQ(value(grad(f)(2.0)), 4);
  enable_compile();
}

TEST(Explain, ListsWhatTheWayBackReads) {
  auto f = compile(grad([](const Array& w, const Array& x) { return sum(tanh(matmul(x, w))); }));
  f(ones({3, 4}), ones({2, 3}));
  EXPECT_TRUE(tests::has(f.explain(), "grad saves 1 values, 32 bytes: tanh float32(2,4)")) << f.explain();
  auto g = compile(grad([](const Array& x) { return sum(checkpoint([](const Array& v) { return sin(cos(tanh(v * 2))); })(x * 3)); }));
  g(ones({8}));
  EXPECT_TRUE(tests::has(g.explain(), "grad saves 1 values, 32 bytes: multiply float32(8)")) << g.explain();
}

}  // namespace
