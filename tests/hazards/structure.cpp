// Graphs: attributes of operations, sets of outputs, shared nodes, strides, reductions over axes of size 1.
#include <set>

#include "hazards/hazards.h"
#include "ops/op.h"

namespace sinter::tests {
namespace {

// Both forms of an operation, which differ in an attribute alone, in one function: each keeps its own result.
struct Pair {
  const char* name;
  std::function<Arrays(const Arrays& a)> f;  // of x float32 (4, 4), of distinct positive numbers, and indices int32 (4, 4)
};

const std::vector<Pair>& pairs() {
  using A = const Arrays&;
  static const std::vector<Pair> table{
      {"logarithms",
       [](A a) { return Arrays{-sum(a[0] * log(a[0])), -sum(a[0] * log2(a[0])), -sum(a[0] * log10(a[0])), sum(a[0] * log1p(a[0]))}; }},
      {"astype",
       [](A a) {
         return Arrays{astype(astype(a[0], int32), float64), astype(astype(a[0], float16), float64),
                       astype(astype(a[0], bfloat16), float64), astype(astype(a[0], uint8), float64)};
       }},
      {"sum axes", [](A a) { return Arrays{sum(a[0], 0), sum(a[0], 1), sum(a[0]), prod(a[0], 0), prod(a[0], 1)}; }},
      {"max axes", [](A a) { return Arrays{max(a[0], 0), max(a[0], 1), min(a[0], 0), min(a[0], 1)}; }},
      {"all and any", [](A a) { return Arrays{all(a[0] > 1.2, 0), any(a[0] > 10.8, 0), all(a[0] > 1.2, 1), any(a[0] > 10.8, 1)}; }},
      {"argmax axes",
       [](A a) { return Arrays{argmax(a[0], 0), argmax(a[0], 1), argmax(a[0]), argmin(a[0], 0), argmin(a[0], 1), argmin(a[0])}; }},
      {"mean and var",
       [](A a) { return Arrays{mean(a[0], 0), mean(a[0], 1), var(a[0], 0), var(a[0], 1), var(a[0], 0, false, 1), sinter::std(a[0], 0)}; }},
      {"softmax axes",
       [](A a) {
         return Arrays{softmax(a[0], 0),     softmax(a[0], 1),   log_softmax(a[0], 0),
                       log_softmax(a[0], 1), logsumexp(a[0], 0), logsumexp(a[0], 1)};
       }},
      {"shifts and bits", [](A a) { return Arrays{a[1] << 1, a[1] << 2, a[1] >> 1, a[1] >> 2, a[1] & 3, a[1] | 3, a[1] ^ 3}; }},
      {"roots", [](A a) { return Arrays{sqrt(a[0]), rsqrt(a[0]), square(a[0]), reciprocal(a[0])}; }},
      {"round", [](A a) { return Arrays{round(a[0], 0), round(a[0], 1), round(a[0], -1), floor(a[0]), ceil(a[0])}; }},
      {"isclose",
       [](A a) {
         const Array y = a[0] * 1.001;
         const Array nan = reshape(a[0] * NAN, {16});
         return Arrays{isclose(a[0], y, 1e-5), isclose(a[0], y, 1e-2), isclose(a[0], y, 1e-5, 2e-3), isclose(nan, nan),
                       isclose(nan, nan, 1e-5, 1e-8, true)};
       }},
      {"transpose",
       [](A a) {
         const Array x = reshape(a[0], {2, 2, 4});
         return Arrays{transpose(x, {0, 2, 1}), transpose(x, {2, 0, 1}) * 1, transpose(x, {1, 0, 2}) + 0, transpose(x, {2, 1, 0})};
       }},
      {"slice",
       [](A a) {
         return Arrays{slice(a[0], {0, 0}, {2, 2}), slice(a[0], {0, 1}, {2, 3}), slice(a[0], {0, 0}, {4, 4}, {2, 2}),
                       slice(a[0], {1, 0}, {3, 2}) * 2, flip(slice(a[0], {0, 0}, {2, 2}), 0)};
       }},
      {"reshape",
       [](A a) { return Arrays{reshape(a[0], {2, 8}) + 1, reshape(a[0], {8, 2}) + 1, reshape(a[0], {16}) + 1, reshape(a[0], {1, 16})}; }},
      {"broadcast_to", [](A a) { return Arrays{broadcast_to(a[0], {2, 4, 4}) + 1, broadcast_to(a[0], {3, 4, 4}) + 1}; }},
      {"as_strided",
       [](A a) {
         return Arrays{as_strided(a[0], {3, 3}, {1, 1}), as_strided(a[0], {3, 3}, {1, 2}), as_strided(a[0], {3, 3}, {1, 1}, 2) * 2};
       }},
      {"concatenate",
       [](A a) {
         return Arrays{concatenate({a[0], a[0] + 1}, 0), concatenate({a[0], a[0] + 1}, 1), stack({a[0], a[0]}, 0) + 1,
                       stack({a[0], a[0] + 1}, 2)};
       }},
      {"pad",
       [](A a) {
         return Arrays{pad(a[0], {{1, 0}, {0, 0}}), pad(a[0], {{0, 1}, {0, 0}}), pad(a[0], {{0, 0}, {1, 0}}),
                       pad(a[0], {{1, 0}, {0, 0}}, 7)};
       }},
      {"take", [](A a) { return Arrays{take(a[0], a[1], 0), take(a[0], a[1], 1), take(a[0], a[1])}; }},
      {"take_along_axis", [](A a) { return Arrays{take_along_axis(a[0], a[1], 0), take_along_axis(a[0], a[1], 1)}; }},
      {"scatter_add",
       [](A a) {
         auto along = [&a](int axis) {
           return grad([i = a[1], axis](const Array& x) { return sum(square(take_along_axis(x, i, axis))); })(a[0]);
         };
         return Arrays{along(0), along(1), scatter_add_axis(a[0], a[1], a[0] + 1, 0), scatter_add_axis(a[0], a[1], a[0] + 1, 1)};
       }},
      {"put_along_axis", [](A a) { return Arrays{put_along_axis(a[0], a[1], a[0] + 1, 0), put_along_axis(a[0], a[1], a[0] + 1, 1)}; }},
      {"sorting", [](A a) { return Arrays{sort(a[0]), sort(a[0], 0), sort(a[0], 1), argsort(a[0]), argsort(a[0], 0), argsort(a[0], 1)}; }},
      {"cumulative",
       [](A a) {
         Arrays r;
         for (int axis : {0, 1})
           for (bool reverse : {false, true})
             for (bool inclusive : {false, true}) {
               r.push_back(cumsum(a[0], axis, reverse, inclusive));
               r.push_back(cumprod(a[0], axis, reverse, inclusive));
               r.push_back(cummax(a[0], axis, reverse, inclusive));
               r.push_back(cummin(a[0], axis, reverse, inclusive));
               r.push_back(logcumsumexp(a[0], axis, reverse, inclusive));
             }
         return r;
       }},
      {"linear_recurrence",
       [](A a) {
         const auto slope = [&](int axis, bool reverse) {
           return grad([=](const Array& x) { return sum(square(cumprod(x, axis, reverse))); })(a[0]);
         };
         return Arrays{slope(0, false), slope(0, true), slope(1, false), slope(1, true)};
       }},
      {"arange",
       [](A a) {
         return Arrays{arange(4) * a[0], arange(4, 0, -1) * a[0], arange(0, 2, 0.5) * a[0], linspace(0, 1, 4) * a[0],
                       linspace(0, 2, 4) * a[0]};
       }},
      {"random",
       [](A a) {
         const Array key = astype(reshape(slice(a[1], {0, 0}, {1, 2}), {2}), uint32);
         return Arrays{astype(random::bits({4, 4}, 1, key), uint32),
                       astype(random::bits({4, 4}, 2, key), uint32),
                       random::bits({4, 4}, 4, key),
                       random::bits({2, 8}, 4, key),
                       random::uniform({4}, float32, key),
                       random::uniform(0, 2, {4}, float32, key),
                       random::normal({4}, float32, 0, 1, key),
                       random::normal({4}, float32, 1, 2, key),
                       random::permutation(a[0], key),
                       random::permutation(a[0], 1, key)};
       }},
      {"comparisons", [](A a) { return Arrays{a[0] < 3, a[0] <= 3, a[0] > 3, a[0] >= 3, a[0] == 3, a[0] != 3}; }},
      {"constants",
       [](A a) { return Arrays{a[0] * 2, a[0] * 2.5, a[0] * 0.0, a[0] * -0.0, a[0] + 1, a[0] + 1.5, clip(a[0], 1, 3), clip(a[0], 1, 4)}; }},
      {"parameters",
       [](A a) {
         return Arrays{elu(a[0] - 3), elu(a[0] - 3, 0.5), leaky_relu(a[0] - 3), leaky_relu(a[0] - 3, 0.5),
                       tril(a[0]),    tril(a[0], 1),      triu(a[0]),           triu(a[0], 1)};
       }},
      {"one_hot", [](A a) { return Arrays{one_hot(a[1], 3), one_hot(a[1], 4), one_hot(a[1], 4, float64)}; }},
      {"copies", [](A a) { return Arrays{moveaxis(a[0], 0, 1) + a[0], swapaxes(a[0], 0, 1) * a[0]}; }},
      {"nan_to_num",
       [](A a) {
         return Arrays{nan_to_num(a[0] * NAN), nan_to_num(a[0] * NAN, 1), nan_to_num(a[0] * INFINITY, 0, 2),
                       nan_to_num(a[0] * INFINITY, 0, 3)};
       }},
      {"scans",
       [](A a) {
         auto step = [](const Array& c, const Array& x) { return std::pair(c * 0.5 + x, c - x); };
         auto [c, y] = scan(step, zeros({4}), a[0]);
         auto [d, z] = scan(step, zeros({4}), a[0], {.reverse = true});
         auto [e, u] = scan(step, zeros({4}), slice(a[0], {0, 0}, {3, 4}));
         return Arrays{c, d, e, y, z};
       }},
      {"loops",
       [](A a) {
         auto until = [&](double most, const Array& by) {
           return while_loop([most](const Array& s) { return max(s) < most; }, [&](const Array& s) { return s + by; }, a[0]);
         };
         return Arrays{until(400, a[0]), until(900, a[0]), until(400, a[0] + 1)};
       }},
      {"rules",
       [](A a) {
         auto by = [](double scale) {
           return custom_vjp([](const Array& x) { return sin(x); }, [](const Array& x) { return std::pair(sin(x), std::pair(x, cos(x))); },
                             [scale](const std::pair<Array, Array>& r, const Array& g) { return scale * r.second * g; });
         };
         auto along = [](double scale) {
           return custom_jvp([](const Array& x) { return sin(x); },
                             [scale](const std::tuple<Array>& x, const std::tuple<Array>& t) {
                               return std::pair(sin(std::get<0>(x)), scale * std::get<0>(t));
                             });
         };
         auto batch = [](double scale) {
           return custom_vmap([](const Array& x) { return sin(x); }, [scale](const Array& x) { return scale * x; });
         };
         auto slope = [&](auto f) { return grad([f](const Array& x) { return sum(f(x)); })(a[0]); };
         return Arrays{slope(by(2)), slope(by(3)), slope(along(2)), slope(along(3)), vmap(batch(2))(a[0]), vmap(batch(3))(a[0])};
       }},
      {"matmul",
       [](A a) {
         return Arrays{matmul(a[0], a[0]),      matmul(transpose(a[0]), a[0]), matmul(a[0], transpose(a[0])),
                       addmm(a[0], a[0], a[0]), addmm(a[0], a[0], a[0], 2),    addmm(a[0], a[0], a[0], 1, 2)};
       }},
      {"blocks",
       [](A a) {
         const Array x = reshape(a[0] / 100, {1, 1, 8, 2});
         return Arrays{scaled_dot_product_attention(x, x, x, 1), scaled_dot_product_attention(x, x, x, 2),
                       scaled_dot_product_attention(x, x, x, 1, "causal"), scaled_dot_product_attention(x, x, 2 * x, 1)};
       }},
      {"convolutions",
       [](A a) {
         const Array x = reshape(a[0], {1, 4, 4, 1}), w = reshape(slice(a[0], {0, 0}, {2, 4}), {2, 2, 2, 1});
         std::vector<std::function<Array(const Array&, const Array&)>> by{
             [](const Array& x, const Array& w) { return conv2d(x, w); },
             [](const Array& x, const Array& w) { return conv2d(x, w, {1, 2}); },
             [](const Array& x, const Array& w) { return conv2d(x, w, {2, 1}); },
             [](const Array& x, const Array& w) { return conv2d(x, w, 1, {0, 1}); },
             [](const Array& x, const Array& w) { return conv2d(x, w, 1, 0, {1, 2}); },
             [](const Array& x, const Array& w) { return conv2d(concatenate({x, 2 * x}, 3), w, 1, 0, 1, 2); },
             [](const Array& x, const Array& w) { return conv2d(reshape(x, {4, 2, 2, 1}), w); }};
         Arrays all;
         for (const auto& f : by) {
           const auto [dx, dw] = grad<0, 1>([f](const Array& x, const Array& w) { return sum(sin(f(x, w))); })(x, w);
           all.insert(all.end(), {f(x, w), dx, dw});
         }
         return all;
       }},
  };
  return table;
}

Arrays operands() {
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(0.37f + 0.731f * static_cast<float>((i * 7) % 16));
  x[3] = 3;
  x[9] = 300.25;
  return {Array(x, Shape{4, 4}), reshape(arange(16) * 5 % 4, {4, 4})};
}

// Operations of arrays that are not evaluated yet.
void note_operations(Arrays arrays, std::set<std::string, std::less<>>& seen) {
  while (!arrays.empty()) {
    const Array a = arrays.back();
    arrays.pop_back();
    seen.insert(std::string(ops::info(a.get()->op).name));
    arrays.insert(arrays.end(), a.get()->inputs.begin(), a.get()->inputs.end());
  }
}

TEST(hazard, hazard_8_nodes_that_differ_in_an_attribute) {
  const Array p({0.1f, 0.2f, 0.3f, 0.4f});
  const Array entropies = both([](const Arrays& a) { return stack({-sum(a[0] * log(a[0])), -sum(a[0] * log2(a[0]))}); }, {p});
  EXPECT_NEAR(entropies.to_vector<double>()[0], 1.27985, 1e-5);
  EXPECT_NEAR(entropies.to_vector<double>()[1], 1.84644, 1e-5);
  std::set<std::string, std::less<>> seen;
  for (const Pair& p : pairs()) {
    const Arrays in = operands();
    note_operations(p.f(in), seen);
    const Arrays r = both(p.f, in, p.name);
    for (std::size_t i = 0; i < r.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_NE(difference(r[i], r[j]), "") << p.name << ": results " << j << " and " << i << " are not two";
    // Each alone, in a function of its own: sharing gives the same.
    for (std::size_t i = 0; i < r.size(); ++i) {
      auto one = compile([f = p.f, i](const Arrays& a) { return f(a)[i]; });
      EXPECT_EQ(difference(one(in), r[i]), "") << p.name << " " << i;
    }
  }
  for (const ops::OpInfo& op : ops::all_ops())
    EXPECT_TRUE(op.attributes.empty() || op.kind == ops::OpKind::Source || seen.contains(op.name) ||
                op.kind == ops::OpKind::Custom ||  // "rules": transforms have used them up
                op.name == "debug_print")          // the test below
        << op.name << " has attributes and no case here";
}

// Loops that are equal but for the text that they show.
TEST(hazard, hazard_8_lines_that_differ_in_their_text) {
  auto f = compile([](const Array& x) {
    const auto loop = [&](const char* format) {
      return fori_loop(
          0, 2,
          [format](const Array& i, const Array& s) {
            debug_print(format, i);
            return s + i;
          },
          x);
    };
    return loop("first {}") + loop("a second {}") + loop("first {}");
  });
  for (int call = 0; call < 2; ++call) {
    testing::internal::CaptureStdout();
    f(1.0f).eval();
    std::string expected;
    for (const char* text : {"first ", "a second ", "first "})
      for (int i = 0; i < 2; ++i) expected += text + ("array(" + std::to_string(i)) + ", dtype=int32)\n";
    EXPECT_EQ(testing::internal::GetCapturedStdout(), expected);
  }
}

TEST(hazard, hazard_9_every_set_of_outputs) {
  const auto chain = [](const Array& x) {
    const Array a = abs(log(x)), b = abs(a), c = exp(b) + a, d = sum(c);
    return Arrays{a, b, c, d};
  };
  for (const Arrays& in : {Arrays{1.0}, Arrays{Array({1.f, 2.f, 0.5f})}}) {
    const std::vector<Tensor> all = read(chain(in[0]));
    for (int round = 0; round < 2; ++round)
      for (int k = 1; k < 16; ++k) {
        const int set = round == 0 ? k : 16 - k;  // more outputs first, and fewer first
        auto f = compile([chain, set](const Array& x) {
          Arrays out, values = chain(x);
          for (std::size_t i = 0; i < 4; ++i)
            if (set >> i & 1) out.push_back(values[i]);
          return out;
        });
        std::vector<Tensor> expected;
        for (std::size_t i = 0; i < 4; ++i)
          if (set >> i & 1) expected.push_back(all[i]);
        EXPECT_EQ(graph::difference(read(f(in[0])), expected), "") << "outputs " << set;
      }
    clear_cache();
  }
}

// All programs of two operations over two shared values: what is used where is part of a kernel's identity.
TEST(hazard, hazard_10_which_node_is_used_where) {
  const Arrays in{full({3, 3}, 3), full({3, 3}, 5), full({3, 3}, 2)};
  const double de[] = {8, 5};
  const auto apply = [](int op, auto x, auto y) { return op == 0 ? x + y : op == 1 ? x - y : x * y; };
  for (int code = 0; code < 3 * 3 * 8; ++code) {
    const int first = code % 3, second = code / 3 % 3, i = code / 9 % 2, j = code / 18 % 2, k = code / 36 % 2;
    const Array r = both(
        [&](const Arrays& a) {
          const Array values[] = {a[0] + a[1], a[0] + a[2]};
          return apply(second, apply(first, values[i], values[j]), values[k]);
        },
        in, str("program ", code));
    expect_values(r, repeat({apply(second, apply(first, de[i], de[j]), de[k])}, 9), str("program ", code));
  }
}

TEST(hazard, hazard_12_strides) {
  for (int d = 0; d < kDtypeCount; ++d) {
    const Dtype t = static_cast<Dtype>(d);
    const std::string what = name(t);
    const Array one = full({1}, 3, t), scalar(3, t), row = full({1, 4}, 3, t), x = full({4}, 2, t), m = full({4, 4}, 1, t);
    const auto all_equal = [&](const Array& r) {
      const std::vector<std::uint64_t> words = graph::to_words(read(r));
      for (std::uint64_t w : words) EXPECT_EQ(w, words[0]) << what;
    };
    for (const Array& c : {one, scalar}) {
      all_equal(both([](const Arrays& a) { return (a[0] == a[0]) * broadcast_to(a[0], {4}) + a[1]; }, {c, x}, what));
      all_equal(both([](const Arrays& a) { return broadcast_to(a[0], {4, 4}) + a[1] + a[2]; }, {c, x, m}, what));
    }
    all_equal(both([](const Arrays& a) { return a[0] + transpose(a[0]) + a[1]; }, {row, m}, what));
    // Arguments that are broadcast, sliced, reversed or overlapping views already.
    const Array base = astype(arange(24), t), plain = reshape(base, {4, 6});
    for (const Array& v : {broadcast_to(x, {3, 4}), slice(plain, {0, 1}, {3, 5}), flip(slice(plain, {0, 1}, {3, 5})),
                           transpose(slice(plain, {0, 0}, {4, 4})), as_strided(base, {3, 4}, {1, 1}), as_strided(base, {3, 4}, {2, 1}, 5),
                           as_strided(base, {3, 4}, {0, 0}, 7)}) {
      const auto f = [](const Arrays& a) {
        return Arrays{a[0] + a[1],
                      (a[0] + a[0]) * a[1],
                      sum(a[0], 0),
                      sum(a[0], 1),
                      transpose(a[0]) * transpose(a[0]),
                      concatenate({a[0], a[0] + a[1]}, 0)};
      };
      const Array copy = Array(v.to_vector<float>(), v.shape(), is_complex(t) ? std::optional<Dtype>() : t);
      const Arrays r = both(f, {v, full({4}, 1, t)}, what);
      if (is_complex(t) || size_of(t) == 8) continue;  // float32 does not hold them
      EXPECT_EQ(graph::difference(read(r), read(f({copy, full({4}, 1, t)}))), "") << what;
    }
  }
}

TEST(hazard, hazard_12_leading_axes_of_size_one_and_donation) {
  for (Dtype t : {float32, float64, int32, uint8, bool_}) {
    for (const Shape& s : {Shape{1, 8, 8}, Shape{1, 1, 8, 8}, Shape{8, 8}, Shape{1, 8, 1}}) {
      auto f = compile([](Array x, const Array& y) { return x + y; });
      Array x = full(s, 1, t), y = full({8, 8}, 1, t), kept = x;
      x.eval();
      const Array expected = x + y, r = f(std::move(x), y);
      EXPECT_EQ(difference(r, expected), "") << t << s;
      EXPECT_EQ(difference(kept, full(s, 1, t)), "") << t << s << ": the caller's array";
      EXPECT_EQ(r.get()->layout.strides.size(), static_cast<std::size_t>(r.ndim()));
      Array fresh = full(s, 1, t);
      fresh.eval();
      EXPECT_EQ(difference(f(std::move(fresh), y), expected), "") << t << s << " given up";
      EXPECT_EQ(difference(transpose(r) + 0, transpose(expected) + 0), "");
    }
  }
}

TEST(hazard, hazard_13_reductions_over_axes_that_were_one) {
  const Array buf({10.f, 20.f, 30.f, 40.f, 50.f});
  const auto f = [](const Array& buf, const Array& idx) {
    const Array t = take(buf, idx);
    return Arrays{sum(t),     mean(t),     prod(t), min(t),       max(t),     argmin(-t),      argmax(t),
                  all(t > 5), any(t > 15), var(t),  logsumexp(t), softmax(t), sum(t, 0, true), sum(broadcast_to(t, {3, idx.shape(0)}), 1)};
  };
  for (bool shapeless : {false, true}) {
    auto compiled = compile(f, shapeless);
    double sums[] = {10, 30, 60, 100, 10};
    int at = 0;
    for (int n : {1, 2, 3, 4, 1}) {
      const Arrays r = compiled(buf, arange(n));
      EXPECT_EQ(graph::difference(read(r), read(f(buf, arange(n)))), "") << n;
      EXPECT_EQ(r[0].item<double>(), sums[at++]) << n;
    }
  }
}

// The kind: every reduction, of every dtype, along each axis and all, whatever sizes the trace saw first. Sizes above 1 share a trace.
TEST(hazard, hazard_13_every_reduction) {
  const auto f = [](const Array& x) {
    Arrays out;
    const auto reduce = [&](const Axes& axes, bool keep) {
      for (const Array& r : {sum(x, axes, keep), prod(x, axes, keep), max(x, axes, keep), min(x, axes, keep), all(x, axes, keep),
                             any(x, axes, keep), mean(x, axes, keep), var(x, axes, keep)})
        out.push_back(r);
    };
    for (bool keep : {false, true}) {
      reduce({}, keep);
      for (int axis : {0, 1}) {
        reduce(axis, keep);
        out.push_back(argmax(x, axis, keep));
        out.push_back(argmin(x, axis, keep));
      }
    }
    return out;
  };
  for (Dtype t : {float32, bfloat16, int8, uint64, bool_}) {
    for (const std::vector<std::pair<int, int>>& order :
         {std::vector<std::pair<int, int>>{{1, 1}, {1, 4}, {3, 1}, {3, 4}, {1, 1}}, {{3, 4}, {1, 4}, {5, 2}, {3, 1}, {17, 9}}}) {
      auto compiled = compile(f, true);
      compiled.clear();
      const std::int64_t before = compiled.stats().traces;
      for (auto [n, m] : order) {
        const Array x = astype(reshape(arange(n * m) * 7 % 5 + 1, {n, m}), t);
        EXPECT_EQ(graph::difference(elements_of(compiled(x)), elements_of(f(x))), "") << name(t) << ' ' << n << ", " << m;
      }
      EXPECT_LE(compiled.stats().traces - before, 4) << name(t) << ": one for each set of axes of size 1\n" << compiled.explain();
    }
  }
}

TEST(hazard, hazard_22_a_reduction_compared_with_its_operand) {
  std::vector<int> v;
  for (int i = 0; i < 1024; ++i) v.push_back(i * 389 % 1024);
  for (Dtype t : {float32, float64, int32, int64, uint16}) {
    const Array x = astype(Array(v, Shape{1, 2, 2, 2, 2, 64}), t);
    const Arrays r = both(
        [](const Arrays& a) {
          const Array found = a[0] == max(a[0], {2, 4}, true);
          return Arrays{found, sum(astype(found, int32), {2, 4}), sum(astype(a[0] == min(a[0], {1, 3, 5}, true), int32), {1, 3, 5}),
                        sum(astype(a[0] == max(a[0], {0, 5}, true), int32), {0, 5}), a[0] - max(a[0], -1, true)};
        },
        {x}, name(t));
    for (std::size_t i : {1u, 2u, 3u})
      expect_values(r[i], repeat({1}, static_cast<std::size_t>(static_cast<std::int64_t>(r[i].size()))), str(t, " ", i));
  }
  for (const Shape& s : {Shape{3, 5}, Shape{1, 7}, Shape{7, 1}, Shape{2, 1, 5}, Shape{4, 3, 33}})
    for (int axis = 0; axis < static_cast<int>(s.size()); ++axis) {
      const int n = static_cast<int>(static_cast<std::int64_t>(s.product()));
      const Array x = reshape(arange(n, float32) * 17 % n, s);
      const Array r = both([axis](const Arrays& a) { return sum(astype(a[0] == max(a[0], axis, true), int32), axis); }, {x},
                           str(s.size(), " axes, axis ", axis));
      for (int e : r.to_vector<int>()) EXPECT_GE(e, 1);
    }
}

}  // namespace
}  // namespace sinter::tests
