// Attention that is written out: by blocks, with the bits of the regular call, at any number of threads; or the reason why not.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "backends/target.h"
#include "engine/value.h"
#include "sinter/sinter.h"

namespace {

using namespace sinter;
using Arrays = std::vector<Array>;

Array numbers(const Shape& shape, std::uint32_t seed) {
  std::vector<float> v(static_cast<std::size_t>(static_cast<std::int64_t>(shape.product())));
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<std::int32_t>(seed) >> 8) / (1 << 23);
  }
  return Array(v, shape);
}
Arrays inputs(std::initializer_list<Shape> shapes) {
  Arrays in;
  for (const Shape& s : shapes) in.push_back(numbers(s, 17 * static_cast<std::uint32_t>(in.size() + 1)));
  return in;
}

Array own_softmax(const Array& s) {
  const Array e = exp(s - max(s, -1, true));
  return e / sum(e, -1, true);
}
Array weights(const Array& q, const Array& k) { return matmul(q, swapaxes(k, -1, -2)) * (1 / std::sqrt(8.0)); }
Array lower(const Array& s) { return where(expand_dims(arange(s.shape(-2)), 1) >= expand_dims(arange(s.shape(-1)), 0), s, -1e30); }
Array heads_apart(const Array& x, int heads) { return swapaxes(reshape(x, {x.shape(0), x.shape(1), heads, x.shape(2) / heads}), 1, 2); }

using Function = Arrays (*)(const Arrays&);
Arrays plain(const Arrays& in) { return {matmul(softmax(weights(in[0], in[1]), -1), in[2])}; }
Arrays causal(const Arrays& in) { return {matmul(own_softmax(lower(weights(in[0], in[1]))), in[2])}; }
Arrays biased(const Arrays& in) { return {matmul(softmax(weights(in[0], in[1]) + in[3], -1), in[2])}; }
Arrays capped(const Arrays& in) { return {matmul(own_softmax(tanh(weights(in[0] * 0.5, in[1])) * 5), in[2])}; }
Arrays divided_behind(const Arrays& in) {
  const Array e = exp(weights(in[0], in[1]));
  return {matmul(e, in[2]) / sum(e, -1, true)};
}
Arrays with_totals(const Arrays& in) {
  const Array s = weights(in[0], in[1]);
  return {matmul(softmax(s, -1), in[2]), logsumexp(s, -1)};
}
template <Dtype t>
Arrays in_dtype(const Arrays& in) {
  return {plain({in[0].astype(t), in[1].astype(t), in[2].astype(t)})[0].astype(Dtype::float32)};
}
// Keys and values of one head for several of queries.
Arrays grouped(const Arrays& in) {
  const Array k = expand_dims(in[1], 2), v = expand_dims(in[2], 2);
  return {matmul(softmax(weights(in[0], k), -1), v)};
}
Arrays projected(const Arrays& in) {
  const Array q = heads_apart(matmul(in[0], in[1]), 4), k = heads_apart(matmul(in[0], in[2]), 4), v = heads_apart(in[0], 4);
  return {reshape(swapaxes(matmul(softmax(lower(weights(q, k)), -1), v), 1, 2), in[0].shape())};
}
Arrays two_layers(const Arrays& in) { return projected({projected(in)[0], in[1], in[2]}); }

// The loss is not linear in the result, and has all results in it.
template <Function f>
Arrays gradient(const Arrays& in) {
  return grad([](const Arrays& a) {
    Array total = 0.0f;
    for (const Array& y : f(a)) total = total + sum(square(y));
    return total;
  })(in);
}
template <Function f>
Arrays linear_gradient(const Arrays& in) {
  return grad([](const Arrays& a) { return sum(f(a)[0]); })(in);
}

