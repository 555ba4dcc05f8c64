// Array itself: construction, facts, looking at elements. What must not compile is in tests/public/array.cpp.
#include "engine/value.h"
#include "functions/cases.h"

namespace {

TEST(Array, construction) {
  const float raw[] = {1, 2, 3};
  run({
      CASE("array(1, dtype=float32)", 1.0),
      CASE("array(1, dtype=float64)", 1.0, float64),
      CASE("array(5000000000, dtype=int64)", 5'000'000'000),
      CASE("array(7, dtype=uint8)", std::uint8_t{7}),
      CASE("array(5, dtype=int32)", Dim(5)),
      CASE("array(5000000000, dtype=int64)", Dim(5'000'000'000)),
      CASE("array(1+2j, dtype=complex64)", std::complex<float>(1, 2)),
      CASE("array(1.5, dtype=float16)", Float16{0x3e00}),
      CASE("array(1.5, dtype=bfloat16)", BFloat16{0x3fc0}),
      CASE("array(255, dtype=uint8)", -1, uint8),
      CASE("array(255, dtype=uint8)", 1e9, uint8),  // float to integer saturates
      CASE("array(2, dtype=int8)", 2.9, int8),
      CASE("array(true, dtype=bool)", 0.1, bool_),
      CASE("array([1, 2], dtype=float32)", {1.0, 2.0}),
      CASE("array([[1, 2],\n       [3, 4]], dtype=int32)", {{1, 2}, {3, 4}}),
      CASE("array([[[1],\n        [2]]], dtype=int64)", {{{1L}, {2L}}}),
      CASE("array([[[[1]]]], dtype=float16)", {{{{1}}}}, float16),
      CASE("array([true, false], dtype=bool)", {true, false}),
      CASE("array([[1, 2],\n       [3, 4]], dtype=uint8)", {1, 2, 3, 4}, Shape{2, 2}, uint8),
      CASE("array([1, 2, 3], dtype=float32)", raw),
      CASE("array([1, 2], dtype=float64)", std::vector<double>{1, 2}),
      CASE("array([1, 2], dtype=uint8)", std::vector<std::uint8_t>{1, 2}),
      CASE("array([1, 2], dtype=float32)", std::vector<double>{1, 2}, float32),
      CASE("array([[true, false]], dtype=bool)", std::vector<bool>{true, false}, Shape{1, 2}),
      CASE("array([[1, 2, 3]], dtype=float32)", std::span(raw), Shape{1, 3}),
      CASE("array([2, 3], dtype=int64)", std::vector<long long>{2, 3}),
  });
}

TEST(Array, foreign_memory_is_used_and_given_back) {
  int deleted = 0;
  float memory[6] = {1, 2, 3, 4, 5, 6};
  {
    Array x(memory, Shape{2, 3}, [&](float* p) { deleted += p == memory; });
    EXPECT_EQ(x.data<float>(), memory);
    EXPECT_EQ(to_string(x + 1), "array([[2, 3, 4],\n       [5, 6, 7]], dtype=float32)");
    const Array row = slice(x, {1}, {2});
    x = Array();
    EXPECT_EQ(to_string(row), "array([[4, 5, 6]], dtype=float32)");
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(memory[0], 1.f);
}

TEST(Array, bytes_of_foreign_bools_are_true_when_not_zero) {
  std::uint8_t bytes[4] = {0, 1, 2, 255};
  const Array x(reinterpret_cast<bool*>(bytes), Shape{4}, [](bool*) {});
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(sum(x).item<int>(), 3);
  EXPECT_EQ(to_string(x), "array([false, true, true, true], dtype=bool)");
}

TEST(Array, facts) {
  const Array x = zeros({2, 3}, float64);
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.shape(-1), 3);
  EXPECT_EQ(x.ndim(), 2);
  EXPECT_EQ(x.size(), 6);
  EXPECT_EQ(x.nbytes(), 48);
  EXPECT_EQ(Array(1).size(), 1);
  EXPECT_FALSE(Array().valid());
}

TEST(Array, elements_convert) {
  const Array x({-1.5f, 300.f, NAN, 1e20f});
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{-1, 300, 0, 2147483647}));
  EXPECT_EQ(x.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 255, 0, 255}));
  EXPECT_EQ(x.to_vector<bool>(), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(Array(300).item<std::int8_t>(), 44);
  EXPECT_EQ(Array(2.5).item<std::complex<float>>(), std::complex<float>(2.5f));
  EXPECT_EQ(Array(1.5).item<Float16>().bits, 0x3e00);
  EXPECT_EQ(Array({{7}}).item<double>(), 7.0);
  EXPECT_TRUE(static_cast<bool>(Array(0.5)) && !static_cast<bool>(Array(0)) && static_cast<bool>(Array(std::complex<float>(0, 1))));
  EXPECT_EQ((zeros({0})).to_vector<int>(), std::vector<int>());
}

TEST(Array, data_is_row_major_and_stays) {
  const Array x = arange(6).reshape({2, 3}), t = transpose(x);
  const std::int32_t* p = t.data<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(p, p + 6), (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(t.data<std::int32_t>(), p);
  EXPECT_EQ(Array(t).data<std::int32_t>(), p);
  const Array tail = slice(arange(10), {4}, {7});
  EXPECT_EQ(std::vector<int>(tail.data<int>(), tail.data<int>() + 3), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(flip(arange(3)).data<int>()[0], 2);
  EXPECT_EQ(broadcast_to(Array(7), {3}).data<int>()[2], 7);
}

TEST(Array, layouts_give_equal_values) {
  const Array x = reshape(arange(24.0), {2, 3, 4});
  const Array views[] = {transpose(x), flip(x, 1), slice(x, {0, 0, 3}, {2, 3, -5}, {1, 2, -1}), as_strided(x, {3, 3}, {2, 1}),
                         broadcast_to(Array({1.f, 2.f}), {3, 2})};
  for (const Array& v : views) {
    const Array copy(v.to_vector<float>(), v.shape());
    EXPECT_TRUE(array_equal(exp(v) + v, exp(copy) + copy).item<bool>());
    EXPECT_EQ(sum(v, 0).to_vector<float>(), sum(copy, 0).to_vector<float>());
    EXPECT_EQ(reshape(v, {-1}).to_vector<float>(), copy.to_vector<float>());
  }
}

TEST(Array, operators) {
  Array x({5, -5});
  x += 2;
  x *= x;
  x -= Array(1);
  x %= 10;
  EXPECT_EQ(to_string(x), "array([8, 8], dtype=int32)");
  x /= 4;
  EXPECT_EQ(to_string(x), "array([2, 2], dtype=float32)");
  Array bits({6, 3});
  bits &= 5;
  bits |= 8;
  bits ^= 1;
  bits <<= 2;
  bits >>= 1;
  EXPECT_EQ(to_string(bits), "array([26, 16], dtype=int32)");
  EXPECT_EQ(to_string(2 - Array({1, 2})), "array([1, 0], dtype=int32)");
  EXPECT_EQ(to_string(1 << Array({1, 2})), "array([2, 4], dtype=int32)");
  EXPECT_EQ(to_string(!Array({0, 2})), "array([true, false], dtype=bool)");
  EXPECT_EQ(to_string(Array({7, -7}) % Array({-4, 4})), "array([-1, 1], dtype=int32)");
  EXPECT_EQ(to_string(Array({1, 2}) >= 2 || Array({true, false})), "array([true, true], dtype=bool)");
}

TEST(Array, moved_from_and_assigned) {
  Array a(1.0), b = std::move(a);
  EXPECT_TRUE(!a.valid() && b.valid());
  Array& alias = b;
  b = alias;
  EXPECT_EQ(b.item<float>(), 1.f);
  a = b;
  EXPECT_EQ(a.get(), b.get());
}

TEST(Arrays, EvalOfTrees) {
  const std::pair<Array, std::vector<Array>> tree{ones({3}) * 2, {ones({2}) + 1}};
  const Array other = tree.first + 1;
  eval(tree, other);
  for (const Array& a : {tree.first, tree.second[0], other}) EXPECT_EQ(a.get()->state.load(), detail::State::ready);
}

}  // namespace
