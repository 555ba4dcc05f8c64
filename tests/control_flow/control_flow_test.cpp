// cond, loops, scans, checkpoint and custom rules: against the same function written out, in every combination of transforms.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sinter/sinter.h"
#include "support/thrown.h"

namespace {

using namespace sinter;
using tests::has;
using tests::thrown;

using Function = std::function<Array(const Array& x, const Array& w)>;

// x has shape (3), w (4, 3); all elements between 0.2 and 1.2.
struct Case {
  const char* name;
  Function f;        // by control flow
  Function written;  // without
  bool reverse = true, forward = true;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

Array row(const Array& w, int i) { return take(w, i, 0); }
Array rows(const Array& w, int n) { return slice(w, {0, 0}, {n, 3}); }

Array cell(const Array& c, const Array& v) { return tanh(c * 0.7 + v * v); }
Array squares(const Array& v) { return sin(v * v) * exp(v); }

struct Pendulum {
  Array angle, speed;
  SINTER_FIELDS(angle, speed)
};
Pendulum swing(const Pendulum& p) { return {p.angle + 0.1 * p.speed, p.speed - 0.1 * sin(p.angle)}; }

const Case kCases[] = {
    {"scan",
     [](const Array& x, const Array& w) {
       return scan([](const Array& c, const Array& v) { return std::pair(cell(c, v), c); }, x, w).first;
     },
     [](const Array& x, const Array& w) { return cell(cell(cell(cell(x, row(w, 0)), row(w, 1)), row(w, 2)), row(w, 3)); }},
    {"scan_outputs",
     [](const Array& x, const Array& w) {
       auto [c, y] = scan([](const Array& c, const Array& v) { return std::pair(cell(c, v), sin(c) * v); }, x, w);
       return sum(y, 0) * c;
     },
     [](const Array& x, const Array& w) {
       Array c = x, y = zeros({3}, x.dtype());
       for (int i = 0; i < 4; ++i) y = y + sin(c) * row(w, i), c = cell(c, row(w, i));
       return y * c;
     }},
    {"scan_reverse",
     [](const Array& x, const Array& w) {
       return sum(scan([](const Array& c, const Array& v) { return std::pair(cell(c, v), c * v); }, x, w, {.reverse = true}).second *
                      reshape(arange(4), {4, 1}),
                  0);
     },
     [](const Array& x, const Array& w) {
       Array c = x, y = zeros({3}, x.dtype());
       for (int i = 3; i >= 0; --i) y = y + i * c * row(w, i), c = cell(c, row(w, i));
       return y;
     }},
    {"scan_checkpoint_2",
     [](const Array& x, const Array& w) {
       auto [c, y] = scan([&](const Array& c, const Array& v) { return std::pair(cell(c, v) * x, c * v); }, x, w, {.checkpoint_every = 2});
       return c + sum(y, 0);
     },
     [](const Array& x, const Array& w) {
       Array c = x, y = zeros({3}, x.dtype());
       for (int i = 0; i < 4; ++i) y = y + c * row(w, i), c = cell(c, row(w, i)) * x;
       return c + y;
     }},
    {"scan_checkpoint_3_reverse",
     [](const Array& x, const Array& w) {
       auto [c, y] = scan([&](const Array& c, const Array& v) { return std::pair(cell(c, v) * x, c * v); }, x, w,
                          {.reverse = true, .checkpoint_every = 3});
       return c + row(y, 0) + 2 * row(y, 1) + 3 * row(y, 2) + 4 * row(y, 3);
     },
     [](const Array& x, const Array& w) {
       Array c = x, y = zeros({3}, x.dtype());
       for (int i = 3; i >= 0; --i) y = y + (i + 1) * c * row(w, i), c = cell(c, row(w, i)) * x;
       return c + y;
     }},
    {"scan_of_one",
     [](const Array& x, const Array& w) {
       return scan([](const Array& c, const Array& v) { return std::pair(cell(c, v), v); }, x, rows(w, 1)).first;
     },
     [](const Array& x, const Array& w) { return cell(x, row(w, 0)); }},
    {"scan_of_none",
     [](const Array& x, const Array& w) {
       return scan([](const Array& c, const Array& v) { return std::pair(cell(c, v), v); }, x, rows(w, 0)).first * row(w, 0);
     },
     [](const Array& x, const Array& w) { return x * row(w, 0); }},
    {"scan_structs",
     [](const Array& x, const Array& w) {
       auto step = [&](const Pendulum& p, const std::pair<Array, Array>& v) {
         return std::pair(swing({p.angle * v.first, p.speed + v.second}), std::vector<Array>{p.angle, v.first});
       };
       auto [p, y] = scan(step, Pendulum{x, x * x}, std::pair(w, arange(4, x.dtype())));
       return p.angle + sum(y[0] * y[1], 0);
     },
     [](const Array& x, const Array& w) {
       Pendulum p{x, x * x};
       Array y = zeros({3}, x.dtype());
       for (int i = 0; i < 4; ++i) {
         y = y + p.angle * row(w, i);
         p = swing({p.angle * row(w, i), p.speed + i});
       }
       return p.angle + y;
     }},
    {"scan_matmul",
     [](const Array& x, const Array& w) {
       Array m = reshape(x, {3, 1}) * x;
       return scan([&](const Array& c, const Array& v) { return std::pair(tanh(matmul(m, c) + v), c); }, x, w).first;
     },
     [](const Array& x, const Array& w) {
       Array m = reshape(x, {3, 1}) * x, c = x;
       for (int i = 0; i < 4; ++i) c = tanh(matmul(m, c) + row(w, i));
       return c;
     }},
    {"scan_nested",
     [](const Array& x, const Array& w) {
       auto inner = [](const Array& c, const Array& v) { return std::pair(sin(c + v), c); };
       auto outer = [&](const Array& c, const Array& v) { return std::pair(c * scan(inner, row(v, 0), v).first, c); };
       return scan(outer, x, w).first;
     },
     [](const Array& x, const Array& w) {
       Array c = x;
       for (int i = 0; i < 4; ++i) {
         Array s = row(row(w, i), 0);
         for (int k = 0; k < 3; ++k) s = sin(s + row(row(w, i), k));
         c = c * s;
       }
       return c;
     }},
    {"fori",
     [](const Array& x, const Array& w) { return fori_loop(1, 4, [&](const Array& i, const Array& s) { return s * row(w, 0) + i; }, x); },
     [](const Array& x, const Array& w) { return ((x * row(w, 0) + 1) * row(w, 0) + 2) * row(w, 0) + 3; }},
    {"fori_of_none",
     [](const Array& x, const Array& w) {
       return fori_loop(3, 1, [&](const Array&, const Array& s) { return s * row(w, 0); }, x) + row(w, 1);
     },
     [](const Array& x, const Array& w) { return x + row(w, 1); }},
    {"fori_arrays",
     [](const Array& x, const Array& w) {
       return fori_loop(Array(1), Array(4), [&](const Array& i, const Array& s) { return s * row(w, 0) + i; }, x);
     },
     [](const Array& x, const Array& w) { return ((x * row(w, 0) + 1) * row(w, 0) + 2) * row(w, 0) + 3; }, false},
    {"while",
     [](const Array& x, const Array& w) {
       return while_loop([](const Array& s) { return sum(s) < 20; }, [&](const Array& s) { return s * 2 + row(w, 1); }, x);
     },
     [](const Array& x, const Array& w) {
       Array s = x;
       while (sum(s).item<double>() < 20) s = s * 2 + row(w, 1);
       return s;
     },
     false},
    {"while_bounded",
     [](const Array& x, const Array& w) {
       return while_loop([](const Array& s) { return sum(s) < 20; }, [&](const Array& s) { return s * 2 + row(w, 1); }, x, 9);
     },
     [](const Array& x, const Array& w) {
       Array s = x;
       while (sum(s).item<double>() < 20) s = s * 2 + row(w, 1);
       return s;
     }},
    {"while_of_none",
     [](const Array& x, const Array& w) {
       return while_loop([](const Array& s) { return sum(s) < -1; }, [](const Array& s) { return s * 2; }, x) * row(w, 0);
     },
     [](const Array& x, const Array& w) { return x * row(w, 0); }, false},
    {"cond_yes",
     [](const Array& x, const Array& w) {
       return cond(
           sum(x) > -1, [](const Array& a, const Array& b) { return a * b; }, [](const Array& a, const Array& b) { return a + b; }, x,
           row(w, 2));
     },
     [](const Array& x, const Array& w) { return x * row(w, 2); }},
    {"cond_no_closures",
     [](const Array& x, const Array& w) { return cond(sum(x) > 99, [&] { return x * 2; }, [&] { return squares(x) * row(w, 1); }); },
     [](const Array& x, const Array& w) { return squares(x) * row(w, 1); }},
    {"cond_trees",
     [](const Array& x, const Array& w) {
       auto [a, b] = cond(sum(w), [&](const Pendulum& p) { return swing(p); }, [](const Pendulum& p) { return p; }, Pendulum{x, row(w, 0)});
       return a * b;
     },
     [](const Array& x, const Array& w) {
       auto [a, b] = swing({x, row(w, 0)});
       return a * b;
     }},
    {"checkpoint",
     [](const Array& x, const Array& w) {
       return checkpoint([](const Array& a, const Array& b) { return squares(a) * sin(row(b, 0)); })(x, w) * x;
     },
     [](const Array& x, const Array& w) { return squares(x) * sin(row(w, 0)) * x; }},
    {"checkpoint_nested",
     [](const Array& x, const Array& w) {
       auto inner = checkpoint([](const Array& v) { return squares(v); });
       return checkpoint([&](const Array& v) { return inner(inner(v) * row(w, 0)); })(x);
     },
     [](const Array& x, const Array& w) { return squares(squares(x) * row(w, 0)); }},
    {"checkpoint_in_scan",
     [](const Array& x, const Array& w) {
       auto step = checkpoint([](const Array& c, const Array& v) { return cell(c, v); });
       return scan([&](const Array& c, const Array& v) { return std::pair(step(c, v), c); }, x, w).first;
     },
     [](const Array& x, const Array& w) { return cell(cell(cell(cell(x, row(w, 0)), row(w, 1)), row(w, 2)), row(w, 3)); }},
    {"custom_vjp",
     [](const Array& x, const Array& w) {
       auto f = custom_vjp([](const Array& a, const Array& b) { return sin(a) * b; },
                           [](const Array& a, const Array& b) { return std::pair(sin(a) * b, std::vector<Array>{a, b}); },
                           [](const std::vector<Array>& r, const Array& g) { return std::tuple(g * cos(r[0]) * r[1], g * sin(r[0])); });
       return f(x, row(w, 0)) * x;
     },
     [](const Array& x, const Array& w) { return sin(x) * row(w, 0) * x; }, true, false},
    {"custom_jvp",
     [](const Array& x, const Array& w) {
       auto f = custom_jvp([](const Array& a, const Array& b) { return sin(a) * b; },
                           [](const std::tuple<Array, Array>& p, const std::tuple<Array, Array>& t) {
                             auto [a, b] = p;
                             auto [da, db] = t;
                             return std::pair(sin(a) * b, cos(a) * b * da + sin(a) * db);
                           });
       return f(x, row(w, 0)) * x;
     },
     [](const Array& x, const Array& w) { return sin(x) * row(w, 0) * x; }},
    {"custom_vmap",
     [](const Array& x, const Array& w) {
       auto f = custom_vmap([](const Array& a, const Array& b) { return sin(a) * b; },
                            [](const Array& a, const Array& b) { return sin(a) * b; });
       return f(x, row(w, 0)) * x;
     },
     [](const Array& x, const Array& w) { return sin(x) * row(w, 0) * x; }},
};

Array numbers(const Shape& s, Dtype t, double from) {
  return astype(reshape(0.2 + remainder(from + 0.37 * arange(static_cast<int>(static_cast<std::int64_t>(s.product())), float64), 1), s), t);
}
void expect_same(const Array& a, const Array& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(a.to_vector<double>(), b.to_vector<double>()) << what;
}
void expect_close(const Array& a, const Array& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], tolerance * (1 + std::fabs(y[i]))) << what << ", element " << i;
}