struct Case {
  const char* name;
  Function f;
  std::vector<Shape> shapes;
  const char* explained;  // in explain(), where a library's rows have the bits of the whole
};
const std::vector<Shape> kFour{{2, 3, 257, 8}, {2, 3, 200, 8}, {2, 3, 200, 6}}, kLong{{1, 2, 300, 8}, {1, 2, 1001, 8}, {1, 2, 1001, 8}};
const Case kCases[] = {
    {"plain", plain, kFour, "6 blocks of 257 rows"},
    {"long", plain, kLong, "6 blocks of 100 rows"},
    {"three axes", plain, {{3, 300, 8}, {3, 300, 8}, {3, 300, 8}}, "3 blocks of 300 rows"},
    {"two axes", plain, {{700, 8}, {701, 8}, {701, 8}}, "4 blocks of 175 rows"},
    {"causal", causal, {{2, 3, 257, 8}, {2, 3, 257, 8}, {2, 3, 257, 8}}, "6 blocks of 257 rows"},
    {"causal long", causal, {{2, 700, 8}, {2, 700, 8}, {2, 700, 8}}, "8 blocks of 175 rows"},
    {"bias of heads", biased, {{2, 3, 257, 8}, {2, 3, 200, 8}, {2, 3, 200, 6}, {3, 257, 200}}, "6 blocks of 257 rows"},
    {"bias of keys", biased, {{2, 3, 257, 8}, {2, 3, 200, 8}, {2, 3, 200, 6}, {2, 1, 1, 200}}, "6 blocks of 257 rows"},
    // As many queries as keys: sizes do not tell one from the other.
    {"bias of keys, square", biased, {{3, 300, 8}, {3, 300, 8}, {3, 300, 8}, {300}}, "3 blocks of 300 rows"},
    {"bias of keys of matrices, square", biased, {{3, 300, 8}, {3, 300, 8}, {3, 300, 8}, {3, 1, 300}}, "3 blocks of 300 rows"},
    {"bias of queries, square", biased, {{3, 300, 8}, {3, 300, 8}, {3, 300, 8}, {300, 1}}, "3 blocks of 300 rows"},
    {"bias as many as matrices", biased, {{300, 300, 8}, {300, 300, 8}, {300, 300, 8}, {300, 300}}, "300 blocks of 300 rows"},
    {"bias of a matrix", biased, {{1024, 32}, {1024, 32}, {1024, 32}, {1024}}, ""},
    {"bias of one matrix", biased, {{1, 1024, 32}, {1, 1024, 32}, {1, 1024, 32}, {1, 1024}}, ""},
    {"gradient with a bias of one matrix", linear_gradient<biased>, {{3, 300, 8}, {3, 300, 8}, {3, 300, 8}, {1, 300}}, ""},
    {"capped", capped, kFour, "6 blocks of 257 rows"},
    {"divided behind", divided_behind, kFour, "6 blocks of 257 rows"},
    {"totals", with_totals, kLong, "6 blocks of 100 rows"},
    {"grouped", grouped, {{2, 2, 3, 150, 8}, {2, 2, 160, 8}, {2, 2, 160, 8}}, "12 blocks of 150 rows"},
    {"projected", projected, {{2, 260, 32}, {32, 32}, {32, 32}}, "8 blocks of 260 rows"},
    {"two layers", two_layers, {{2, 260, 32}, {32, 32}, {32, 32}}, "8 blocks of 260 rows"},
    {"gradient", gradient<plain>, kFour, "6 blocks of 257 rows, then 6 blocks of 257 rows"},
    {"gradient of one matrix", gradient<plain>, {{700, 8}, {701, 8}, {701, 8}}, "there are too few matrices"},
    {"gradient causal", gradient<causal>, {{6, 400, 8}, {6, 400, 8}, {6, 400, 8}}, "12 blocks of 200 rows, then 6 blocks of 400 rows"},
    {"linear gradient", linear_gradient<plain>, kFour, "6 blocks of 257 rows"},
    {"gradient divided behind", gradient<divided_behind>, kFour, "6 blocks of 257 rows, then 6 blocks of 257 rows"},
    {"gradient with totals", gradient<with_totals>, kFour, "6 blocks of 257 rows, then 6 blocks of 257 rows"},
    {"gradient grouped", gradient<grouped>, {{2, 2, 3, 150, 8}, {2, 2, 160, 8}, {2, 2, 160, 8}}, "then 12 blocks of 150 rows"},
    {"gradient projected", gradient<projected>, {{2, 260, 32}, {32, 32}, {32, 32}}, "then 8 blocks of 260 rows"},
    {"gradient of two layers", gradient<two_layers>, {{2, 260, 32}, {32, 32}, {32, 32}}, "then 8 blocks of 260 rows"},
    {"gradient of a bias", gradient<biased>, {{2, 3, 257, 8}, {2, 3, 200, 8}, {2, 3, 200, 6}, {3, 257, 200}}, "sum reads them"},
    // One batch: heads are read where they lie, between each other, for which the library has another order of sums.
    {"with gaps", projected, {{1, 1024, 32}, {32, 32}, {32, 32}}, "other bits than the whole"},
    {"float16", in_dtype<Dtype::float16>, kFour, "6 blocks of 257 rows"},
    {"bfloat16", in_dtype<Dtype::bfloat16>, kFour, ""},
    {"float64", in_dtype<Dtype::float64>, kFour, ""},
    {"few", plain, {{2, 40, 8}, {2, 40, 8}, {2, 40, 8}}, "they fit in a cache"},
};

