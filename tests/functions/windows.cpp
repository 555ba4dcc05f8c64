// Convolutions and pooling against loops in double precision, with their gradients, in every dtype; compiled, batched, on any threads.
#include <omp.h>

#include <complex>
#include <cstring>
#include <limits>

#include "functions/cases.h"

namespace {

using Numbers = std::vector<double>;
using Sizes = std::array<std::int64_t, 3>;

// Three spatial axes; those before the last `axes` are 1.
struct Geometry {
  int axes;
  std::int64_t batch, in, out;
  Sizes size, kernel, stride, padding, dilation;
  std::int64_t groups;
  Sizes places() const {
    Sizes p;
    for (std::size_t i = 0; i < 3; ++i) p[i] = (size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
    return p;
  }
  Shape shape(std::int64_t first, const Sizes& s, std::int64_t last) const {
    Shape r{first};
    for (auto i = static_cast<std::size_t>(3 - axes); i < 3; ++i) r.push_back(s[i]);
    r.push_back(last);
    return r;
  }
  Shape input() const { return shape(batch, size, in); }
  Shape weight() const { return shape(out, kernel, in / groups); }
  Shape output() const { return shape(batch, places(), out); }
  Array operator()(const Array& x, const Array& w) const {
    auto at = [](const Sizes& s, std::size_t i) { return static_cast<int>(s[i]); };
    const int g = static_cast<int>(groups);
    if (axes == 1) return conv1d(x, w, at(stride, 2), at(padding, 2), at(dilation, 2), g);
    if (axes == 2) {
      auto two = [&](const Sizes& s) { return PerAxis<2>(at(s, 1), at(s, 2)); };
      return conv2d(x, w, two(stride), two(padding), two(dilation), g);
    }
    auto all = [&](const Sizes& s) { return PerAxis<3>(at(s, 0), at(s, 1), at(s, 2)); };
    return conv3d(x, w, all(stride), all(padding), all(dilation), g);
  }
  friend std::ostream& operator<<(std::ostream& s, const Geometry& g) {
    return s << g.input() << " with " << g.weight() << " to " << g.output() << " in " << g.groups << " groups";
  }
};

// Calls f(input, weight, output) with the positions of each term of the sum over input * weight * output.
template <class F>
void for_each_term(const Geometry& c, F f) {
  const Sizes y = c.places();
  const std::int64_t part_in = c.in / c.groups, part_out = c.out / c.groups;
  std::int64_t to = 0;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t a = 0; a < y[0]; ++a)
      for (std::int64_t b = 0; b < y[1]; ++b)
        for (std::int64_t d = 0; d < y[2]; ++d)
          for (std::int64_t o = 0; o < c.out; ++o, ++to) {
            std::int64_t weight = o * c.kernel[0] * c.kernel[1] * c.kernel[2] * part_in;
            for (std::int64_t i = 0; i < c.kernel[0]; ++i)
              for (std::int64_t j = 0; j < c.kernel[1]; ++j)
                for (std::int64_t k = 0; k < c.kernel[2]; ++k)
                  for (std::int64_t channel = 0; channel < part_in; ++channel, ++weight) {
                    const std::int64_t p = a * c.stride[0] + i * c.dilation[0] - c.padding[0],
                                       q = b * c.stride[1] + j * c.dilation[1] - c.padding[1],
                                       r = d * c.stride[2] + k * c.dilation[2] - c.padding[2];
                    if (p < 0 || q < 0 || r < 0 || p >= c.size[0] || q >= c.size[1] || r >= c.size[2]) continue;
                    const std::int64_t from = ((n * c.size[0] + p) * c.size[1] + q) * c.size[2] + r;
                    f(static_cast<std::size_t>(from * c.in + o / part_out * part_in + channel), static_cast<std::size_t>(weight),
                      static_cast<std::size_t>(to));
                  }
          }
}

struct Reference {
  Numbers values, sizes;  // and sums of absolute terms, for the error
  std::size_t terms = 0;
};
// Which of input (0), weight (1) and output (2), of the two others.
Reference reference(const Geometry& c, int which, const Numbers (&v)[3]) {
  const Shape shapes[] = {c.input(), c.weight(), c.output()};
  const auto n = static_cast<std::size_t>(static_cast<std::int64_t>(shapes[which].product()));
  Reference r{Numbers(n), Numbers(n), 0};
  std::vector<std::size_t> counts(n);
  for_each_term(c, [&](std::size_t x, std::size_t w, std::size_t y) {
    const double term = which == 0 ? v[1][w] * v[2][y] : which == 1 ? v[0][x] * v[2][y] : v[0][x] * v[1][w];
    const std::size_t at = which == 0 ? x : which == 1 ? w : y;
    r.values[at] += term;
    r.sizes[at] += std::abs(term);
    r.terms = std::max(r.terms, ++counts[at]);
  });
  return r;
}

Array draw(const Shape& s, Dtype t, std::uint64_t seed) { return astype(random::normal(s, float32, 0, 1, random::key(seed)), t); }
Numbers numbers(const Array& x) { return astype(x, float64).to_vector<double>(); }

// Each partial sum is rounded in float32 or wider, the result once more in its dtype.
void expect_near(const Array& got, const Reference& want, Dtype t, const char* what) {
  const double step = t == float64 ? 0x1p-53 : 0x1p-24, last = finfo(t).eps / 2;
  const Numbers values = numbers(got);
  ASSERT_EQ(values.size(), want.values.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double bound = step * static_cast<double>(want.terms + 1) * want.sizes[i] + 1.01 * last * std::abs(want.values[i]) + 0x1p-24;
    ASSERT_NEAR(values[i], want.values[i], bound) << what << " at " << i;
  }
}

const Sizes kOne{1, 1, 1}, kNone{0, 0, 0};
std::vector<Geometry> geometries() {
  return {
      {2, 2, 3, 4, {1, 6, 7}, {1, 3, 3}, kOne, {0, 1, 1}, kOne, 1},
      {2, 5, 1, 17, {1, 9, 8}, {1, 5, 5}, kOne, {0, 2, 2}, kOne, 1},
      {2, 2, 8, 6, {1, 7, 9}, {1, 3, 2}, {1, 2, 3}, {0, 1, 0}, kOne, 1},
      {2, 3, 5, 7, {1, 8, 6}, {1, 3, 2}, {1, 2, 1}, {0, 2, 3}, {1, 2, 3}, 1},
      {2, 2, 6, 9, {1, 5, 5}, {1, 3, 3}, kOne, {0, 1, 1}, kOne, 3},
      {2, 2, 16, 16, {1, 6, 6}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, kOne, 16},
      {2, 3, 4, 8, {1, 5, 4}, {1, 2, 2}, kOne, {0, 0, 1}, {1, 2, 1}, 4},
      {2, 3, 33, 20, {1, 4, 4}, kOne, kOne, kNone, kOne, 1},
      {2, 2, 4, 3, {1, 5, 7}, kOne, {1, 2, 3}, kNone, kOne, 1},  // elements that nobody sees
      {2, 1, 1, 1, kOne, kOne, kOne, kNone, kOne, 1},
      {2, 1, 2, 3, kOne, {1, 3, 3}, kOne, {0, 1, 1}, kOne, 1},
      {2, 2, 2, 2, {1, 3, 3}, {1, 3, 3}, kOne, {0, 4, 5}, kOne, 1},  // windows that see padding alone
      {2, 2, 3, 2, {1, 4, 4}, {1, 2, 2}, {1, 5, 5}, kNone, kOne, 1},
      {2, 0, 3, 4, {1, 5, 5}, {1, 3, 3}, kOne, kNone, kOne, 1},
      {2, 2, 0, 4, {1, 5, 5}, {1, 3, 3}, kOne, kNone, kOne, 1},
      {2, 2, 3, 0, {1, 5, 5}, {1, 3, 3}, kOne, kNone, kOne, 1},
      {2, 67, 16, 16, {1, 12, 12}, {1, 3, 3}, kOne, {0, 1, 1}, kOne, 1},  // several chunks, the last one smaller
      {2, 1, 32, 32, {1, 33, 31}, {1, 3, 3}, kOne, {0, 1, 1}, kOne, 1},   // few examples, which are cut into bands of rows
      {2, 3, 32, 48, {1, 50, 40}, {1, 5, 3}, {1, 2, 1}, {0, 5, 1}, {1, 2, 1}, 2},
      {3, 2, 8, 16, {12, 16, 16}, {3, 3, 3}, kOne, {0, 1, 1}, kOne, 1},
      {1, 3, 4, 5, {1, 1, 12}, {1, 1, 4}, {1, 1, 2}, {0, 0, 3}, {1, 1, 2}, 1},
      {1, 2, 4, 6, {1, 1, 9}, {1, 1, 3}, kOne, {0, 0, 1}, kOne, 2},
      {3, 2, 3, 4, {4, 5, 3}, {2, 3, 2}, {2, 1, 1}, {1, 0, 1}, {1, 2, 1}, 1},
  };
}

TEST(Convolution, ValuesAndGradients) {
  for (Dtype t : {float32, float64, float16, bfloat16})
    for (const Geometry& c : geometries()) {
      if (t != float32 && c.output().product() * c.weight().product() > 2e6 * static_cast<double>(c.out)) continue;
      SCOPED_TRACE(testing::Message() << t << " " << c);
      const Array x = draw(c.input(), t, 1), w = draw(c.weight(), t, 2), g = draw(c.output(), t, 3);
      const Numbers all[] = {numbers(x), numbers(w), numbers(g)};
      const auto f = [c, g](const Array& x, const Array& w) { return sum(g * c(x, w)); };
      const Array y = c(x, w);
      ASSERT_EQ(y.shape(), c.output());
      ASSERT_EQ(y.dtype(), t);
      expect_near(y, reference(c, 2, all), t, "output");
      const auto [dx, dw] = grad<0, 1>(f)(x, w);
      expect_near(dx, reference(c, 0, all), t, "gradient of input");
      expect_near(dw, reference(c, 1, all), t, "gradient of weight");
      const auto [cx, cw] = compile(grad<0, 1>(f))(x, w);
      EXPECT_TRUE(array_equal(compile(c)(x, w), y).item<bool>());
      EXPECT_TRUE(array_equal(cx, dx).item<bool>() && array_equal(cw, dw).item<bool>());
    }
}

// Operands that lie in memory in other ways give the same bits, in regular and compiled calls.
TEST(Convolution, Layouts) {
  for (Dtype t : {float32, float64}) {
    const Array x = draw({3, 6, 5, 4}, t, 1), w = draw({8, 3, 3, 4}, t, 2);
    const auto f = [](const Array& x, const Array& w) { return conv2d(relu(flip(x, 1)), 2 * w, 1, 1); };
    const Array y = f(x, w);
    const Array channels_first = transpose(transpose(x, {0, 3, 1, 2}).eval(), {0, 2, 3, 1}), across = transpose(transpose(w).eval());
    for (const Array& other : {channels_first, flip(flip(x, 2).eval(), 2)}) {
      EXPECT_TRUE(array_equal(f(other, across), y).item<bool>());
      EXPECT_TRUE(array_equal(compile(f)(other, across), y).item<bool>());
    }
    const auto g = [](const Array& x, const Array& w) { return conv2d(transpose(x, {0, 2, 1, 3}), broadcast_to(w, {8, 3, 3, 4}), 2); };
    const Array one = slice(w, {0, 0, 0, 0}, {1, 3, 3, 4});
    EXPECT_TRUE(array_equal(compile(g)(x, one), g(x, one)).item<bool>());
  }
}

TEST(Convolution, Dtypes) {
  const Array x = reshape(arange(16), {1, 4, 4, 1}), w = ones({1, 2, 2, 1}, int8);
  EXPECT_EQ(to_string(reshape(conv2d(x, w, 2), {4})), "array([10, 18, 42, 50], dtype=float32)");
  EXPECT_EQ(conv2d(astype(x, float16), astype(w, float64)).dtype(), float64);
  EXPECT_EQ(conv2d(astype(x, float16), astype(w, bfloat16)).dtype(), float32);
  // (1 + i) x times (2 - i) w = (3 + i) x w; the gradient has the conjugate of the other.
  const Array z = x * Array(std::complex<float>(1, 1)), v = w * Array(std::complex<float>(2, -1)), y = conv2d(x, w, 1, 1);
  EXPECT_TRUE(allclose(conv2d(z, v, 1, 1), y * Array(std::complex<float>(3, 1))).item<bool>());
  const auto f = [&](const Array& z) { return sum(real(conv2d(z, v, 1, 1))); };
  const auto g = [&](const Array& x) { return sum(conv2d(x, w, 1, 1)); };
  EXPECT_TRUE(allclose(grad(f)(z), grad(g)(astype(x, float32)) * Array(std::complex<float>(2, 1))).item<bool>());
}

// vmap is a loop, whichever operand has a batch, for the function and its gradients.
TEST(Convolution, Batches) {
  for (int groups : {1, 2}) {
    const Array xs = draw({3, 2, 5, 4, 4}, float64, 1), ws = draw({3, 6, 2, 3, 4 / groups}, float64, 2);
    const auto f = [groups](const Array& x, const Array& w) { return conv2d(x, w, {2, 1}, 1, 1, groups); };
    const auto by = [f](int which) {
      return [f, which](const Array& x, const Array& w) {
        const auto [dx, dw] = grad<0, 1>([f](const Array& x, const Array& w) { return sum(square(f(x, w))); })(x, w);
        return which == 0 ? f(x, w) : which == 1 ? dx : dw;
      };
    };
    for (int which : {0, 1, 2})
      for (auto [of_x, of_w] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
        const auto at = [](int i) { return std::optional<int>(i); };
        const Array x = of_x ? xs : take(xs, 0, 0), w = of_w ? ws : take(ws, 0, 0);
        const Array got = vmap(by(which), {of_x ? at(0) : std::nullopt, of_w ? at(0) : std::nullopt})(x, w);
        for (int i = 0; i < 3; ++i) {
          const Array one = by(which)(of_x ? take(xs, i, 0) : x, of_w ? take(ws, i, 0) : w);
          EXPECT_TRUE(allclose(take(got, i, 0), one, 1e-10, 1e-10).item<bool>())
              << groups << " " << which << " " << of_x << of_w << " " << i;
        }
      }
  }
}

// The batch, or an example, is cut by shapes alone: no number of threads changes a bit.
TEST(Convolution, SameBitsOnAnyThreads) {
  const int before = omp_get_max_threads();
  for (Dtype t : {float32, bfloat16})
    for (const Shape& shape : {Shape{37, 14, 14, 8}, Shape{1, 57, 40, 16}}) {
      const Array x = draw(shape, t, 1), w = draw({40, 3, 3, shape.back()}, t, 2);
      const auto f = [](const Array& x, const Array& w) { return sum(square(conv2d(x, w, 1, 1))); };
      const auto all = [f](const Array& x, const Array& w) {
        const auto [dx, dw] = grad<0, 1>(f)(x, w);
        return std::vector<Array>{conv2d(x, w, 1, 1), dx, dw};
      };
      std::vector<Array> first;
      for (int n : {1, 2, 3, 5}) {
        omp_set_num_threads(n);
        for (bool compiled : {false, true}) {
          const std::vector<Array> got = compiled ? compile(all)(x, w) : all(x, w);
          for (const Array& a : got) a.eval();
          if (first.empty()) first = got;
          for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(array_equal(got[i], first[i]).item<bool>()) << t << " " << n << " " << i;
        }
      }
    }
  omp_set_num_threads(before);
}

struct Pool {
  std::array<int, 2> kernel, stride, padding;
};
const Pool kPools[] = {{{2, 2}, {2, 2}, {0, 0}}, {{3, 2}, {3, 2}, {1, 1}}, {{3, 3}, {2, 2}, {1, 1}}, {{2, 3}, {1, 1}, {0, 0}},
                       {{1, 1}, {1, 1}, {0, 0}}, {{1, 2}, {3, 2}, {0, 1}}, {{5, 7}, {5, 7}, {0, 0}}};

TEST(Pooling, ValuesAndGradients) {
  for (Dtype t : {float32, float64, float16, int32})
    for (const Shape& s : {Shape{2, 5, 7, 3}, Shape{0, 5, 7, 3}, Shape{2, 9, 8, 0}, Shape{1, 6, 8, 1}})
      for (const Pool& p : kPools) {
        // Few different numbers, so that there are ties.
        const Array x = astype(round(3 * random::normal(s, float32, 0, 1, random::key(5))), t);
        SCOPED_TRACE(testing::Message() << t << " " << s << " kernel " << p.kernel[0] << "," << p.kernel[1] << " stride " << p.stride[0]);
        const auto largest = [&](const Array& x) {
          return max_pool2d(x, {p.kernel[0], p.kernel[1]}, {p.stride[0], p.stride[1]}, {p.padding[0], p.padding[1]});
        };
        const auto average = [&](const Array& x) {
          return avg_pool2d(x, {p.kernel[0], p.kernel[1]}, {p.stride[0], p.stride[1]}, {p.padding[0], p.padding[1]});
        };
        const Array y = largest(x), m = average(x);
        const Numbers from = numbers(x);
        Numbers greatest, means, of_greatest(from.size()), of_means(from.size());
        const std::int64_t rows = (s[1] + 2 * p.padding[0] - p.kernel[0]) / p.stride[0] + 1,
                           columns = (s[2] + 2 * p.padding[1] - p.kernel[1]) / p.stride[1] + 1;
        const double count = p.kernel[0] * p.kernel[1];
        for (std::int64_t n = 0; n < s[0]; ++n)
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
              for (std::int64_t c = 0; c < s[3]; ++c) {
                std::vector<std::size_t> seen;
                for (std::int64_t k = 0; k < p.kernel[0]; ++k)
                  for (std::int64_t l = 0; l < p.kernel[1]; ++l) {
                    const std::int64_t a = i * p.stride[0] + k - p.padding[0], b = j * p.stride[1] + l - p.padding[1];
                    if (a >= 0 && b >= 0 && a < s[1] && b < s[2])
                      seen.push_back(static_cast<std::size_t>(((n * s[1] + a) * s[2] + b) * s[3] + c));
                  }
                double best = -INFINITY, total = 0, ties = 0;
                for (std::size_t at : seen) best = std::max(best, from[at]), total += from[at];
                for (std::size_t at : seen) ties += from[at] == best;
                for (std::size_t at : seen) of_greatest[at] += (from[at] == best) * best / ties, of_means[at] += total / count / count;
                greatest.push_back(best), means.push_back(total / count);
              }
        ASSERT_EQ(y.shape(), (Shape{s[0], rows, columns, s[3]}));
        EXPECT_EQ(y.dtype(), t);
        EXPECT_EQ(numbers(y), greatest);
        const auto near = [&](const Array& got, const Numbers& want) {
          const Numbers values = numbers(got);
          ASSERT_EQ(values.size(), want.size());
          for (std::size_t i = 0; i < want.size(); ++i)
            ASSERT_NEAR(values[i], want[i], 8 * finfo(got.dtype()).eps * (1 + std::abs(want[i]))) << i;
        };
        near(m, means);
        EXPECT_TRUE(array_equal(compile(largest)(x), y).item<bool>() && array_equal(compile(average)(x), m).item<bool>());
        if (t != float32 && t != float64) continue;
        const auto half = [](auto f) { return grad([f](const Array& x) { return sum(square(f(x))) / 2; }); };
        near(half(largest)(x), of_greatest);
        near(half(average)(x), of_means);
        EXPECT_TRUE(array_equal(compile(half(largest))(x), half(largest)(x)).item<bool>());
        const Array pair = stack({x, x + 1});
        EXPECT_TRUE(array_equal(vmap(largest)(pair), stack({y, largest(x + 1)})).item<bool>());
        EXPECT_TRUE(allclose(vmap(half(largest))(pair), stack({half(largest)(x), half(largest)(x + 1)})).item<bool>());
      }
}

TEST(Pooling, PaddingIsNeverTheGreatest) {
  EXPECT_EQ(to_string(reshape(max_pool2d(full({1, 1, 2, 1}, -5, int8), {1, 2}, 1, {0, 1}), {3})), "array([-5, -5, -5], dtype=int8)");
  EXPECT_EQ(to_string(reshape(max_pool2d(reshape(Array({-1.f, -2.f, NAN, 3.f}), {1, 2, 2, 1}), 2), {1})), "array([nan], dtype=float32)");
}

// The sizes of an array as numbers for each axis: over all of it, of whatever size.
TEST(Pooling, OfSizesThatAreRead) {
  auto all = [](const Array& x) { return max_pool2d(x, {x.shape(1), x.shape(2)}) + avg_pool2d(x, x.shape(1), {x.shape(1), x.shape(1)}); };
  auto shapeless = compile(all, true);
  for (int n : {4, 2, 1, 5}) {
    const Array x = sin(arange(n * n * 6, float32)).reshape({2, n, n, 3});
    const Array expected = max(x, {1, 2}, true) + mean(x, {1, 2}, true);
    for (const Array& y : {all(x), shapeless(x)}) EXPECT_TRUE(allclose(y, expected, 1e-5, 1e-6).item<bool>()) << n;
  }
}

}  // namespace
