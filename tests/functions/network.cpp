// Functions of neural networks and losses, against references written here in double; and their gradients against differences.
#include <omp.h>

#include "functions/cases.h"
#include "sinter/sinter.h"

namespace {

using Vec = std::vector<double>;
using Fn = std::function<Array(const std::vector<Array>&)>;

Array numbers(const Shape& s, std::uint64_t seed, double scale = 1) { return random::normal(s, float64, 0, scale, random::key(seed)); }

void expect_close(const Array& got, const Vec& expected, double tolerance, const std::string& what) {
  const Vec g = got.to_vector<double>();
  ASSERT_EQ(g.size(), expected.size()) << what;
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << ' ' << i;
}

// A function on float64 arrays: value against the reference; the gradient of a weighted sum against differences; compiled against regular;
// halves against float64 within their precision.
struct FunctionCase {
  const char* name;
  std::vector<Array> in;
  Fn f;
  std::function<Vec(const std::vector<Vec>&)> reference;
};

double total(const Fn& f, const std::vector<Array>& in) {
  const Array y = f(in);
  return sum(y * cos(reshape(arange(y.size(), float64), y.shape()))).item<double>();
}

void check(const FunctionCase& c) {
  std::vector<Vec> data;
  for (const Array& a : c.in) data.push_back(a.to_vector<double>());
  const Array y = c.f(c.in);
  const Vec expected = c.reference(data);
  expect_close(y, expected, 1e-12, c.name);
  auto compiled = compile([f = c.f](const std::vector<Array>& in) { return f(in); });
  EXPECT_TRUE(array_equal(compiled(c.in), y).item<bool>()) << c.name;

  std::vector<Array> floating = c.in;
  auto weighted = [&](const std::vector<Array>& in) {
    std::vector<Array> all = c.in;
    for (std::size_t i = 0, k = 0; i < all.size(); ++i)
      if (is_floating(all[i].dtype())) all[i] = in[k++];
    const Array r = c.f(all);
    return sum(r * cos(reshape(arange(r.size(), float64), r.shape())));
  };
  std::erase_if(floating, [](const Array& a) { return !is_floating(a.dtype()); });
  const std::vector<Array> gradients = grad(weighted)(floating);
  for (std::size_t i = 0, k = 0; i < c.in.size(); ++i) {
    if (!is_floating(c.in[i].dtype())) continue;
    const Vec g = gradients[k++].to_vector<double>();
    for (std::size_t e = 0; e < g.size(); e += 1 + g.size() / 7) {
      auto moved = [&](double by) {
        std::vector<Array> in = c.in;
        Vec v = data[i];
        v[e] += by;
        in[i] = Array(v, c.in[i].shape());
        return total(c.f, in);
      };
      const double slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
      EXPECT_NEAR(g[e], slope, 1e-6 * (1 + std::abs(slope))) << c.name << " operand " << i << " element " << e;
    }
  }
  for (const Dtype t : {float16, bfloat16}) {
    std::vector<Array> narrow, wide;
    for (const Array& a : c.in) {
      narrow.push_back(is_floating(a.dtype()) ? astype(a, t) : a);
      wide.push_back(is_floating(a.dtype()) ? astype(narrow.back(), float64) : a);
    }
    const Array half = c.f(narrow);
    EXPECT_EQ(half.dtype(), t) << c.name;
    expect_close(half, c.f(wide).to_vector<double>(), t == float16 ? 4e-3 : 3e-2, c.name);
  }
}

// ---- references ------------------------------------------------------------------------------------------------------------------------

Vec norm_rows(const Vec& x, std::size_t n, double eps, bool center, const Vec* w, const Vec* b) {
  Vec y(x.size());
  for (std::size_t r = 0; r < x.size() / n; ++r) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < n; ++i) mean += center ? x[r * n + i] / static_cast<double>(n) : 0;
    for (std::size_t i = 0; i < n; ++i) square += std::pow(x[r * n + i] - mean, 2) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      y[r * n + i] = (x[r * n + i] - mean) / std::sqrt(square + eps) * (w ? (*w)[i] : 1) + (b ? (*b)[i] : 0);
  }
  return y;
}

