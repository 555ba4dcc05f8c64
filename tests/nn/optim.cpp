// Optimizers against references in double, written from the formulas of their papers; schedules; clipping.
#include "nn/models.h"

namespace sinter::tests {
namespace {

using Vec = std::vector<double>;

// One parameter array under an optimizer's formulas: p, given the gradient, the rate and the number t of the step, from 1. Rows and
// columns are those of a matrix; a vector has one row.
struct Reference {
  Vec p, m = Vec(p.size(), 0.0), v = m;
  std::size_t rows, columns;
  using Step = std::function<void(Reference&, const Vec& g, double rate, int t)>;
};
double rms(const Vec& x) {
  double total = 0;
  for (double a : x) total += a * a;
  return std::sqrt(total / static_cast<double>(x.size()));
}
// An elementwise formula: p, m, v, g, rate, t.
Reference::Step each(std::function<void(double& p, double& m, double& v, double g, double rate, double t)> f) {
  return [f](Reference& r, const Vec& g, double rate, int t) {
    for (std::size_t i = 0; i < g.size(); ++i) f(r.p[i], r.m[i], r.v[i], g[i], rate, t);
  };
}

// 12 steps with a schedule on a matrix and a vector, gradients drawn anew; float64 parameters.
template <class O>
void check(const std::string& what, O opt, const Reference::Step& step, bool own_rate = false) {
  struct Model {
    nn::Parameter w = random::normal({3, 4}, float64, 0, 1, random::key(1));
    nn::Parameter b = random::normal({5}, float64, 0, 1, random::key(2));
    SINTER_FIELDS(w, b)
  };
  Model model;
  const Model first = model;
  opt.schedule = optim::exponential_decay(0.0625, 0.75);
  Reference w{.p = values(model.w), .rows = 3, .columns = 4}, b{.p = values(model.b), .rows = 1, .columns = 5};
  for (int t = 1; t <= 12; ++t) {
    Model g;
    const auto seed = static_cast<std::uint64_t>(t);
    g.w = random::normal({3, 4}, float64, 0, 1, random::key(10 + seed));
    g.b = random::normal({5}, float64, 0.1, 2, random::key(30 + seed));
    const double rate = 0.0625 * std::pow(0.75, t - 1);
    opt.update(model, g);
    EXPECT_NEAR(opt.learning_rate.template item<double>(), rate, 1e-8) << what;
    EXPECT_EQ(opt.step.template item<int>(), t);
    step(w, values(g.w), rate, t);
    step(b, values(g.b), rate, t);
    expect_near(model.w, w.p, 2e-6, what + ", matrix, step " + std::to_string(t));
    expect_near(model.b, b.p, 2e-6, what + ", vector, step " + std::to_string(t));
    if (testing::Test::HasFailure()) return;
  }
  // They really moved.
  EXPECT_GT(max(abs(model.w - first.w)).template item<double>(), own_rate ? 1e-3 : 1e-2) << what;
  EXPECT_GT(min(abs(model.b - first.b)).template item<double>(), 1e-5) << what;
}

double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

TEST(Optimizers, follow_their_papers) {
  // Polyak, 1964; Sutskever, Martens, Dahl and Hinton, On the importance of initialization and momentum, 2013.
  check("SGD", optim::SGD(1.0), each([](double& p, double&, double&, double g, double a, double) { p -= a * g; }));
  check("SGD with momentum and decay", optim::SGD(1.0, {.momentum = 0.9, .weight_decay = 0.1}),
        each([](double& p, double& m, double&, double g, double a, double) { p -= a * (m = 0.9 * m + g + 0.1 * p); }));
  check("SGD, dampened", optim::SGD(1.0, {.momentum = 0.9, .dampening = 0.25}),
        each([](double& p, double& m, double&, double g, double a, double) { p -= a * (m = 0.9 * m + 0.75 * g); }));
  check("SGD, nesterov", optim::SGD(1.0, {.momentum = 0.9, .nesterov = true}),
        each([](double& p, double& m, double&, double g, double a, double) {
          m = 0.9 * m + g;
          p -= a * (g + 0.9 * m);
        }));
  // Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, algorithms 1 and 2.
  auto adam = [](double& p, double& m, double& v, double g, double a, double t) {
    m = 0.8 * m + (1 - 0.8) * g;
    v = 0.95 * v + (1 - 0.95) * g * g;
    const double mean = m / (1 - std::pow(0.8, t)), variance = v / (1 - std::pow(0.95, t));
    p -= a * mean / (std::sqrt(variance) + 1e-6);
  };
  const optim::AdamOptions options{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6};
  check("Adam", optim::Adam(1.0, options), each(adam));
  check("Adam, its own betas", optim::Adam(1.0), each([](double& p, double& m, double& v, double g, double a, double t) {
          m = 0.9 * m + (1 - 0.9) * g;
          v = 0.999 * v + (1 - 0.999) * g * g;
          p -= a * m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
        }));
  check("Adam without bias correction", optim::Adam(1.0, {.bias_correction = false}),
        each([](double& p, double& m, double& v, double g, double a, double) {
          m = 0.9 * m + (1 - 0.9) * g;
          v = 0.999 * v + (1 - 0.999) * g * g;
          p -= a * m / (std::sqrt(v) + 1e-8);
        }));
  check("Adamax", optim::Adamax(1.0, options), each([](double& p, double& m, double& v, double g, double a, double t) {
          m = 0.8 * m + (1 - 0.8) * g;
          v = std::max(0.95 * v, std::abs(g));
          p -= a / (1 - std::pow(0.8, t)) * m / (v + 1e-6);
        }));
  // Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2, line 12, the decay scaled by the rate too.
  check("AdamW", optim::AdamW(1.0, 0.3, options), each([adam](double& p, double& m, double& v, double g, double a, double t) {
          const double decay = a * 0.3 * p;
          adam(p, m, v, g, a, t);
          p -= decay;
        }));
  // Duchi, Hazan and Singer, Adaptive Subgradient Methods, 2011, the diagonal form.
  check("AdaGrad", optim::AdaGrad(1.0, 1e-6), each([](double& p, double&, double& v, double g, double a, double) {
          v += g * g;
          p -= a * g / (std::sqrt(v) + 1e-6);
        }));
  // Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012, algorithm 1; eps large enough to move.
  check("AdaDelta", optim::AdaDelta(1.0, 0.8, 1e-2), each([](double& p, double& m, double& v, double g, double a, double) {
          v = 0.8 * v + (1 - 0.8) * g * g;
          const double change = -std::sqrt(m + 1e-2) / std::sqrt(v + 1e-2) * g;
          m = 0.8 * m + (1 - 0.8) * change * change;
          p += a * change;
        }));
  // Tieleman and Hinton, Lecture 6.5: rmsprop, 2012.
  check("RMSprop", optim::RMSprop(1.0, 0.9, 1e-6), each([](double& p, double&, double& v, double g, double a, double) {
          v = 0.9 * v + (1 - 0.9) * g * g;
          p -= a * g / (std::sqrt(v) + 1e-6);
        }));
  // Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, program 1.
  check("Lion", optim::Lion(1.0, 0.9, 0.95, 0.2), each([](double& p, double& m, double&, double g, double a, double) {
          const double update = sign_of(0.9 * m + (1 - 0.9) * g);
          m = 0.95 * m + (1 - 0.95) * g;
          p -= a * (update + 0.2 * p);
        }));
}

// Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018, algorithms 4 (matrices) and 5 (vectors). The
// factors are kept as means, not sums: the quotient is the same.
Reference::Step adafactor(bool relative, bool scaled, double beta1, double decay) {
  return [=](Reference& r, const Vec& g, double rate, int t) {
    const double beta2 = 1 - std::pow(t, -0.8);
    Vec u(g.size());
    if (r.rows > 1) {
      // v: rows first, then columns.
      Vec row_sums(r.rows, 0), column_sums(r.columns, 0);
      for (std::size_t i = 0; i < g.size(); ++i) {
        row_sums[i / r.columns] += g[i] * g[i] + 1e-30;
        column_sums[i % r.columns] += g[i] * g[i] + 1e-30;
      }
      double total = 0;
      for (std::size_t i = 0; i < r.rows; ++i) total += r.v[i] = beta2 * r.v[i] + (1 - beta2) * row_sums[i];
      for (std::size_t i = 0; i < r.columns; ++i) r.v[r.rows + i] = beta2 * r.v[r.rows + i] + (1 - beta2) * column_sums[i];
      for (std::size_t i = 0; i < g.size(); ++i) u[i] = g[i] / std::sqrt(r.v[i / r.columns] * r.v[r.rows + i % r.columns] / total);
    } else {
      for (std::size_t i = 0; i < g.size(); ++i) {
        r.v[i] = beta2 * r.v[i] + (1 - beta2) * (g[i] * g[i] + 1e-30);
        u[i] = g[i] / std::sqrt(r.v[i]);
      }
    }
    const double clip = std::max(1.0, rms(u) / 1.0);
    const double alpha = (relative ? std::min(1e-2, 1 / std::sqrt(t)) : rate) * (scaled ? std::max(1e-3, rms(r.p)) : 1);
    for (std::size_t i = 0; i < g.size(); ++i) {
      double change = alpha * u[i] / clip;
      if (beta1 != 0) change = r.m[i] = beta1 * r.m[i] + (1 - beta1) * change;
      r.p[i] -= change + decay * alpha * r.p[i];
    }
  };
}
TEST(Optimizers, adafactor_follows_its_paper) {
  check("Adafactor", optim::Adafactor(), adafactor(true, true, 0, 0), true);
  check("Adafactor with a rate", optim::Adafactor(1.0, {.scale_parameter = false, .relative_step = false}), adafactor(false, false, 0, 0));
  check("Adafactor with all", optim::Adafactor(1.0, {.beta1 = 0.9, .weight_decay = 0.1, .relative_step = false}),
        adafactor(false, true, 0.9, 0.1));
}

TEST(Optimizers, halves_have_wide_moments) {
  nn::Parameter p(ones({4}, bfloat16));
  optim::Adam opt(0.25);
  opt.init(p);
  EXPECT_EQ(opt.moments[0][1].dtype(), float32);
  for (int i = 0; i < 3; ++i) opt.update(p, nn::Parameter(full({4}, 0.5, bfloat16)));
  EXPECT_EQ(p.dtype(), bfloat16);
  expect_near(p, Vec(4, 0.25), 1e-2);
}

// As a user writes one: the sign of the gradient, by a rate that falls with the step.
class SignSGD final : public optim::Optimizer {
 public:
  explicit SignSGD(const optim::Schedule& rate) : Optimizer(rate) {}
  double scale = 1;
  SINTER_FIELDS_AND_BASE(optim::Optimizer, scale)