class ControlFlow : public testing::TestWithParam<Case> {};

// `make` turns a function of (x, w) into another: regular, compiled, and with a compiled function inside, against the one written out.
void compare(const Case& c, Dtype t, double tolerance, const std::string& what,
             const std::function<Array(const Function&, const Array&, const Array&)>& apply, const Array& x, const Array& w) {
  const Array expected = apply(c.written, x, w), regular = apply(c.f, x, w);
  expect_close(regular, expected, tolerance, what);
  auto whole = compile([&](const Array& a, const Array& b) { return apply(c.f, a, b); });
  const std::string label = what + " " + name(t);
  expect_same(whole(x, w), regular, label + ", compiled");
  expect_same(whole(x, w), regular, label + ", compiled, again");
  auto inside = compile([&](const Array& a, const Array& b) { return c.f(a, b); });
  expect_close(apply([&](const Array& a, const Array& b) { return inside(a, b); }, x, w), expected, tolerance, label + ", of the compiled");
}

TEST_P(ControlFlow, InEveryTransform) {
  const Case& c = GetParam();
  for (Dtype t : {float64, float32}) {
    const double tolerance = t == float64 ? 1e-12 : 2e-5;
    const Array x = numbers({3}, t, 0.1), w = numbers({4, 3}, t, 0.4);
    auto scalar = [](const Function& f) { return [f](const Array& a, const Array& b) { return sum(f(a, b)); }; };
    compare(c, t, tolerance, "value", [](const Function& f, const Array& a, const Array& b) { return f(a, b); }, x, w);
    if (c.reverse) {
      compare(c, t, tolerance, "grad", [&](const Function& f, const Array& a, const Array& b) { return grad(scalar(f))(a, b); }, x, w);
      compare(c, t, tolerance, "grad 1", [&](const Function& f, const Array& a, const Array& b) { return grad<1>(scalar(f))(a, b); }, x, w);
      compare(
          c, t, 10 * tolerance, "grad of grad",
          [&](const Function& f, const Array& a, const Array& b) {
            auto g = [&](const Array& u, const Array& v) { return sum(grad<1>(scalar(f))(u, v) * v) + sum(grad(scalar(f))(u, v)); };
            return grad(g)(a, b);
          },
          x, w);
    }
    if (c.forward)
      compare(
          c, t, tolerance, "jvp",
          [](const Function& f, const Array& a, const Array& b) {
            return jvp([f](const Array& u, const Array& v) { return f(u, v); }, std::tuple(a, b), std::tuple(row(b, 0), b * b)).second;
          },
          x, w);
    if (c.reverse && c.forward)
      compare(
          c, t, 10 * tolerance, "hessian",
          [&](const Function& f, const Array& a, const Array& b) { return hessian([&](const Array& u) { return sum(f(u, b)); })(a); }, x,
          w);
  }
}
INSTANTIATE_TEST_SUITE_P(All, ControlFlow, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

TEST_P(ControlFlow, InBatches) {
  const Case& c = GetParam();
  const Array xs = numbers({2, 3}, float64, 0.3), ws = numbers({4, 2, 3}, float64, 0.6);
  auto each = [&](const Function& f, bool both) {
    std::vector<Array> all;
    for (int i = 0; i < 2; ++i) all.push_back(f(row(xs, i), take(ws, both ? i : 0, 1)));
    return stack(all, 0);
  };
  const Array w = take(ws, 0, 1);
  auto whole = [&](const Function& f) { return Function([f](const Array& a, const Array& b) { return f(a, b); }); };
  std::vector<std::pair<std::string, Function>> forms{{"value", whole(c.f)}}, written{{"value", whole(c.written)}};
  if (c.reverse)
    for (auto* list : {&forms, &written}) {
      Function f = list->front().second;
      list->emplace_back(
          "grad", [f](const Array& a, const Array& b) { return grad([f](const Array& u, const Array& v) { return sum(f(u, v)); })(a, b); });
    }
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Function &f = forms[i].second, &plain = written[i].second;
    auto batched = [&f](std::vector<BatchAxis> axes) {
      return vmap([&f](const Array& a, const Array& b) { return f(a, b); }, std::move(axes));
    };
    for (bool both : {false, true}) {
      auto run = [&](const Array& a, const Array& b) { return both ? batched({0, 1})(a, b) : batched({0, {}})(a, b); };
      const Array got = run(xs, both ? ws : w);
      expect_close(got, each(plain, both), 1e-12, forms[i].first);
      expect_same(compile(run)(xs, both ? ws : w), got, forms[i].first + ", compiled");
    }
  }
}