Vec rope_reference(const Vec& x, std::size_t length, std::size_t features, std::size_t dims, bool neighbours, double base, double scale,
                   const Vec& offsets) {
  Vec y = x;
  const std::size_t matrices = x.size() / length / features;
  for (std::size_t m = 0; m < matrices; ++m)
    for (std::size_t p = 0; p < length; ++p)
      for (std::size_t i = 0; i < dims / 2; ++i) {
        const double offset = offsets[m * offsets.size() / matrices];
        const double angle =
            (static_cast<double>(p) + offset) * scale * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
        const std::size_t row = (m * length + p) * features, a = row + (neighbours ? 2 * i : i),
                          b = row + (neighbours ? 2 * i + 1 : i + dims / 2);
        y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
        y[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
      }
  return y;
}

// (b, h, n, d), (b, g, m, d), (b, g, m, e); added(b, h, i, j) to the scores, or nothing where it is NaN.
Vec attention_reference(const Vec& q, const Vec& k, const Vec& v, std::size_t batch, std::size_t h, std::size_t n, std::size_t d,
                        std::size_t g, std::size_t m, std::size_t e, double scale,
                        const std::function<double(std::size_t, std::size_t, std::size_t, std::size_t)>& added) {
  Vec y;
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t head = 0; head < h; ++head)
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t group = b * g + head / (h / g);
        Vec weight(m);
        double total = 0;
        for (std::size_t j = 0; j < m; ++j) {
          double dot = 0;
          for (std::size_t c = 0; c < d; ++c) dot += q[((b * h + head) * n + i) * d + c] * k[(group * m + j) * d + c];
          const double more = added(b, head, i, j);
          total += weight[j] = std::isnan(more) ? 0 : std::exp(scale * dot + more);
        }
        if (total == 0) weight.assign(m, 1), total = static_cast<double>(m);
        for (std::size_t c = 0; c < e; ++c) {
          double sum = 0;
          for (std::size_t j = 0; j < m; ++j) sum += weight[j] / total * v[(group * m + j) * e + c];
          y.push_back(sum);
        }
      }
  return y;
}

// -log softmax of each row at each class.
Vec minus_log_softmax(const Vec& x, std::size_t n) {
  Vec y;
  for (std::size_t r = 0; r < x.size() / n; ++r) {
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += std::exp(x[r * n + i]);
    for (std::size_t i = 0; i < n; ++i) y.push_back(std::log(total) - x[r * n + i]);
  }
  return y;
}

Vec each(const Vec& a, const Vec& b, const std::function<double(double, double)>& f) {
  Vec y;
  for (std::size_t i = 0; i < a.size(); ++i) y.push_back(f(a[i], b[i]));
  return y;
}
double mean_of(const Vec& v) {
  double total = 0;
  for (double x : v) total += x;
  return total / static_cast<double>(v.size());
}

TEST(Network, norms) {
  const Array x = numbers({3, 5, 7}, 1), w = numbers({7}, 2), b = numbers({7}, 3);
  const FunctionCase cases[] = {
      {"layer_norm",
       {x, w, b},
       [](const auto& in) { return layer_norm(in[0], in[1], in[2]); },
       [](const auto& in) { return norm_rows(in[0], 7, 1e-5, true, &in[1], &in[2]); }},
      {"layer_norm without weights",
       {x},
       [](const auto& in) { return layer_norm(in[0], {}, {}, 0.1); },
       [](const auto& in) { return norm_rows(in[0], 7, 0.1, true, nullptr, nullptr); }},
      {"rms_norm",
       {x, w},
       [](const auto& in) { return rms_norm(in[0], in[1]); },
       [](const auto& in) { return norm_rows(in[0], 7, 1e-5, false, &in[1], nullptr); }},
  };
  for (const FunctionCase& c : cases) check(c);
  // A mean far from zero loses no digits.
  const Array far = astype(x, float32) + 1000.f;
  EXPECT_TRUE(allclose(layer_norm(far), layer_norm(far - 1000.f), 1e-4, 1e-4).item<bool>());
}

