// What a printed line cannot show: accumulation in halves, empty arrays, NaN, weak scalars, limits of dtypes, integer rounding.
#include <cstdlib>

#include "functions/cases.h"

namespace {

std::vector<float> floats(const Array& x) { return x.to_vector<float>(); }

// What went wrong with f, if anything.
std::string tries(Array (*f)(const Array&, const Array&), const char* name, bool unary = false) {
  std::ostringstream wrong;
  const bool all = std::getenv("SINTER_TEST_ALL") != nullptr;  // each pair is a kernel
  for (int i = 0; i < kDtypeCount; i += all ? 1 : 5) {
    for (int k = i; k < kDtypeCount; k += unary ? kDtypeCount : all ? 1 : 8) {
      const Array x = astype(Array({1, 0, 1}), static_cast<Dtype>(i)), y = astype(Array({1, 1, 1}), static_cast<Dtype>(k));
      try {
        const Array r = f(x, y);
        r.eval();
        if (!(r.shape() == x.shape())) wrong << name << " gave shape " << r.shape() << "; ";
      } catch (const DtypeError&) {
      } catch (const std::exception& e) {
        wrong << e.what() << "; ";
      }
    }
  }
  return wrong.str();
}

TEST(Functions, spec_7_5_empty_arrays) {
  const Array e = zeros({0, 3}), n = zeros({2, 0});
  run({
      CASE("array(0, dtype=float32)", sum(e)),
      CASE("array([0, 0, 0], dtype=float32)", sum(e, 0)),
      CASE("array([], dtype=float32)", sum(e, 1)),
      CASE("array([[1],\n       [1]], dtype=float32)", prod(n, 1, true)),
      CASE("array([nan, nan], dtype=float32)", mean(n, 1)),
      CASE("array(nan, dtype=float32)", var(n)),
      CASE("array(true, dtype=bool)", all(e)),
      CASE("array([false, false, false], dtype=bool)", any(e, 0)),
      CASE("array([], dtype=float32)", max(e, 1)),
      CASE("array([], dtype=uint32)", argmax(n, 0)),
      CASE("array([[],\n       []], dtype=float32)", softmax(n, 0)),
      CASE("array([[0, 0],\n       [0, 0]], dtype=float32)", matmul(n, transpose(n))),
      CASE("array([[2, 2],\n       [2, 2]], dtype=float32)", addmm(Array(2.0), n, transpose(n))),
      CASE("array([[],\n       []], dtype=float32)", n + n),
      CASE("array([], dtype=float32)", take(Array({1.f}), Array(std::vector<int>{}))),
      CASE("array([1, 2], dtype=int32)", concatenate({Array(std::vector<int>{}), Array({1, 2})})),
      CASE("array([0, 0], dtype=float32)", pad(zeros({0}), 1)),
  });
  EXPECT_EQ(max(e, 1).shape(), (Shape{0}));
  EXPECT_EQ(sum(zeros({2, 0, 3}), 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(slice(arange(5), {4}, {2}).shape(), (Shape{0}));
  EXPECT_EQ(reshape(zeros({0, 3}), {-1, 3}).shape(), (Shape{0, 3}));
}

TEST(Functions, halves_accumulate_in_float32_and_round_once) {
  for (Dtype t : {float16, bfloat16}) {
    const Array many = full({10000}, 1, t), big = full({100}, 1000, t);
    EXPECT_EQ(sum(many).item<float>(), t == float16 ? 10000.f : 9984.f) << t;  // nearest bfloat16 to 10000
    EXPECT_EQ(mean(big).item<float>(), 1000.f) << t;                           // the sum is beyond float16
    EXPECT_EQ(mean(big).dtype(), t);
    EXPECT_EQ(var(big).item<float>(), 0.f) << t;
    EXPECT_EQ(softmax(big).dtype(), t);
    EXPECT_EQ(logsumexp(big).dtype(), t);
    EXPECT_NEAR(logsumexp(full({64}, 0, t)).item<float>(), std::log(64.f), 0.02f);
    const Array a = full({4, 512}, 1, t);
    EXPECT_EQ(floats(matmul(a, transpose(a))), std::vector<float>(16, 512.f)) << t;
  }
}

TEST(Functions, spec_7_4_nan_propagates) {
  const float nan = NAN;
  const Array x({1.f, nan, 3.f, nan});
  run({
      CASE("array(nan, dtype=float32)", max(x)),
      CASE("array(nan, dtype=float32)", min(x)),
      CASE("array(1, dtype=uint32)", argmax(x)),
      CASE("array(1, dtype=uint32)", argmin(x)),
      CASE("array([1, nan, 2, nan], dtype=float32)", clip(x, 0, 2)),
      CASE("array([2, nan, 3, nan], dtype=float32)", maximum(x, 2)),
      CASE("array([2, nan, 3, nan], dtype=float32)", maximum(2, x)),
      CASE("array([false, false, false, false], dtype=bool)", x == nan),
      CASE("array([true, true, true, true], dtype=bool)", x != nan),
      CASE("array(nan, dtype=float32)", logsumexp(x)),
      CASE("array(-inf, dtype=float32)", logsumexp(Array({-INFINITY, -INFINITY}))),
      CASE("array(inf, dtype=float32)", logsumexp(Array({INFINITY, 0.f}))),
      CASE("array(true, dtype=bool)", array_equal(x, x, true)),
      CASE("array(false, dtype=bool)", array_equal(x, x)),
      CASE("array(true, dtype=bool)", allclose(x, x, 1e-5, 1e-8, true)),
      CASE("array([3.40282e+38, 0, -3.40282e+38], dtype=float32)", nan_to_num(Array({INFINITY, nan, -INFINITY}))),
      CASE("array([65504, 0, -65504], dtype=float16)", nan_to_num(Array({INFINITY, nan, -INFINITY}, float16))),
  });
}

TEST(Functions, scalars_are_weak) {
  EXPECT_EQ(result_type({zeros({2}, int8), 1}), int8);
  EXPECT_EQ(result_type({zeros({2}, int8), 1.5}), float32);
  EXPECT_EQ(result_type({1, 2.5}), float32);
  EXPECT_EQ(result_type({true, 2}), int32);
  EXPECT_EQ(result_type({zeros({2}, float16), zeros({2}, bfloat16)}), float32);
  EXPECT_EQ(result_type({zeros({2}, uint64), zeros({2}, int8)}), float32);
  EXPECT_EQ(result_type({zeros({2}, uint8), zeros({2}, int8)}), int16);
  EXPECT_EQ((zeros({2}, bool_) + 1).dtype(), int32);
  EXPECT_EQ((zeros({2}, float16) * 0.1).dtype(), float16);
  EXPECT_EQ((zeros({2}, int64) * 0.1).dtype(), float32);
  EXPECT_EQ((zeros({2}, float64) * 0.1f).dtype(), float64);
  EXPECT_EQ((zeros({2}, float32) * std::complex<float>(0, 1)).dtype(), complex64);
  EXPECT_EQ((zeros({2}, float16) * Array(0.5)).dtype(), float32);  // an Array is never weak
  EXPECT_EQ((zeros({1}, float64) + 0.1).item<double>(), 0.1);
  EXPECT_EQ((zeros({1}, uint8) + 257).item<int>(), 1);
  EXPECT_EQ((zeros({1}, int64) + 9007199254740993).item<std::int64_t>(), 9007199254740993);
}

TEST(Functions, integers_round_to_multiples) {
  run({
      CASE("array([10, 20, 20, -20, -20, 100], dtype=int32)", round(Array({14, 15, 25, -15, -25, 99}), -1)),
      CASE("array([100, -100, 0], dtype=int8)", round(Array({99, -51, 50}, int8), -2)),
      CASE("array([0, 0], dtype=int8)", round(Array({99, -51}, int8), -3)),
      CASE("array([1, 2], dtype=int32)", round(Array({1, 2}), 3)),
      CASE("array([120, -260], dtype=float32)", round(Array({123.4f, -255.5f}), -1)),
  });
}

TEST(Functions, reductions_of_every_dtype) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const Dtype t = static_cast<Dtype>(i);
    const Array x = astype(Array({2, 0, 3, 3}), t);
    const bool b = t == bool_;
    EXPECT_EQ(sum(x).item<float>(), b ? 3.f : 8.f) << t;
    EXPECT_EQ(prod(x).item<float>(), 0.f) << t;
    EXPECT_EQ(prod(slice(x, {2}, {4})).item<float>(), b ? 1.f : 9.f) << t;
    EXPECT_EQ(mean(x).item<float>(), b ? 0.75f : 2.f) << t;
    EXPECT_FALSE(all(x).item<bool>()) << t;
    EXPECT_TRUE(any(x).item<bool>()) << t;
    if (is_complex(t)) continue;
    EXPECT_EQ(max(x).item<float>(), b ? 1.f : 3.f) << t;
    EXPECT_EQ(max(x).dtype(), t);
    EXPECT_EQ(min(x).item<float>(), 0.f) << t;
    EXPECT_EQ(argmax(x).item<int>(), b ? 0 : 2) << t;
    EXPECT_EQ(argmin(x, 0).item<int>(), 1) << t;
    EXPECT_EQ(var(x).item<float>(), b ? 0.1875f : 1.5f) << t;
  }
}

// Every function of the table, on every pair of dtypes, evaluates or throws DtypeError; nothing else.
TEST(Functions, every_elementwise_function_takes_or_rejects_every_dtype) {
#define OP1(Name, function, ...) ASSERT_EQ(tries([](const Array& x, const Array&) { return function(x); }, #function, true), "");
#define OP2(Name, function, ...) ASSERT_EQ(tries([](const Array& x, const Array& y) { return function(x, y); }, #function), "");
#define OP3(Name, function, ...) ASSERT_EQ(tries([](const Array& x, const Array& y) { return function(x, y, 1); }, #function), "");
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3
}

TEST(Functions, limits_of_dtypes) {
  EXPECT_EQ(finfo(float16).max, 65504);
  EXPECT_EQ(finfo(bfloat16).eps, 0.0078125);
  EXPECT_EQ(finfo(float32).max, std::numeric_limits<float>::max());
  EXPECT_EQ(finfo(float32).smallest_normal, std::numeric_limits<float>::min());
  EXPECT_EQ(finfo(float64).max, std::numeric_limits<double>::max());
  EXPECT_EQ(finfo(float64).eps, std::numeric_limits<double>::epsilon());
  EXPECT_EQ(finfo(float64).min, std::numeric_limits<double>::lowest());
  EXPECT_EQ(iinfo(int8).min, -128);
  EXPECT_EQ(iinfo(uint8).max, 255u);
  EXPECT_EQ(iinfo(int64).min, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(iinfo(uint64).max, std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(issubdtype(int8, Category::signedinteger) && issubdtype(int8, Category::integer) && issubdtype(int8, Category::number));
  EXPECT_TRUE(issubdtype(bool_, Category::generic) && !issubdtype(bool_, Category::number) && issubdtype(complex64, Category::inexact));
}

TEST(Functions, indices_clamp) {
  const Array v({10, 20, 30});
  for (Dtype t : {int8, int16, int32, int64, uint8, uint16, uint32, uint64}) {
    EXPECT_EQ(floats(take(v, Array({0, 2, 100}, t))), (std::vector<float>{10, 30, 30})) << t;
    if (is_signed(t)) {
      EXPECT_EQ(floats(take(v, Array({-1, -3, -100}, t))), (std::vector<float>{30, 10, 10})) << t;
    }
    EXPECT_EQ(floats(take_along_axis(v, Array({0, 100}, t), 0)), (std::vector<float>{10, 30})) << t;
  }
  EXPECT_EQ(floats(one_hot(Array({-1, 5, 1}), 3)), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 1, 0}));
}

TEST(Functions, products_of_every_dtype) {
  for (Dtype t : {uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64}) {
    const Array a = astype(reshape(arange(6), {2, 3}), t), b = astype(reshape(arange(12), {3, 4}), t);
    const Array ab = matmul(a, b);
    EXPECT_EQ(ab.dtype(), t);
    EXPECT_EQ(floats(ab), (std::vector<float>{20, 23, 26, 29, 56, 68, 80, 92})) << t;
    EXPECT_EQ(floats(addmm(astype(Array(1), t), a, b)), (std::vector<float>{21, 24, 27, 30, 57, 69, 81, 93})) << t;
  }
  EXPECT_EQ(matmul(zeros({2, 3}, int8), zeros({3, 2}, float16)).dtype(), float16);
}

TEST(Functions, an_argument_that_changes_nothing_is_returned) {
  const Array x = arange(6.0).reshape({2, 3});
  for (const Array& same : {reshape(x, {2, 3}), transpose(x, {0, 1}), astype(x, float32), broadcast_to(x, {2, 3}), slice(x, {0}, {2}),
                            pad(x, 0), squeeze(x), flip(x, Axes(std::vector<int>{})), concatenate({x})}) {
    EXPECT_EQ(same.get(), x.get());
  }
}

}  // namespace