// ---- what is special
// ----------------------------------------------------------------------------------------------------------------------

TEST(CustomRules, AreUsed) {
  auto square = [](const Array& x) { return x * x; };
  auto vjp_rule =
      custom_vjp(square, [](const Array& x) { return std::pair(x * x, x); }, [](const Array&, const Array& g) { return 100 * g; });
  auto jvp_rule = custom_jvp(square, [](const std::tuple<Array>& x, const std::tuple<Array>& t) {
    return std::pair(std::get<0>(x) * std::get<0>(x), 7 * std::get<0>(t));
  });
  auto batch_rule = custom_vmap(square, [](const Array& x) { return x - 1; });
  const Array x({1.f, 2.f, 3.f});
  for (int compiled = 0; compiled < 3; ++compiled) {
    auto of = [&](auto f, auto transform) {
      if (compiled == 0) return transform(f)(x);
      if (compiled == 1) return compile(transform(f))(x);
      return transform(compile(f))(x);
    };
    auto gradient = [](auto f) { return grad([f](const Array& v) { return sum(f(v)); }); };
    EXPECT_EQ(of(vjp_rule, gradient).template to_vector<float>(), (std::vector<float>{100, 100, 100})) << compiled;
    EXPECT_EQ(of(jvp_rule, gradient).template to_vector<float>(), (std::vector<float>{7, 7, 7})) << compiled;
    EXPECT_EQ(of(batch_rule, [](auto f) { return vmap(f); }).template to_vector<float>(), (std::vector<float>{0, 1, 2})) << compiled;
    EXPECT_EQ(of(vjp_rule, [](auto f) { return vmap(grad(f)); }).template to_vector<float>(), (std::vector<float>{100, 100, 100}))
        << compiled;
  }
  EXPECT_EQ(vjp_rule(x).to_vector<float>(), (std::vector<float>{1, 4, 9}));
}