TEST(Network, rope) {
  const Array x = numbers({2, 3, 5, 8}, 4);
  const FunctionCase cases[] = {
      {"rope",
       {x},
       [](const auto& in) { return rope(in[0], 8); },
       [](const auto& in) { return rope_reference(in[0], 5, 8, 8, false, 10000, 1, {0}); }},
      {"rope of neighbours",
       {x},
       [](const auto& in) { return rope(in[0], 8, true, 100, 0.5, 3); },
       [](const auto& in) { return rope_reference(in[0], 5, 8, 8, true, 100, 0.5, {3}); }},
      {"rope of some features",
       {x},
       [](const auto& in) { return rope(in[0], 4, true, 10000, 1, Array({2, 7})); },
       [](const auto& in) { return rope_reference(in[0], 5, 8, 4, true, 10000, 1, {2, 7}); }},
      {"rope of some halves",
       {x},
       [](const auto& in) { return rope(in[0], 6, false, 10000, 2, Array(9)); },
       [](const auto& in) { return rope_reference(in[0], 5, 8, 6, false, 10000, 2, {9}); }},
  };
  for (const FunctionCase& c : cases) check(c);
  // Positions by an offset array are those of the slice.
  EXPECT_TRUE(allclose(rope(slice(x, {0, 0, 3}, {2, 3, 5}), 8, false, 10000, 1, 3), slice(rope(x, 8), {0, 0, 3}, {2, 3, 5})).item<bool>());
}

// Queries and keys: a few, which is done at once; many, which is done by blocks, with more keys, and with fewer (then some rows see
// nothing).
TEST(Network, attention) {
  struct Sizes {
    int n, m;
  };
  for (const auto [n, m] : {Sizes{3, 6}, {70, 80}, {75, 70}, {130, 140}}) {
    const Array q = numbers({2, 4, n, 5}, 5), k = numbers({2, 2, m, 5}, 6), v = numbers({2, 2, m, 7}, 7), added = numbers({2, 1, n, m}, 8),
                row = numbers({4, 1, m}, 9);
    Array seen = random::bernoulli(0.4, {n, m}, random::key(3));
    seen = logical_or(seen, arange(m) == 1);  // each row sees a key
    const std::vector<bool> bits = seen.to_vector<bool>();
    const double none = NAN;
    const auto rows = static_cast<std::size_t>(n), keys = static_cast<std::size_t>(m);
    auto reference = [=](std::function<double(std::size_t, std::size_t, std::size_t, std::size_t)> added) {
      return [=](const std::vector<Vec>& in) { return attention_reference(in[0], in[1], in[2], 2, 4, rows, 5, 2, keys, 7, 0.4, added); };
    };
    const auto hidden = [=](std::size_t i, std::size_t j) { return j + rows <= i + keys ? 0.0 : none; };
    const Vec plus = added.to_vector<double>(), along = row.to_vector<double>();
    const FunctionCase cases[] = {
        {"attention",
         {q, k, v},
         [](const auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], 0.4); },
         reference([](auto, auto, auto, auto) { return 0.0; })},
        {"causal",
         {q, k, v},
         [](const auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], 0.4, "causal"); },
         reference([=](auto, auto, std::size_t i, std::size_t j) { return hidden(i, j); })},
        {"bool mask",
         {q, k, v},
         [seen](const auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], 0.4, seen); },
         reference([=](auto, auto, std::size_t i, std::size_t j) { return bits[i * keys + j] ? 0.0 : none; })},
        {"added mask",
         {q, k, v, added},
         [](const auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], 0.4, "array", in[3]); },
         reference([=](std::size_t b, auto, std::size_t i, std::size_t j) { return plus[(b * rows + i) * keys + j]; })},
        {"causal and a mask of one row a head",
         {q, k, v, row},
         [](const auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], 0.4, "causal", in[3]); },
         reference([=](auto, std::size_t h, std::size_t i, std::size_t j) { return along[h * keys + j] + hidden(i, j); })},
        {"causal and a mask of one column",
         {q, k, v, slice(added, {0, 0, 0, 0}, {2, 1, n, 1})},
         [](const auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], 0.4, "causal", in[3]); },
         reference([=](std::size_t b, auto, std::size_t i, std::size_t j) { return plus[(b * rows + i) * keys] + hidden(i, j); })},
    };
    for (const FunctionCase& c : cases) {
      SCOPED_TRACE(testing::Message() << n << " queries, " << m << " keys");
      check(c);
    }
    // A row that sees nothing weighs all keys alike; large scores do not overflow.
    const Array blind = scaled_dot_product_attention(q, k, v, 1, zeros({n, m}, bool_));
    EXPECT_TRUE(allclose(slice(blind, {0, 0, 0}, {1, 1, 1}), reshape(mean(slice(v, {0, 0}, {1, 1}), 2), {1, 1, 1, 7})).item<bool>());
    // With a causal mask too, whatever its block reads.
    const Array first = scaled_dot_product_attention(q, k, v, 1, "causal", arange(m) > m - n);
    EXPECT_TRUE(n > m ||
                allclose(slice(first, {0, 0, 0}, {1, 1, 1}), reshape(mean(slice(v, {0, 0}, {1, 1}), 2), {1, 1, 1, 7})).item<bool>());
    EXPECT_TRUE(all(isfinite(scaled_dot_product_attention(astype(q, float32) * 1e4, astype(k, float32) * 1e4, astype(v, float32), 1)))
                    .item<bool>());
  }
}