 private:
  std::vector<Array> shared(const Shared& s) const override { return {scale * s.rate / s.step}; }
  std::vector<Array> first_moments(const Array&) const override { return {}; }
  Array next(const Array& p, const Array& g, std::vector<Array>&, const Shared& s) const override { return p - s.more[0] * sign(g); }
};
TEST(Optimizers, of_a_user) {
  check("SignSGD", SignSGD(1.0), each([](double& p, double&, double&, double g, double a, double t) { p -= a / t * sign_of(g); }));
}

TEST(Optimizers, mistakes) {
  Mlp model, gradients = model;
  optim::SGD opt(0.1);
  gradients.up.bias = ones({2});
  EXPECT_EQ(thrown<ShapeError>([&] { opt.update(model, gradients); }),
            "update: a gradient does not fit its parameter; got (2) for up.bias (5); pass the gradients of this model");
  EXPECT_EQ(opt.step.item<int>(), 0);
  std::vector<Array> two{ones({1}), ones({1})}, one{ones({1})};
  EXPECT_EQ(thrown<Error>([&] { opt.update(two, one); }),
            "update: the gradients have another structure than the model; got 1 and 2 arrays; pass the gradients of this model");
  EXPECT_EQ(thrown<Error>([] { optim::SGD(0.1, {.nesterov = true}); }),
            "SGD: nesterov needs momentum and no dampening; got momentum 0 and dampening 0; set them so");
}

// ---- schedules
// ---------------------------------------------------------------------------------------------------------------------------

TEST(Schedules, values) {
  using namespace optim;
  struct Case {
    const char* name;
    Schedule schedule;
    std::function<double(double)> expected;
  };
  auto line = [](double from, double to, double n, double t) { return from + (to - from) * std::min(t, n) / n; };
  const Case cases[] = {
      {"constant", 0.5, [](double) { return 0.5; }},
      {"linear", linear_schedule(1, 0.2, 8), [&](double t) { return line(1, 0.2, 8, t); }},
      {"step", step_decay(2, 0.5, 5), [](double t) { return 2 * std::pow(0.5, std::floor(t / 5)); }},
      {"exponential", exponential_decay(0.1, 0.9), [](double t) { return 0.1 * std::pow(0.9, t); }},
      {"cosine", cosine_decay(1, 10, 0.1), [](double t) { return 0.1 + 0.45 * (1 + std::cos(std::numbers::pi * std::min(t, 10.0) / 10)); }},
      {"joined", join_schedules({Schedule(1), exponential_decay(1, 0.5), linear_schedule(3, 4, 2)}, {4, 9}),
       [&](double t) { return t < 4   ? 1
                              : t < 9 ? std::pow(0.5, t - 4)
                                      : line(3, 4, 2, t - 9); }},
      {"warm-up", warm_up(4, cosine_decay(0.8, 6)),
       [&](double t) { return t < 4 ? 0.2 * t : 0.4 * (1 + std::cos(std::numbers::pi * std::min(t - 4, 6.0) / 6)); }},
  };
  for (const Case& c : cases)
    for (int t = 0; t < 14; ++t) EXPECT_NEAR(c.schedule(Array(t)).item<double>(), c.expected(t), 1e-6) << c.name << ' ' << t;
  EXPECT_EQ(thrown<Error>([] { join_schedules({Schedule(1), Schedule(2)}, {}); }),
            "join_schedules: the boundaries do not fit the parts; got 0 for 2; give one between any two, in ascending order");
  EXPECT_EQ(thrown<Error>([] { cosine_decay(1, 0); }), "cosine_decay: the number of steps is not positive; got 0; use 1 or more");
}

// ---- clipping
// ----------------------------------------------------------------------------------------------------------------------------

TEST(Clipping, scales_all_by_one_factor) {
  struct Two {
    nn::Parameter a{Array({3.f, 0.f})}, b{Array({4.f})}, none;
    SINTER_FIELDS(a, b, none)
  };
  const Two g;
  auto [small, norm] = optim::clip_grad_norm(g, 1);
  EXPECT_FLOAT_EQ(norm.item<float>(), 5);
  expect_near(small.a, {0.6, 0}, 1e-6);
  expect_near(small.b, {0.8}, 1e-6);
  EXPECT_FALSE(small.none.valid());
  auto [kept, same_norm] = optim::clip_grad_norm(g, 6);
  EXPECT_TRUE(same(kept.a, g.a) && same(kept.b, g.b));
  auto compiled = compile([](const Two& t) { return optim::clip_grad_norm(t, 1); });
  EXPECT_TRUE(same(compiled(g).first.b, small.b));
  EXPECT_EQ(thrown<Error>([&] { optim::clip_grad_norm(g, 0); }), "clip_grad_norm: max_norm is not positive; got 0; use a positive number");
}

}  // namespace
}  // namespace sinter::tests