// The way back of a rule that is not linear would be 0, or that at the tangent 0.
TEST(CustomRules, OfForwardModeAreLinear) {
  struct Tangent {
    const char* what;
    Array (*of)(const Array& x, const Array& t);
    bool linear;
  };
  const Tangent tangents[] = {
      {"cos(x) t", [](const Array& x, const Array& t) { return cos(x) * t; }, true},
      {"t / x + x sum(t)", [](const Array& x, const Array& t) { return t / x + x * sum(t); }, true},
      {"0", [](const Array&, const Array& t) { return zeros_like(t); }, true},
      {"0 t", [](const Array&, const Array& t) { return 0 * t; }, true},
      {"a constant", [](const Array&, const Array& t) { return stop_gradient(t); }, true},
      {"casts", [](const Array& x, const Array& t) { return astype(astype(t, float64) * x, float32); }, true},
      {"where", [](const Array& x, const Array& t) { return where(x > 0, t, flip(t)); }, true},
      {"cumsum", [](const Array&, const Array& t) { return cumsum(t) - mean(t); }, true},
      {"matmul", [](const Array&, const Array& t) { return matmul(t, eye(2)); }, true},
      {"scan",
       [](const Array&, const Array& t) {
         return scan([](const Array& c, const Array& e) { return std::pair(c + e, c + 2 * e); }, Array(0.0f), t).second;
       },
       true},
      {"cond",
       [](const Array& x, const Array& t) {
         return cond(sum(x) > 0, [](const Array& v) { return 2 * v; }, [](const Array& v) { return v; }, t);
       },
       true},
      {"a tangent",
       [](const Array& x, const Array& t) { return jvp([](const Array& v) { return sin(v); }, std::tuple(x), std::tuple(t)).second; },
       true},
      {"t^2", [](const Array&, const Array& t) { return t * t; }, false},
      {"|t|", [](const Array& x, const Array& t) { return cos(x) * abs(t); }, false},
      {"maximum", [](const Array&, const Array& t) { return maximum(t, 0); }, false},
      {"t max(t)", [](const Array&, const Array& t) { return t * max(t); }, false},
      {"sin", [](const Array&, const Array& t) { return sin(t) + t; }, false},
      {"sort", [](const Array&, const Array& t) { return sort(t); }, false},
      {"floor", [](const Array&, const Array& t) { return floor(t); }, false},
      {"t > 0", [](const Array&, const Array& t) { return astype(t > 0, float32); }, false},
      {"an integer", [](const Array&, const Array& t) { return astype(astype(t, int32), float32); }, false},
  };
  const Array x({0.25f, 0.5f});
  for (const Tangent& t : tangents) {
    auto f = custom_jvp([](const Array& a) { return sin(a); },
                        [&t](const std::tuple<Array>& a, const std::tuple<Array>& b) {
                          return std::pair(sin(std::get<0>(a)), t.of(std::get<0>(a), std::get<0>(b)));
                        });
    auto gradient = grad([&](const Array& a) { return sum(f(a)); });
    auto compiled = compile([&](const Array& a) { return gradient(a); });
    const std::string text = t.linear ? ""
                                      : "custom_jvp: the rule is not linear in the tangents, so there is no way back for a gradient; got a "
                                        "tangent that depends on them in another way; give sums of them, multiplied by what depends on the "
                                        "arguments alone";
    EXPECT_EQ(thrown<Error>([&] { gradient(x); }), text) << t.what;
    EXPECT_EQ(thrown<Error>([&] { compiled(x); }), text) << t.what;
    EXPECT_EQ(thrown<Error>([&] { jvp(f, std::tuple(x), std::tuple(x)).second.eval(); }), "") << t.what << ", forward";
  }
}