// Shapes alone say what is a block: neither threads nor compile() change a bit, forward and back. The scores never lie in memory.
TEST(Network, AttentionHasTheSameBitsOnAnyThreads) {
  const int before = omp_get_max_threads();
  const auto f = [](const Array& q, const Array& k, const Array& v) {
    // Heads lie within rows, as a layer has them.
    const auto heads = [](const Array& x) { return transpose(reshape(x, {2, 200, 4, 16}), {0, 2, 1, 3}); };
    return scaled_dot_product_attention(heads(q) + 1, heads(k), heads(v), 0.3, "causal");
  };
  for (const Dtype t : {float32, float64, bfloat16, float16}) {
    const Array x = astype(numbers({3, 2, 200, 64}, 11), t);
    const auto all = [f](const Array& x) {
      const auto of = [f](const Array& x) { return f(take(x, 0, 0), take(x, 1, 0), take(x, 2, 0)); };
      return std::pair(of(x), grad([of](const Array& x) { return sum(square(of(x))); })(x));
    };
    std::vector<Array> first;
    for (int n : {1, 2, 4}) {
      omp_set_num_threads(n);
      for (bool compiled : {false, true}) {
        const auto [y, dx] = compiled ? compile(all)(x) : all(x);
        if (first.empty()) first = {y, dx};
        EXPECT_TRUE(array_equal(y, first[0]).item<bool>()) << t << ", " << n << " threads, compiled " << compiled;
        EXPECT_TRUE(array_equal(dx, first[1]).item<bool>()) << t << ", " << n << " threads, compiled " << compiled;
      }
    }
  }
  omp_set_num_threads(before);
}

TEST(Network, AttentionToManyKeys) {
  const Array q = numbers({1, 2, 150, 6}, 13), k = numbers({1, 2, 2100, 6}, 14), v = numbers({1, 2, 2100, 3}, 15);
  const auto blocks = [](const Array& q, const Array& k, const Array& v) { return scaled_dot_product_attention(q, k, v, 0.3); };
  const auto whole = [](const Array& q, const Array& k, const Array& v) {
    return matmul(softmax(matmul(q, swapaxes(k, -1, -2)) * 0.3, -1), v);
  };
  EXPECT_TRUE(allclose(blocks(q, k, v), whole(q, k, v), 1e-12, 1e-12).item<bool>());
  const auto back = [&](auto f) {
    return grad<0, 1, 2>([f](const Array& q, const Array& k, const Array& v) { return sum(sin(f(q, k, v))); })(q, k, v);
  };
  const auto [dq, dk, dv] = back(blocks);
  const auto [eq, ek, ev] = back(whole);
  EXPECT_TRUE(allclose(dq, eq, 1e-11, 1e-12).item<bool>());
  EXPECT_TRUE(allclose(dk, ek, 1e-11, 1e-12).item<bool>());
  EXPECT_TRUE(allclose(dv, ev, 1e-11, 1e-12).item<bool>());
}

TEST(Network, AttentionKeepsItsScoresInACache) {
  const Array q = astype(numbers({1, 2, 1500, 8}, 12), float32);
  q.eval();
  const auto f = [](const Array& q) { return scaled_dot_product_attention(q, q, q, 0.3); };
  const auto back = grad([f](const Array& q) { return sum(f(q)); });
  const std::size_t threads = static_cast<std::size_t>(omp_get_max_threads()), size = static_cast<std::size_t>(q.nbytes());
  for (int i = 0; i < 2; ++i) {
    const std::size_t before = active_memory();
    reset_peak_memory();
    f(q).eval();
    EXPECT_LT(peak_memory() - before, size + threads * (1 << 20));
    reset_peak_memory();
    back(q).eval();
    EXPECT_LT(peak_memory() - before, 8 * size + threads * (3 << 20));  // of scores: three arrays, each for a block
  }
}

