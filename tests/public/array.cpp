// What converts to an Array and what does not, and which overload a call takes: facts of the public headers alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "sinter/sinter.h"

namespace {

using namespace sinter;

Array twice(const Array& x) { return x * 2; }

template <class T, class... A>
constexpr bool makes = std::is_constructible_v<T, A...>;
template <class A, class B>
concept Adds = requires(A a, B b) { a + b; };
template <class T>
concept Sums = requires(Array a, T t) { sum(a, t); };

static_assert(sizeof(Array) == sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<Array> && std::is_nothrow_copy_constructible_v<Array> &&
              std::is_nothrow_move_assignable_v<Array>);
// Text, characters, pointers and nullptr are no arrays.
static_assert(!makes<Array, const char*> && !makes<Array, void*> && !makes<Array, std::nullptr_t> && !makes<Array, char> &&
              !makes<Array, std::string>);
static_assert(!makes<Array, float, float> && !makes<Array, Dtype> && !makes<Array, Shape>);
static_assert(!Adds<Array, const char*> && !Adds<Array, char> && !Adds<Array, std::nullptr_t> && Adds<Array, bool> && Adds<Dim, Array>);
// Buffers only when spelled; nothing from an Array without a call.
static_assert(!std::is_convertible_v<std::vector<double>, Array> && !std::is_convertible_v<Array, bool> &&
              !std::is_convertible_v<Array, int>);
static_assert(makes<Array, std::vector<double>> && makes<Array, std::vector<bool>> && makes<Array, std::span<const float>> &&
              makes<Array, std::vector<float>, Shape>);
static_assert(std::is_convertible_v<double, Array> && std::is_convertible_v<Dim, Array> &&
              std::is_convertible_v<std::complex<float>, Array>);
// == gives an Array, so std::find and std::equal_to do not take it.
static_assert(std::same_as<decltype(Array() == Array()), Array> && std::same_as<decltype(2 == Array()), Array> &&
              std::same_as<decltype(!Array()), Array>);
static_assert(!std::equality_comparable<Array> && !std::totally_ordered<Array>);
static_assert(std::same_as<decltype(true && Array(1.0)), bool> && std::same_as<decltype(Array() && Array()), Array>);
// sum(x, true) is not "axis 1".
static_assert(!makes<Axes, bool> && makes<Axes, int> && makes<Axes, long> && !Sums<bool> && Sums<int>);
// Nor is it anywhere else: what takes an axis takes integers alone.
template <class A>
constexpr bool kTakes[] = {requires(Array x, A a){cumsum(x, a);
}  // namespace
, requires(Array x, A a) { cumprod(x, a); }, requires(Array x, A a) { cummax(x, a); }, requires(Array x, A a) { cummin(x, a); },
    requires(Array x, A a) { logcumsumexp(x, a); }, requires(Array x, A a) { sort(x, a); }, requires(Array x, A a) { argsort(x, a); },
    requires(Array x, A a) { argmax(x, a); }, requires(Array x, A a) { argmin(x, a); }, requires(Array x, A a) { take(x, x, a); },
    requires(Array x, A a) { take_along_axis(x, x, a); }, requires(Array x, A a) { put_along_axis(x, x, x, a); },
    requires(Array x, A a) { scatter_add(x, x, x, a); }, requires(Array x, A a) { scatter_add_axis(x, x, x, a); },
    requires(Array x, A a) { concatenate({x, x}, a); }, requires(Array x, A a) { stack({x, x}, a); },
    requires(Array x, A a) { split(x, 2, a); }, requires(Array x, A a) { split(x, Shape{2}, a); },
    requires(Array x, A a) { flatten(x, a); }, requires(Array x, A a) { unflatten(x, a, Shape{2}); },
    requires(Array x, A a) { swapaxes(x, 0, a); }, requires(Array x, A a) { moveaxis(x, a, 0); }, requires(Array x, A a) { softmax(x, a); },
    requires(Array x, A a) { sum(x, {0, a}); }, requires(Array x, A a) { nll_loss(x, x, a); },
    requires(Array x, A a) { kl_div_loss(x, x, a); }, requires(Array x, A a) { random::categorical(x, a); },
    requires(Array x, A a) { random::permutation(x, a); }, requires(Array x, A a) { x.shape(a); }, requires(Array x, A a) { x.sum(a); },
    requires(Array x, A a) { x.sort(a); }, requires(Array x, A a) { x.argmax(a); }, requires(Array x, A a) { x.cumsum(a); },
    requires(Array x, A a) { x.flatten(a); }, requires(Array x, A a) { x.swapaxes(a, 0); },
    requires(Array x, A a) { vmap(twice)(x), vmap(twice, {a}); },
}
;
template <class A, bool expected>
constexpr bool kAll = std::ranges::count(kTakes<A>, expected) == std::ssize(kTakes<A>);
static_assert(kAll<int, true> && kAll<long, true> && kAll<std::size_t, true> && kAll<Axis, true>);
static_assert(kAll<bool, false> && kAll<double, false> && kAll<float, false>);
// Arithmetic on Dims is theirs, not the arrays'.
static_assert(std::same_as<decltype(Dim(2) + 1), Dim> && std::same_as<decltype(Dim(2) * 0.5), double> &&
              std::same_as<decltype(Dim(2) * Array()), Array>);

struct Derived : Array {
  using Array::Array;
};
std::string text(const Array& x) { return to_string(x); }

TEST(Public, spec_2_7_braces_and_parentheses_mean_the_same) {
  const Array a{0}, b = {0}, c(0), d{{0}}, e({0}), f({2, 3}), g({{1, 2}, {3, 4}}), h{{{1, 2}, {3, 4}}}, i({1.f, 2.f}, float16),
                    j({1, 2, 3, 4}, Shape{2, 2}), k{};
  EXPECT_TRUE(a.ndim() == 0 && b.ndim() == 0 && c.ndim() == 0 && d.ndim() == 1 && e.ndim() == 1);
  EXPECT_EQ(e.shape(), (Shape{1}));
  EXPECT_EQ(f.shape(), (Shape{2}));
  EXPECT_EQ(f.dtype(), int32);
  EXPECT_TRUE(g.shape() == Shape({2, 2}) && h.shape() == Shape({2, 2}) && j.shape() == Shape({2, 2}));
  EXPECT_EQ(i.dtype(), float16);
  EXPECT_FALSE(k.valid() || Array({}).valid());
  const std::vector<Array> two{1.0, 2.0}, one{3}, three(3);
  EXPECT_TRUE(two.size() == 2 && one.size() == 1 && three.size() == 3 && !three[0].valid());
}

TEST(Public, scalars_and_dims_are_operands) {
  const Array f({2, 3}), half({1.f, 2.f}, float16);
  const std::size_t n = 2;
  const unsigned u = 2;
  const long long ll = 2;
  const short s = 2;
  const std::int8_t i8 = 2;
  EXPECT_EQ((half * n).dtype(), float16);
  EXPECT_EQ((half * u * ll * s * i8 / n).dtype(), float16);
  EXPECT_EQ(text(twice(3.0)), "array(6, dtype=float32)");
  EXPECT_EQ(text(sum(f) / f.size()), "array(2.5, dtype=float32)");
  EXPECT_EQ(text(f.shape(0) * f), "array([4, 6], dtype=int32)");
  EXPECT_EQ(text(1.0 / sqrt(f.shape(0))), "array(0.707107, dtype=float32)");
  EXPECT_EQ(text(reshape(arange(f.shape(0) * 3), {f.shape(0), -1})), "array([[0, 1, 2],\n       [3, 4, 5]], dtype=int32)");
  EXPECT_EQ(text(maximum(0.0, half)), "array([1, 2], dtype=float16)");
  EXPECT_EQ(text(rsqrt(4) + sigmoid(0.0)), "array(1, dtype=float32)");
  static_assert(std::same_as<decltype(sqrt(2.0)), double>);  // <cmath>'s
  const Derived derived(2.0);
  EXPECT_EQ(text(derived + 1), "array(3, dtype=float32)");
  EXPECT_EQ(text(std::ref(f).get() + f), "array([4, 6], dtype=int32)");
}

TEST(Public, truth) {
  const Array f({2, 3});
  EXPECT_TRUE(Array(2) == 2 ? true : false);
  EXPECT_THROW((void)(f == f ? 1 : 0), ShapeError);
  const std::vector<Array> a{1.0}, b{1.0}, c{f}, d{f};
  EXPECT_TRUE(a == b);
  EXPECT_THROW((void)(c == d), ShapeError);
  EXPECT_EQ(text(std::accumulate(a.begin(), a.end(), Array(0.5))), "array(1.5, dtype=float32)");
  bool evaluated = false;
  if (evaluated && f > 0) FAIL();  // the builtin, which stops at false
}

TEST(Public, overloads) {
  const Array x = arange(6).reshape({2, 3});
  EXPECT_EQ(split(x, 3, 1).size(), 3u);
  EXPECT_EQ(split(x, {1}, 1).size(), 2u);  // braces are indices
  EXPECT_EQ(split(x, x.shape(0)).size(), 2u);
  EXPECT_EQ(sum(x, {}).ndim(), 0);
  EXPECT_EQ(sum(x, {0}).ndim(), 1);
  EXPECT_EQ(pad(x, 1).shape(), (Shape{4, 5}));
  EXPECT_EQ(pad(x, {1, 2}).shape(), (Shape{5, 6}));
  EXPECT_EQ(pad(x, {{1, 0}, {0, 2}}).shape(), (Shape{3, 5}));
  EXPECT_EQ(text(sinter::std(Array({1.f, 3.f}))), "array(1, dtype=float32)");
  EXPECT_EQ(text(Array({1.f, 3.f}).std()), "array(1, dtype=float32)");
  EXPECT_EQ(text(std::vector<Array>{Array(1)}[0] << 2), "array(4, dtype=int32)");
  std::ostringstream out;
  out << (1 << Array(3)) << " " << Array(1.5);
  EXPECT_EQ(out.str(), "array(8, dtype=int32) array(1.5, dtype=float32)");
}

TEST(Public, memory_is_counted_and_given_back) {
  const std::size_t before = active_memory();
  {
    const Array x = zeros({1 << 20});
    x.eval();
    EXPECT_GE(active_memory(), before + (std::size_t{4} << 20));
    EXPECT_GE(peak_memory(), active_memory());
  }
  EXPECT_EQ(active_memory(), before);
  reset_peak_memory();
  EXPECT_EQ(peak_memory(), before);
}

}  // namespace