std::vector<char> bytes(const Array& a) {
  const std::vector<float> v = a.to_vector<float>();
  std::vector<char> b(v.size() * sizeof(float));
  std::memcpy(b.data(), v.data(), b.size());
  return b;
}
void expect_equal(const Arrays& a, const Arrays& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bytes(a[i]) == bytes(b[i])) << what << ", result " << i;
}

TEST(WrittenAttention, HasTheBitsOfTheRegularCall) {
  const int before = omp_get_max_threads();
  for (const Case& c : kCases)
    for (int threads : {1, 2, 4}) {
      omp_set_num_threads(threads);
      engine::release_plans();  // like f, they hold products of the library, which remember the number of threads
      Arrays in;
      for (const Shape& s : c.shapes) in.push_back(numbers(s, 17 * static_cast<std::uint32_t>(in.size() + 1)));
      const auto f = compile(c.f);
      expect_equal(f(in), c.f(in), std::string(c.name).append(", threads: ").append(std::to_string(threads)));
      if (backends::host_target().avx512 && threads < 4) {
        EXPECT_NE(f.explain().find(c.explained), std::string::npos) << c.name << "\n" << f.explain();
      }
      f.clear();
    }
  omp_set_num_threads(before);
}

// Inputs whose layout no pass knows, and sizes that change.
TEST(WrittenAttention, OtherInputs) {
  const auto f = compile(plain);
  const Arrays in = inputs({{1, 600, 3, 8}, {1, 600, 3, 8}, {1, 600, 3, 8}});
  Arrays across;
  for (const Array& a : in) {
    across.push_back(swapaxes(a, 1, 2));
    across.back().eval();
  }
  expect_equal(f(across), plain(across), "across");
  EXPECT_NE(f.explain().find("an input is not row-major"), std::string::npos) << f.explain();
  const auto traces = f.stats().traces;
  for (int n : {300, 310, 320, 330, 340}) {
    const Arrays one = inputs({{2, n, 8}, {2, n, 8}, {2, n, 8}});
    expect_equal(f(one), plain(one), "changing");
  }
  EXPECT_LE(f.stats().traces - traces, 3);
}

// Under fast_math gradients of keys and values are sums over blocks.
TEST(WrittenAttention, FastMath) {
  const Arrays in = inputs({{700, 8}, {701, 8}, {701, 8}});
  const auto f = compile(gradient<plain>, {.fast_math = true});
  const Arrays made = f(in), expected = gradient<plain>(in);
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_TRUE(allclose(made[i], expected[i], 1e-4, 1e-5)) << i;
  EXPECT_NE(f.explain().find("then 4 blocks of 175 rows"), std::string::npos) << f.explain();
}

// Half a matrix of scores a thread, and no more.
TEST(WrittenAttention, Memory) {
  if (!backends::host_target().avx512) GTEST_SKIP() << "rows of products have other bits here";
  const Arrays in = inputs({{2, 8, 512, 16}, {2, 8, 512, 16}, {2, 8, 512, 16}});
  const std::size_t operand = 2 * 8 * 512 * 16 * 4, block = 131072 * 4, scores = 2 * 8 * 512 * 512 * 4;
  const auto threads = static_cast<std::size_t>(omp_get_max_threads());
  const auto peak = [&](auto&& f) {
    const auto run = [&] {
      for (const Array& y : f(in)) y.eval();
    };
    run();
    const std::size_t before = active_memory();
    reset_peak_memory();
    run();
    return peak_memory() - before;
  };
  EXPECT_LT(peak(compile(plain)), operand + threads * 3 * block);
  EXPECT_GT(peak(plain), scores);
  const auto f = compile(gradient<plain>);
  EXPECT_LT(peak(f), 6 * operand + threads * 8 * 512 * 512 * 4);
  EXPECT_GT(peak(gradient<plain>), 3 * scores);
}

}  // namespace