TEST(Network, cross_entropy) {
  const Array x = numbers({4, 5}, 9, 2), p = softmax(numbers({4, 5}, 10), -1), classes({0, 4, 2, 2}), w = Array(Vec{0.5, 2, 1, 3});
  const std::size_t at[] = {0, 4, 2, 2};
  using In = const std::vector<Vec>&;
  auto by_class = [&at](In in, double smoothing) {
    const Vec all = minus_log_softmax(in[0], 5);
    Vec y;
    for (std::size_t r = 0; r < 4; ++r) {
      double even = 0;
      for (std::size_t i = 0; i < 5; ++i) even += all[r * 5 + i] / 5;
      y.push_back((1 - smoothing) * all[r * 5 + at[r]] + smoothing * even);
    }
    return y;
  };
  auto by_probability = [](In in, double smoothing) {
    const Vec all = minus_log_softmax(in[0], 5);
    Vec y(4, 0);
    for (std::size_t i = 0; i < 20; ++i) y[i / 5] += (in[1][i] * (1 - smoothing) + smoothing / 5) * all[i];
    return y;
  };
  const FunctionCase cases[] = {
      {"classes", {x, classes}, [](const auto& in) { return cross_entropy(in[0], in[1]); }, [&](In in) { return by_class(in, 0); }},
      {"classes, mean",
       {x, classes},
       [](const auto& in) { return cross_entropy(in[0], in[1], Reduction::mean); },
       [&](In in) { return Vec{mean_of(by_class(in, 0))}; }},
      {"classes, smooth, sum",
       {x, classes},
       [](const auto& in) { return cross_entropy(in[0], in[1], {.label_smoothing = 0.1, .reduction = Reduction::sum}); },
       [&](In in) { return Vec{4 * mean_of(by_class(in, 0.1))}; }},
      {"weights",
       {x, classes, w},
       [](const auto& in) { return cross_entropy(in[0], in[1], {.weights = in[2], .reduction = Reduction::mean}); },
       [&](In in) { return Vec{mean_of(each(by_class(in, 0), in[2], std::multiplies<>()))}; }},
      {"ignored class",
       {x, classes},
       [](const auto& in) { return cross_entropy(in[0], in[1], {.ignore_index = 2, .reduction = Reduction::mean}); },
       [&](In in) { return Vec{(by_class(in, 0)[0] + by_class(in, 0)[1]) / 2}; }},
      {"probabilities", {x, p}, [](const auto& in) { return cross_entropy(in[0], in[1]); }, [&](In in) { return by_probability(in, 0); }},
      {"probabilities, smooth",
       {x, p},
       [](const auto& in) { return cross_entropy(in[0], in[1], {.label_smoothing = 0.3}); },
       [&](In in) { return by_probability(in, 0.3); }},
      {"nll",
       {log_softmax(x, -1), classes},
       [](const auto& in) { return nll_loss(in[0], in[1]); },
       [&](In in) { return Vec{-in[0][0], -in[0][9], -in[0][12], -in[0][17]}; }},
      {"kl",
       {log_softmax(x, -1), log(p)},
       [](const auto& in) { return kl_div_loss(in[0], in[1]); },
       [&](In in) {
         Vec y(4, 0);
         for (std::size_t i = 0; i < 20; ++i) y[i / 5] += std::exp(in[1][i]) * (in[1][i] - in[0][i]);
         return y;
       }},
  };
  for (const FunctionCase& c : cases) check(c);
  // Along another axis; negative classes from the end; an ignored class that is none; large logits keep their digits.
  EXPECT_TRUE(allclose(cross_entropy(transpose(x), classes, {.axis = 0}), cross_entropy(x, classes)).item<bool>());
  EXPECT_TRUE(array_equal(cross_entropy(x, Array({-5, -1, 2, 2}, int8)), cross_entropy(x, classes)).item<bool>());
  EXPECT_TRUE(
      array_equal(cross_entropy(x, Array({-100, 4, 2, 2}), {.ignore_index = -100}), cross_entropy(x, classes) * Array(Vec{0, 1, 1, 1}))
          .item<bool>());
  const Array big({{1000.f, 1001.f, -1000.f}});
  EXPECT_FLOAT_EQ(cross_entropy(big, Array({1})).item<float>(), std::log1p(std::exp(-1.0)));
  EXPECT_EQ(cross_entropy(Array({{0.f, INFINITY * -1}}), Array({0})).item<float>(), 0);
}

