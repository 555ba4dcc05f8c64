// argsort x dtypes x axes x layouts x lengths: each way to run it gives the positions of the reference, which sorts by element, then place.
#include <algorithm>
#include <cmath>

#include "graph/build.h"
#include "table/table.h"

namespace sinter::tests {
namespace {

// 200 elements and more go digit by digit.
constexpr std::int64_t kLengths[] = {0, 1, 2, 33, 199, 200, 1601, 5000};

// Of numbers with zeros of both signs, NaN and infinities, `of` of them different.
Array numbers(Dtype t, const Shape& shape, int of) {
  const Array draws = random::randint(0, of, shape, int32, random::key(static_cast<std::uint64_t>(of)));
  const Array centered = astype(draws - of / 2, float64) / (is_floating(t) ? 3 : 1);
  const Array signed_zeros = where(draws % 2 == 0, centered, -centered);
  return astype(is_floating(t) ? where(draws % 7 == 0, NAN, where(draws == 1, -INFINITY, signed_zeros)) : centered, t);
}

std::string check(Dtype t, const Shape& shape, std::int64_t axis, int layout, std::uint32_t seed) {
  Graph g;
  const graph::Id x = g.add({Op::Input, {}, {0}, {t, shape}});
  const graph::Id again = graph::elementwise(g, Op::Maximum, {x, x});
  const graph::Id order = g.add({Op::ArgSort, {x}, {axis}, {Dtype::uint32, shape}});
  const graph::Id of_computed = g.add({Op::ArgSort, {again}, {axis}, {Dtype::uint32, shape}});
  g.set_outputs({graph::elementwise(g, Op::Add, {order, of_computed}), g.add({Op::TakeAlong, {x, order}, {axis}, {t, shape}})});
  graph::Strides strides = graph::row_major(shape);
  for (Dim& s : strides) s *= layout == 1 ? -2 : 1;
  if (layout == 2) std::reverse(strides.begin(), strides.end());
  const std::vector<Input> in{operand(t, shape, strides, seed, -3, 3, true)};
  const std::string d = disagreement(g, in, {.unfused = seed % 3 == 0});
  return d.empty() ? d : str("argsort of ", t, shape, " along ", axis, " layout ", layout, ": ", d);
}

TEST(Table, SortingInEveryLayout) {
  std::vector<std::function<std::string()>> jobs;
  std::uint32_t seed = 0;
  for (int d = 0; d < kDtypeCount; ++d) {
    const Dtype t = static_cast<Dtype>(d);
    if (is_complex(t)) continue;
    for (std::int64_t axis : {0, 1, 2})
      for (int layout : {0, 1}) jobs.push_back([=, s = ++seed] { return check(t, {3, 5, 34}, axis, layout, s); });
    jobs.push_back([=, s = ++seed] { return check(t, {40, 40}, 0, 2, s); });
    for (std::int64_t n : kLengths) jobs.push_back([=, s = ++seed] { return check(t, {2, n}, 1, 1, s) + check(t, {n, 2}, 0, 0, s); });
  }
  run_jobs(std::move(jobs));
}

TEST(Table, SortingIsStable) {
  for (int d = 0; d < kDtypeCount; ++d) {
    const Dtype t = static_cast<Dtype>(d);
    if (is_complex(t)) continue;
    for (std::int64_t n : kLengths)
      for (int of : {2, 100}) {
        const Array x = numbers(t, {n}, of);
        const std::vector<double> v = x.to_vector<double>();
        std::vector<std::uint32_t> expected(v.size());
        for (std::size_t i = 0; i < v.size(); ++i) expected[i] = static_cast<std::uint32_t>(i);
        const auto before = [&](std::uint32_t a, std::uint32_t b) { return std::isnan(v[b]) ? !std::isnan(v[a]) : v[a] < v[b]; };
        std::ranges::sort(expected, [&](std::uint32_t a, std::uint32_t b) { return before(a, b) || (a < b && !before(b, a)); });
        EXPECT_EQ(argsort(x).to_vector<std::uint32_t>(), expected) << t << " of " << n;
        EXPECT_TRUE(array_equal(sort(x, 0), n == 0 ? x : take(x, Array(expected)), true).item<bool>()) << t << " of " << n;
      }
  }
}

// Each word of a narrow dtype, each class of a wide one.
TEST(Table, SortingOrdersEveryNumber) {
  std::vector<std::uint64_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i;
  for (Dtype t : {float16, bfloat16, int16, uint16}) {
    const std::vector<Tensor> every{graph::from_words(t, {65536}, words)};
    const std::vector<double> v = sort(place(every)[0]).to_vector<double>();
    for (std::size_t i = 1; i < v.size(); ++i)
      ASSERT_TRUE(v[i - 1] <= v[i] || std::isnan(v[i])) << t << ": " << v[i - 1] << " before " << v[i];
  }
  EXPECT_EQ(argsort(Array(std::vector<double>{INFINITY, 1e-320, 0.0, -0.0, -INFINITY, -1e-320, NAN, 1e308})).to_vector<int>(),
            (std::vector{4, 5, 2, 3, 1, 7, 0, 6}));
  EXPECT_EQ(
      argsort(Array(std::vector<std::int64_t>{5, std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 40, -1})).to_vector<int>(),
      (std::vector{1, 3, 0, 2}));
  EXPECT_EQ(argsort(Array(std::vector<std::uint64_t>{~std::uint64_t{0}, 1, std::uint64_t{1} << 63})).to_vector<int>(),
            (std::vector{1, 2, 0}));
}

}  // namespace
}  // namespace sinter::tests
