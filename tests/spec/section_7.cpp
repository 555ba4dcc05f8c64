// SPEC 7.7 to 7.9 and 8, as far as they concern compile.
#include "spec/helpers.h"

namespace spec {
namespace {

float value(const Array& a) { return a.item<float>(); }

TEST(spec_7_7, an_input_returned_is_the_same_array) {
  auto f = compile([](const Array& x, const std::vector<Array>& v) { return std::tuple{x, v, x + 1}; });
  Array x(1.0), y(2.0);
  for (int i = 0; i < 2; ++i) {
    auto [a, b, c] = f(x, {y, x});
    EXPECT_EQ(a.get(), x.get());
    EXPECT_EQ(b[0].get(), y.get());
    EXPECT_EQ(b[1].get(), x.get());
    EXPECT_EQ(value(c), 2);
  }
}

TEST(spec_7_7, outputs_never_share_memory_with_a_later_update) {
  auto f = compile([](Array& s) {
    Array old = s;
    s = s + 1;
    return std::pair{old, s};
  });
  Array s = zeros({64});
  s.eval();
  std::vector<Array> olds, news;
  for (int i = 0; i < 5; ++i) {
    auto [old, now] = f(s);
    olds.push_back(old);
    news.push_back(now);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(same(olds[i], full({64}, static_cast<float>(i))));
    EXPECT_TRUE(same(news[i], full({64}, static_cast<float>(i + 1))));
  }
}

TEST(spec_7_7, one_value_returned_twice_is_one_array) {
  auto f = compile([](const Array& x) {
    Array y = x + 1;
    return std::pair{y, y};
  });
  for (int i = 0; i < 2; ++i) {
    auto [a, b] = f(1.0);
    EXPECT_EQ(a.get(), b.get());
  }
}

TEST(spec_7_8, what_the_regular_call_rejects) {
  struct Case {
    Array (*f)(const Array&, const Array&);
    Array good_x, good_y, bad_x, bad_y;
  };
  const Case cases[] = {
      {[](const Array& x, const Array& y) { return x + y; }, ones({2}), ones({2}), ones({2}), ones({3})},
      {[](const Array& x, const Array& y) { return matmul(x, y); }, ones({2, 3}), ones({3, 2}), ones({2, 3}), ones({4, 2})},
      {[](const Array& x, const Array& y) { return x & y; }, ones({2}, int32), ones({2}, int32), ones({2}), ones({2})},
      {[](const Array& x, const Array&) { return reshape(x, {5, -1}); }, ones({10}), ones({1}), ones({7}), ones({1})},
      {[](const Array& x, const Array&) { return sum(x, 1); }, ones({2, 3}), ones({1}), ones({2}), ones({1})},
      {[](const Array& x, const Array& y) { return concatenate({x, y}, 1); }, ones({2, 3}), ones({2, 1}), ones({2, 3}), ones({3, 1})},
  };
  for (const Case& c : cases) {
    auto f = compile(c.f);
    std::string regular = thrown<Error>([&] { c.f(c.bad_x, c.bad_y).eval(); });
    ASSERT_NE(regular, "");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(thrown<Error>([&] { f(c.bad_x, c.bad_y); }), regular);
      EXPECT_TRUE(same(f(c.good_x, c.good_y), c.f(c.good_x, c.good_y)));
    }
  }
}

TEST(spec_7_9, a_compiled_call_evaluates_what_it_needs) {
  Array lazy = exp(zeros({3})) + 1;
  auto f = compile([](const Array& x) { return x * 2; });
  EXPECT_TRUE(same(f(lazy), full({3}, 4.0)));
  EXPECT_TRUE(same(f(transpose(lazy + 1)), full({3}, 6.0)));
}

TEST(spec_7_9, arguments_passed_by_value_may_be_donated) {
  auto f = compile([](Array x) { return x * 2 + 1; });
  Array x = ones({1 << 16});
  x.eval();
  Array kept = x;
  EXPECT_TRUE(same(f(kept), full({1 << 16}, 3.0)));
  EXPECT_TRUE(same(x, ones({1 << 16}))) << "the caller's array is not touched";
  kept = Array();
  const float* memory = x.data<float>();
  Array y = f(std::move(x));
  EXPECT_EQ(y.data<float>(), memory);
  EXPECT_EQ(y.to_vector<float>()[9], 3);
}

TEST(spec_7_9, what_a_view_shows_is_not_donated) {
  auto span = compile([](std::span<const Array> v) { return v[0] * 2 + 1; });
  auto operand = compile([](Operand x) { return add(multiply(x, 2), 1); });
  std::vector<Array> v{ones({4096})};
  v[0].eval();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(same(span(v), full({4096}, 3.0)));
    EXPECT_TRUE(same(operand(v[0]), full({4096}, 3.0)));
    EXPECT_TRUE(same(v[0], ones({4096})));
  }
  EXPECT_EQ(operand(2.0).item<float>(), 5);
}

TEST(spec_8, texts_name_the_operation_the_values_and_what_to_do) {
  auto f = compile([](const Array& x) { return x + ones({3}); });
  std::string e = thrown<ShapeError>([&] { f(ones({2})); });
  EXPECT_TRUE(e.starts_with("add: ") && has(e, "; got ")) << e;
  static_assert(std::derived_from<TraceError, Error> && std::derived_from<CaptureError, Error> && !std::derived_from<InternalError, Error>);
}

}  // namespace
}  // namespace spec