TEST(Network, losses_of_pairs) {
  const Array x = numbers({3, 4}, 11), y = numbers({3, 4}, 12), t = sigmoid(numbers({3, 4}, 13)), p = sigmoid(x);
  using In = const std::vector<Vec>&;
  auto pairs = [](const char* name, Array a, Array b, Array (*loss)(const Array&, const Array&, Reduction), double (*f)(double, double)) {
    return FunctionCase{
        name, {a, b}, [loss](const auto& in) { return loss(in[0], in[1], Reduction::none); }, [f](In in) { return each(in[0], in[1], f); }};
  };
  const FunctionCase cases[] = {
      pairs("mse", x, y, mse_loss, [](double a, double b) { return (a - b) * (a - b); }),
      pairs("l1", x, y, l1_loss, [](double a, double b) { return std::abs(a - b); }),
      pairs(
          "smooth l1", x, y, [](const Array& a, const Array& b, Reduction r) { return smooth_l1_loss(a, b, 0.7, r); },
          [](double a, double b) { return std::abs(a - b) < 0.7 ? (a - b) * (a - b) / 1.4 : std::abs(a - b) - 0.35; }),
      pairs(
          "huber", x, y, [](const Array& a, const Array& b, Reduction r) { return huber_loss(a, b, 0.7, r); },
          [](double a, double b) { return std::abs(a - b) <= 0.7 ? (a - b) * (a - b) / 2 : 0.7 * (std::abs(a - b) - 0.35); }),
      pairs(
          "bce of logits", x, t, [](const Array& a, const Array& b, Reduction r) { return binary_cross_entropy(a, b, {}, true, r); },
          [](double a, double b) { return -b * std::log(1 / (1 + std::exp(-a))) - (1 - b) * std::log(1 / (1 + std::exp(a))); }),
      pairs(
          "bce of probabilities", p, t,
          [](const Array& a, const Array& b, Reduction r) { return binary_cross_entropy(a, b, {}, false, r); },
          [](double a, double b) { return -b * std::log(a) - (1 - b) * std::log(1 - a); }),
  };
  for (const FunctionCase& c : cases) check(c);
  run({
      CASE("array(1.25, dtype=float32)", mse_loss(Array({1.f, 2.f}), Array({0.5f, 0.5f}))),
      CASE("array(1, dtype=float32)", l1_loss(Array({1.f, 2.f}), Array({0.5f, 0.5f}))),
      CASE("array(2.5, dtype=float32)", mse_loss(Array({1.f, 2.f}), Array({0.5f, 0.5f}), Reduction::sum)),
      CASE("array([0.125, 1], dtype=float32)", huber_loss(Array({1.f, 2.f}), Array({0.5f, 0.5f}))),
      CASE("array([0, 100], dtype=float32)", binary_cross_entropy(Array({1.f, 0.f}), Array({1.f, 1.f}), {}, false, Reduction::none)),
      CASE("array([0, 1000], dtype=float32)", binary_cross_entropy(Array({1000.f, -1000.f}), Array({1.f, 1.f}), {}, true, Reduction::none)),
      CASE("array(3, dtype=float32)", binary_cross_entropy(Array({0.f, -2.f}), Array({1.f, 1.f}), Array({0.f, 6 / 2.126928f}))),
  });
}

