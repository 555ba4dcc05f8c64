// Attention of any number of queries and keys: one trace, and the bits of the regular call, however they are divided into blocks.
#include <gtest/gtest.h>

#include <functional>

#include "sinter/sinter.h"
#include "support/quiet.h"

namespace sinter {
namespace {

using Arrays = std::vector<Array>;

struct Case {
  const char* name;
  int heads = 2;  // of queries, which share one of keys if there are more
  const char* mode = "";
  int mask = 0;  // 0: none; 1: a row for each query; 2: one row; 3: as 1, of numbers, whose gradient is wanted too
  Dtype dtype = float32;
  bool gradient = false, batched = false;
};
const Case kCases[] = {
    {"plain"},
    {"causal", 2, "causal"},
    {"mask", 2, "", 1},
    {"mask_of_keys", 2, "", 2},
    {"causal_and_mask", 2, "causal", 1},
    {"shared_keys", 6, "causal"},
    {"half", 2, "causal", 0, float16},
    {"gradient", 2, "", 0, float32, true},
    {"gradient_causal", 2, "causal", 1, float32, true},
    {"gradient_of_mask", 2, "causal", 3, float32, true},
    {"gradient_shared_keys", 6, "causal", 0, float32, true},
    {"gradient_half", 2, "causal", 0, bfloat16, true},
    {"batched", 2, "causal", 0, float32, true, true},
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Array numbers(const Shape& shape, Dtype t, double from) {
  return sin(arange(shape.product(), float64) * 0.7 + from).astype(t).reshape(shape);
}

Array attention(const Case& c, const Arrays& x) {
  std::optional<Array> mask;
  if (c.mask != 0) mask = x[3];
  return scaled_dot_product_attention(x[0], x[1], x[2], 0.3, c.mode, mask);
}
// The whole scores at once.
Array written_out(const Case& c, const Arrays& x) {
  const int n = x[0].shape(2), m = x[1].shape(2), shared = c.heads / 2;
  const Array q = reshape(x[0], {2, 2, shared, n, 8}), k = reshape(x[1], {2, 2, 1, m, 8}), v = reshape(x[2], {2, 2, 1, m, 6});
  Array scores = reshape(matmul(q, swapaxes(k, -1, -2)) * 0.3, {2, c.heads, n, m});
  const double never = finfo(float32).min;
  if (c.mask != 0) scores = x[3].dtype() == bool_ ? where(x[3], scores, never) : scores + x[3];
  if (*c.mode) scores = where(arange(m) <= expand_dims(arange(m - n, m), 1), scores, never);
  return reshape(matmul(reshape(softmax(scores, -1), {2, 2, shared, n, m}), v), {2, c.heads, n, 6});
}
Arrays result(const Case& c, const Arrays& x) {
  if (!c.gradient) return {attention(c, x)};
  auto loss = [&c](const Arrays& y) { return sum(square(attention(c, y).astype(float32))); };
  if (c.batched)
    return {vmap([&](const Array& s) { return grad(loss)(Arrays{x[0] * s, x[1], x[2]})[1]; })(Array({0.5f, 2.0f}).astype(c.dtype))};
  return grad([&](const Arrays& y) {
    Arrays all = y;
    all.insert(all.end(), x.begin() + static_cast<std::ptrdiff_t>(y.size()), x.end());
    return loss(all);
  })(Arrays(x.begin(), x.begin() + (c.mask == 3 ? 4 : 3)));
}

class Attention : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Attention, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST_P(Attention, IsTracedOnce) {
  const Case& c = GetParam();
  const tests::Quiet quiet;
  auto compiled = compile([&c](const Arrays& x) { return result(c, x); }, true);
  for (auto [n, m] :
       {std::pair(70, 90), {5, 8},     {5, 600},   {63, 64},   {64, 64},   {65, 65},     {65, 700},  {97, 50},     {128, 128}, {129, 300},
        {200, 20},         {257, 257}, {300, 640}, {513, 513}, {700, 700}, {1030, 1030}, {90, 2500}, {1100, 2500}, {1500, 90}, {70, 91}}) {
    Arrays x{numbers({2, c.heads, n, 8}, c.dtype, 0), numbers({2, 2, m, 8}, c.dtype, 1), numbers({2, 2, m, 6}, c.dtype, 2)};
    if (c.mask == 1) x.push_back(logical_and(numbers({2, 1, n, m}, float32, 3) > -0.8, expand_dims(arange(n) % 50 != 3, 1)));
    if (c.mask == 3) x.push_back(numbers({2, 1, n, m}, float32, 3));
    if (c.mask == 2) x.push_back(numbers({m}, float32, 3));
    const Arrays expected = result(c, x), got = compiled(x);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(array_equal(got[i], expected[i], true).item<bool>()) << "result " << i << " of " << n << " queries, " << m << " keys";
    const bool plain = !c.gradient && c.dtype == float32;
    ASSERT_TRUE(!plain || allclose(got[0], written_out(c, x), 1e-4, 1e-4).item<bool>()) << n << " queries, " << m << " keys";
  }
  EXPECT_EQ(compiled.stats().traces, 1) << compiled.explain();
}

}  // namespace
}  // namespace sinter