// The gradient rounds half to even and passes gradients straight through; integers go along, and the rule gives what it likes for them.
TEST(CustomRules, WithIntegersAndSeveralResults) {
  auto f = custom_vjp([](const Array& x, const Array& n) { return std::pair(round(x) * n, n + 1); },
                      [](const Array& x, const Array& n) { return std::pair(std::pair(round(x) * n, n + 1), n); },
                      [](const Array& n, const std::pair<Array, Array>& g) { return std::tuple(g.first * n, n); });
  const Array x({0.4f, 1.6f}), n({2, 3});
  auto loss = [&](const Array& v) { return sum(f(v, n).first); };
  EXPECT_EQ(grad(loss)(x).to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(f(x, n).second.to_vector<int>(), (std::vector<int>{3, 4}));
}

TEST(ControlFlowMore, OneBranchRuns) {
  // The branch not taken would not end.
  auto endless = [](const Array& x) { return while_loop([](const Array& s) { return s < 1e30; }, [](const Array& s) { return s; }, x); };
  auto f = [&](const Array& p, const Array& x) { return cond(p, [&] { return x; }, [&] { return endless(x); }); };
  EXPECT_EQ(f(true, 2.0).item<float>(), 2);
  EXPECT_EQ(compile(f)(true, 2.0).item<float>(), 2);
}

TEST(ControlFlowMore, BodiesAreTracedOnceAndCompiledOnce) {
  int runs = 0;
  auto f = compile(
      [&runs](const Array& x) {
        return fori_loop(
            0, 1000,
            [&](const Array&, const Array& s) {
              ++runs;
              return sin(s) + 1;
            },
            x);
      },
      {.captures = Captures::constant});
  f(ones({8}));
  EXPECT_EQ(runs, 1);
  EXPECT_LE(f.stats().kernels, 3);  // the step, the counter, and the counter's beginning
  f(ones({9}));
  EXPECT_EQ(runs, 2);
  EXPECT_LE(f.stats().kernels, 3);
}

TEST(ControlFlowMore, ResultsThatAreOneArrayHaveMemoryOfTheirOwn) {
  const Array x({1.f, 2.f});
  auto f = [](const Array& v) {
    auto [a, b, c] =
        cond(true, [](const Array& u) { return std::tuple(u, u, u); }, [](const Array& u) { return std::tuple(u + 1, u, u * 2); }, v);
    return std::tuple(a * 2, b * 3, c * 5);
  };
  auto [a, b, c] = compile(f)(x);
  expect_same(a, x * 2, "a");
  expect_same(b, x * 3, "b");
  expect_same(c, x * 5, "c");
}

TEST(ControlFlowMore, RandomNumbersInBranches) {
  random::seed(3);
  auto f = [](const Array& p) { return cond(p, [] { return random::uniform({4}); }, [] { return zeros({4}); }); };
  random::seed(1);
  const Array a = f(true);
  random::seed(1);
  expect_same(compile(f)(true), a, "drawn in a branch");
}

TEST(ControlFlowMore, GradientsOfHalvesAddUpInFloat32) {
  const int n = 4096;
  auto f = [](const Array& a) {
    return sum(scan([&](const Array& c, const Array& v) { return std::pair(c, v * a); }, Array(0.0), ones({n}, float16)).second);
  };
  // 4096 ones: float16 alone would stop at 2048.
  EXPECT_EQ(grad([&](const Array& a) { return astype(f(a), float32); })(Array(1.0).astype(float16)).item<float>(), 4096);
}

TEST(ControlFlowMore, StateSurvivesALoopThatIsPartOfAStep) {
  auto step = compile([](Array& w, const Array& x) {
    auto loss = [&](const Array& v) {
      return sum(square(scan([&](const Array& c, const Array& e) { return std::pair(tanh(c * v + e), c); }, zeros({3}), x).first - 0.5));
    };
    auto [l, g] = value_and_grad(loss)(w);
    w = w - 0.5 * g;
    return l;
  });
  Array w = ones({3}), x = numbers({5, 3}, float32, 0.2);
  const float first = step(w, x).item<float>();
  float last = first;
  for (int i = 0; i < 50; ++i) last = step(w, x).item<float>();
  EXPECT_LT(last, 0.9f * first);
}

TEST(ControlFlowMore, CheckpointLowersThePeakOfMemory) {
  const int n = 1 << 18, layers = 12;
  auto layer = [](const Array& h) { return sin(tanh(cos(sin(exp(tanh(h)) + h) * h) + h) * h); };
  auto chain = [&](bool save, const Array& x) {
    Array h = x;
    for (int i = 0; i < layers; ++i) h = save ? layer(h) : checkpoint(layer)(h);
    return sum(h);
  };
  const Array x = numbers({n}, float32, 0.1);
  x.eval();
  auto peak = [&](auto f) {
    f(x).eval();
    const std::int64_t before = active_memory();
    reset_peak_memory();
    f(x).eval();
    return (peak_memory() - before) / (n * 4);
  };
  auto of = [&](bool save) { return grad([&chain, save](const Array& v) { return chain(save, v); }); };
  const auto saved = peak(of(true)), again = peak(of(false)), compiled_saved = peak(compile(of(true))),
             compiled_again = peak(compile(of(false)));
  EXPECT_LE(again, layers + 12) << "regular, of " << saved;
  EXPECT_LT(2 * again, saved) << "regular";
  EXPECT_LE(compiled_again, layers + 6) << "compiled, of " << compiled_saved;
  expect_same(compile(of(false))(x), of(false)(x), "checkpointed");
  expect_same(of(false)(x), of(true)(x), "saved or computed again");
}

// ---- messages ---------------------------------------------------------------------------------------------------------------------------

TEST(ControlFlowErrors, Texts) {
  const Array x({1.f, 2.f});
  auto id = [](const Array& v) { return v; };
  EXPECT_EQ(thrown<ShapeError>([&] { cond(x > 0, id, id, x); }),
            "cond: the condition is one value; got bool[2]; use where to choose by element");
  EXPECT_EQ(thrown<ShapeError>([&] { cond(true, id, [](const Array& v) { return sum(v); }, x); }),
            "cond: the branches give different arrays; got float32[2] and float32[] as array 0; give the same shape and dtype");
  EXPECT_EQ(thrown<ShapeError>([&] { while_loop([](const Array& v) { return v > 0; }, id, x); }),
            "while_loop: the condition gives one bool; got bool[2]; compare, or reduce with any or all");
  EXPECT_EQ(
      thrown<ShapeError>([&] { while_loop([](const Array& v) { return sum(v) > 0; }, [](const Array& v) { return stack({v, v}); }, x); }),
      "while_loop: array 0 of the state changes its shape or dtype in a step; got float32[2] before and float32[2,2] after it; keep both, "
      "for example with astype on the first");
  auto pairs = [](const Array& c, const std::pair<Array, Array>& v) { return std::pair(c, v.first); };
  EXPECT_EQ(thrown<ShapeError>([&] { scan(pairs, x, std::pair(ones({2}), ones({3}))); }),
            "scan: the arrays have no axis 0 of one length; got float32[3] after one of length 2; give sequences of equal length");
  EXPECT_EQ(thrown<Error>([&] { scan(pairs, x, std::pair(x, x), {.checkpoint_every = -1}); }),
            "scan: checkpoint_every is negative; got -1; give a number of steps, or 0");
  EXPECT_TRUE(has(thrown<TraceError>(
                      [&] { fori_loop(0, 3, [](const Array&, const Array& s) { return s.item<float>() > 0 ? s : s + 1; }, Array(1.0)); }),
                  "item: the value is not known inside fori_loop, which runs its function without data; got an array made by input"));
  EXPECT_TRUE(
      has(thrown<TraceError>([&] { fori_loop(0, 3, [](const Array&, const Array& s) { return s + random::uniform({}); }, Array(1.0)); }),
          "fori_loop: a random number drawn in a loop would be the same in every step"));
  auto endless = [](const Array& v) { return while_loop([](const Array& s) { return s < 3; }, [](const Array& s) { return s + 1; }, v); };
  EXPECT_TRUE(
      has(thrown<Error>([&] { grad(endless)(1.0); }), "while_loop: a loop of an unknown number of steps has no gradient in reverse"));
  auto rule = [](auto back) {
    return custom_vjp([](const Array& a, const Array& b) { return a * b; },
                      [](const Array& a, const Array& b) { return std::pair(a * b, a); }, back);
  };
  auto loss = [&](auto f) { return grad([f](const Array& v) { return sum(f(v, v)); }); };
  EXPECT_EQ(thrown<Error>([&] { loss(rule([](const Array& a, const Array&) { return a; }))(x); }),
            "custom_vjp: the rule gives another number of arrays than there are arguments; got 1 for 2; give one for each");
  EXPECT_EQ(thrown<ShapeError>([&] { loss(rule([](const Array& a, const Array&) { return std::tuple(a, sum(a)); }))(x); }),
            "custom_vjp: the rule gives an array that does not fit; got float32[] for float32[2]; give one of the same shape and dtype");
  EXPECT_TRUE(has(thrown<Error>([&] {
                    jacfwd(custom_vjp([](const Array& a) { return a * 2; }, [](const Array& a) { return std::pair(a * 2, a); },
                                      [](const Array&, const Array& g) { return g; }))(x);
                  }),
                  "custom_vjp: the function has a rule for reverse mode alone"));
  EXPECT_TRUE(
      has(thrown<ShapeError>([&] { vmap(custom_vmap([](const Array& a) { return a * 2; }, [](const Array& a) { return sum(a); }))(x); }),
          "custom_vmap: the rule gives other arrays than the function"));
}

}  // namespace