TEST(Random, draws_follow_their_distributions) {
  const Array k = random::key(3);
  const Shape many{40000};
  auto share = [](const Array& b) { return mean(b).item<float>(); };
  EXPECT_NEAR(share(random::bernoulli(0.3, many, k)), 0.3, 0.01);
  EXPECT_EQ(share(random::bernoulli(1.0, many, k)), 1);
  EXPECT_EQ(share(random::bernoulli(0.0, many, k)), 0);
  EXPECT_EQ(random::bernoulli(Array({0.1f, 0.9f}), k).shape(), (Shape{2}));
  EXPECT_EQ(random::bernoulli(0.5, {3}, k).dtype(), bool_);

  const Array i = random::randint(-3, 4, many, int32, k);
  for (int n = -3; n < 4; ++n) EXPECT_NEAR(share(i == n), 1 / 7.0, 0.01) << n;
  EXPECT_EQ(min(i).item<int>(), -3);
  EXPECT_EQ(max(i).item<int>(), 3);
  EXPECT_LT(max(random::randint(0, 1 << 30, many, int32, k)).item<int>(), 1 << 30);

  const Array n = random::truncated_normal(-1, 0.5, many, float32, k);
  EXPECT_GE(min(n).item<float>(), -1);
  EXPECT_LE(max(n).item<float>(), 0.5);
  // (density(-1) - density(0.5)) / (mass between)
  EXPECT_NEAR(mean(n).item<float>(), (0.24197072 - 0.35206533) / (0.69146246 - 0.15865525), 0.01);

  const Array g = random::gumbel(many, float32, k);
  EXPECT_NEAR(mean(g).item<float>(), 0.5772157, 0.02);
  EXPECT_NEAR(var(g).item<float>(), 1.644934, 0.05);

  const Array logits = log(Array({{0.2f, 0.5f, 0.3f}, {1.f, 0.f, 0.f}}));
  const Array c = random::categorical(logits, -1, 40000, k);
  EXPECT_EQ(c.shape(), (Shape{2, 40000}));
  EXPECT_EQ(c.dtype(), uint32);
  for (int n_ : {0, 1, 2}) {
    EXPECT_NEAR(share(take(c, 0, 0) == n_), (std::array{0.2, 0.5, 0.3}[static_cast<std::size_t>(n_)]), 0.01) << n_;
    EXPECT_EQ(share(take(c, 1, 0) == n_), n_ == 0) << n_;
  }
  EXPECT_EQ(random::categorical(broadcast_to(logits, {4, 2, 3}), 2, k).shape(), (Shape{4, 2}));
  EXPECT_EQ(random::categorical(logits, 1, 3).shape(), (Shape{2, 3}));
  EXPECT_EQ(random::categorical(transpose(logits), 0, 5, k).shape(), (Shape{2, 5}));
}

TEST(Random, permutations) {
  const Array k = random::key(1), x = reshape(arange(21), {7, 3});
  // The order of random words (MLX's definition).
  EXPECT_TRUE(array_equal(random::permutation(100, k), argsort(random::bits({100}, 4, k))).item<bool>());
  EXPECT_EQ(random::permutation(100, k).dtype(), uint32);
  EXPECT_TRUE(array_equal(sort(random::permutation(2000, k)), arange(2000)).item<bool>());
  EXPECT_FALSE(array_equal(random::permutation(100, k), random::permutation(100, random::key(2))).item<bool>());
  EXPECT_FALSE(array_equal(random::permutation(100), random::permutation(100)).item<bool>());
  EXPECT_TRUE(array_equal(random::permutation(x, k), take(x, random::permutation(7, k), 0)).item<bool>());
  EXPECT_TRUE(array_equal(random::permutation(x, -1, k), take(x, random::permutation(Dim(3), k), 1)).item<bool>());
  EXPECT_EQ(random::permutation(zeros({0, 3}), k).shape(), (Shape{0, 3}));
  EXPECT_EQ(random::permutation(0).shape(), (Shape{0}));
  // All six orders of three are equally likely; each key of a batch gives its own.
  const Array keys = random::split(k, 3000);
  const Array orders = vmap([](const Array& key) { return random::permutation(3, key); })(keys);
  const Array number = sum(orders * Array({9, 3, 1}), 1);
  for (int order : {5, 7, 11, 15, 19, 21}) EXPECT_NEAR(sum(number == order).item<int>(), 500, 90) << order;
  for (int i : {0, 2999}) EXPECT_TRUE(array_equal(take(orders, i, 0), random::permutation(3, take(keys, i, 0))).item<bool>());
  // Compiled: the bits of the plain call, and without a key new ones each time.
  auto shuffle = compile([](const Array& x, const Array& key) { return random::permutation(x, key); });
  EXPECT_TRUE(array_equal(shuffle(x, k), random::permutation(x, k)).item<bool>());
  auto fresh = compile([] { return random::permutation(50); });
  EXPECT_FALSE(array_equal(fresh(), fresh()).item<bool>());
  // What an element's gradient is does not depend on where it goes.
  const Array g = grad([&](const Array& v) { return sum(square(random::permutation(v, k))); })(astype(x, float32));
  EXPECT_TRUE(array_equal(g, 2 * x).item<bool>());
}

}  // namespace
