// SPEC 5: state.
#include <map>
#include <memory>
#include <unordered_map>

#include "spec/helpers.h"

namespace spec {
namespace {

float value(const Array& a) { return a.item<float>(); }

struct Counter {
  Array n{0};
  std::vector<Array> log;
  SINTER_FIELDS(n, log)
};
struct Steps {
  Array m;
  int t = 0;
  std::string phase = "warm";
  SINTER_FIELDS(m, t, phase)
};
struct Mlp {
  Array frozen{1.0}, w{2.0};
  std::map<std::string, Array> more{{"a", 3.0}, {"b", 4.0}};
  std::unordered_map<int, Array> hashed{{1, 5.0}, {2, 6.0}};
  int unlisted = 0;
  SINTER_FIELDS(frozen, w, more, hashed)
};
struct MoveOnly {
  Array n{0};
  std::vector<Array> log;
  std::unique_ptr<int> extra = std::make_unique<int>(7);
  SINTER_FIELDS(n, log)
};

TEST(spec_5_1, equals_the_regular_call_after_each_call) {
  auto body = [](Counter& c, const Array& x) {
    c.n = c.n + 1;
    if (c.log.size() > 2) c.log.clear();
    c.log.push_back(x * c.n);
    return sum(x);
  };
  auto step = compile(body);
  Counter compiled, regular;
  for (int i = 0; i < 9; ++i) {
    Array x = full({3}, static_cast<float>(i));
    EXPECT_TRUE(same(step(compiled, x), body(regular, x)));
    ASSERT_EQ(compiled.log.size(), regular.log.size()) << i;
    for (std::size_t k = 0; k < compiled.log.size(); ++k) EXPECT_TRUE(same(compiled.log[k], regular.log[k])) << i;
    EXPECT_TRUE(same(compiled.n, regular.n));
  }
  EXPECT_EQ(step.stats().traces, 4);
}

TEST(spec_5_1, grown_shrunk_emptied_reordered) {
  auto pop = compile([](std::vector<Array>& s) { s.pop_back(); });
  auto reverse = compile([](std::vector<Array>& s) { std::swap(s.front(), s.back()); });
  auto clear = compile([](std::vector<Array>& s) { s.clear(); });
  std::vector<Array> s{1.0, 2.0, 3.0};
  std::vector<const void*> ids;
  for (const Array& a : s) ids.push_back(a.get());
  reverse(s);
  EXPECT_EQ(s[0].get(), ids[2]);
  EXPECT_EQ(s[2].get(), ids[0]);
  pop(s);
  ASSERT_EQ(s.size(), 2u);
  EXPECT_EQ(s[1].get(), ids[1]);
  reverse(s);
  clear(s);
  EXPECT_TRUE(s.empty());
  clear(s);
  auto map = compile([](std::map<std::string, Array>& m, const Array& x) {
    m.erase("old");
    m["new"] = x * 2;
  });
  std::map<std::string, Array> m{{"old", 1.0}, {"stays", 2.0}};
  const void* stays = m["stays"].get();
  for (int i = 0; i < 2; ++i) {
    map(m, 3.0);
    EXPECT_TRUE(m.size() == 2 && value(m["new"]) == 6 && m["stays"].get() == stays);
  }
}

TEST(spec_5_1, unchanged_arrays_are_the_same_object) {
  Mlp mlp;
  const void* frozen = mlp.frozen.get();
  const void* a = mlp.more["a"].get();
  const void* one = mlp.hashed[1].get();
  auto step = compile([](Mlp& m, const Array& x) {
    m.w = m.w * x;
    m.more["b"] = m.more["b"] + x;
    m.hashed[2] = m.hashed[2] - x;
    m.unlisted++;
    return m.w + m.frozen;
  });
  for (int i = 1; i < 4; ++i) {
    step(mlp, 2.0);
    EXPECT_TRUE(mlp.frozen.get() == frozen && mlp.more["a"].get() == a && mlp.hashed[1].get() == one);
    EXPECT_EQ(value(mlp.w), std::pow(2.f, static_cast<float>(i + 1)));
    EXPECT_EQ(value(mlp.more["b"]), 4.f + 2.f * static_cast<float>(i));
    EXPECT_EQ(value(mlp.hashed[2]), 6.f - 2.f * static_cast<float>(i));
  }
  EXPECT_EQ(mlp.unlisted, 0) << "only listed fields are state";
  EXPECT_EQ(step.stats().traces, 1);
}

TEST(spec_5_1, shapes_may_change_between_calls) {
  auto append = compile([](Array& cache, const Array& x) { cache = concatenate({cache, x}); });
  Array cache = zeros({0});
  for (int i = 0; i < 5; ++i) append(cache, full({2}, static_cast<float>(i)));
  EXPECT_TRUE(same(cache, Array({0.f, 0.f, 1.f, 1.f, 2.f, 2.f, 3.f, 3.f, 4.f, 4.f})));
}

TEST(spec_5_1, static_values_are_written_back) {
  Steps s;
  auto tick = compile([](Steps& s, const Array& x) {
    if (++s.t == 3) s.phase = "hot";
    s.m = s.m.valid() ? s.m + x : x;
    return s.m * s.t;
  });
  for (int i = 1; i < 6; ++i) EXPECT_EQ(value(tick(s, 1.0)), static_cast<float>(i * i));
  EXPECT_EQ(s.t, 5);
  EXPECT_EQ(s.phase, "hot");
  EXPECT_EQ(tick.stats().traces, 5);
}

TEST(spec_5_1, state_that_cannot_be_copied) {
  static_assert(!std::is_copy_constructible_v<MoveOnly>);
  MoveOnly m;
  auto step = compile([](MoveOnly& m, const Array& x) {
    m.n = m.n + 1;
    m.log.push_back(x * m.n);
  });
  for (int i = 1; i < 4; ++i) {
    step(m, 2.0);
    EXPECT_EQ(m.n.item<int>(), i);
    ASSERT_EQ(m.log.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(value(m.log.back()), 2.f * static_cast<float>(i));
  }
  EXPECT_EQ(*m.extra, 7);
  auto fails = compile([](MoveOnly& m, const Array& x) {
    m.n = m.n + 1;
    m.log.clear();
    return x + ones({7});
  });
  EXPECT_NE(thrown<ShapeError>([&] { fails(m, ones({3})); }), "");
  EXPECT_EQ(m.n.item<int>(), 3);
  ASSERT_EQ(m.log.size(), 3u);
  EXPECT_EQ(value(m.log[2]), 6);
}

TEST(spec_5_2, a_call_that_throws_changes_nothing) {
  Counter c;
  c.log = {1.0, 2.0};
  const void* n = c.n.get();
  const void* first = c.log[0].get();
  auto unchanged = [&] { return c.n.get() == n && c.log.size() == 2 && c.log[0].get() == first; };
  auto wrong = compile([](Counter& c, const Array& x) {
    c.n = c.n + 100;
    c.log.clear();
    return x + ones({7});
  });
  EXPECT_NE(thrown<ShapeError>([&] { wrong(c, ones({3})); }), "");
  EXPECT_TRUE(unchanged());
  auto throws = compile([](Counter& c, const Array&) {
    c.n = c.n + 100;
    c.log.push_back(c.n);
    throw std::runtime_error("no");
  });
  EXPECT_THROW(throws(c, 1.0), std::runtime_error);
  EXPECT_TRUE(unchanged());
  auto looks = compile([](Counter& c, const Array& x) {
    c.n = c.n + 1;
    return x + c.n.item<int>();
  });
  EXPECT_NE(thrown<TraceError>([&] { looks(c, 1.0); }), "");
  EXPECT_TRUE(unchanged());
}

TEST(spec_5_2, a_run_that_fails_changes_nothing) {
  auto step = compile([](std::vector<Array>& s, const Array& x, std::int64_t n) {
    s[0] = s[0] + x;
    s.push_back(sum(broadcast_to(s[0], {n}) * 2, 0) + full({n}, 1.0));
  });
  std::vector<Array> s{1.0};
  const void* first = s[0].get();
  EXPECT_NE(thrown<OutOfMemory>([&] { step(s, 1.0, std::int64_t{1} << 50); }), "");
  EXPECT_EQ(s.size(), 1u);
  EXPECT_EQ(s[0].get(), first);
  EXPECT_EQ(value(s[0]), 1);
}

TEST(spec_5_3, one_array_in_two_places) {
  auto f = compile([](std::vector<Array>& s, const Array& x) {
    s[0] = s[0] + 1;
    s[1] = s[1] * 10;
    return x + s[0];
  });
  Array a(2.0);
  for (int i = 0; i < 2; ++i) {
    std::vector<Array> s{a, a};
    EXPECT_EQ(value(f(s, a)), 5);
    EXPECT_EQ(value(s[0]), 3);
    EXPECT_EQ(value(s[1]), 20);
    EXPECT_EQ(value(a), 2);
  }
  std::vector<Array> s{a, Array(1.0)};
  EXPECT_EQ(value(f(s, s[1])), 4 + 9) << "an argument that is a part of the state sees it change, as in a regular call";
  EXPECT_EQ(value(s[1]), 10);
  EXPECT_EQ(value(f(s, a)), 2 + 4);
}

TEST(spec_5_3, learning_rates_follow_without_a_retrace) {
  struct Sgd {
    Array lr{0.1};
    Array step{0};
    SINTER_FIELDS(lr, step)
  };
  Sgd sgd;
  Array w(1.0);
  auto train = compile([](Sgd& o, Array& w, const Array& g) {
    w = w - o.lr * g;
    o.lr = o.lr * 0.5;
    o.step = o.step + 1;
  });
  float lr = 0.1f, expected = 1;
  for (int i = 0; i < 10; ++i) {
    train(sgd, w, 1.0);
    expected -= lr;
    lr *= 0.5f;
    EXPECT_FLOAT_EQ(value(w), expected);
  }
  sgd.lr = Array(1.0);
  train(sgd, w, 1.0);
  EXPECT_FLOAT_EQ(value(w), expected - 1);
  EXPECT_EQ(sgd.step.item<int>(), 11);
  EXPECT_EQ(train.stats().traces, 1);
}

TEST(spec_5_3, one_object_twice_is_an_error) {
  auto two = compile([](Counter& a, Counter& b) { a.n = b.n + 1; }, {.name = "both"});
  auto with = compile([](Counter& a, const Counter& b) { a.n = b.n + 1; });
  auto arrays = compile([](Array& a, const Array& b) { a = a + b; });
  auto part = compile([](Counter& a, Array& b) { b = a.n; });
  auto element = compile([](std::vector<Counter>& a, Counter& b) { b.n = a[0].n; });
  Counter a, b;
  Array x(1.0);
  std::vector<Counter> list(2);
  EXPECT_TRUE(has(thrown<Error>([&] { two(a, a); }), "'both'"));
  EXPECT_NE(thrown<Error>([&] { with(a, a); }), "");
  EXPECT_NE(thrown<Error>([&] { arrays(x, x); }), "");
  EXPECT_NE(thrown<Error>([&] { part(a, a.n); }), "");
  EXPECT_NE(thrown<Error>([&] { element(list, list[1]); }), "");
  auto member = compile([](Counter& a, const std::vector<Array>& log) { a.n = a.n + static_cast<int>(log.size()); });
  EXPECT_NE(thrown<Error>([&] {
              a.log = {1.0};
              member(a, a.log);
            }),
            "");
  two(a, b);
  with(a, b);
  with(a, Counter(a));
  arrays(x, Array(x));
  element(list, a);
  EXPECT_EQ(value(x), 2);
  auto captures = compile([&a](Counter& c) { c.n = a.n; }, captured(a));
  EXPECT_NE(thrown<Error>([&] { captures(a); }), "");
  captures(b);
}

TEST(spec_5_4, state_is_updated_in_place) {
  Array s = ones({1 << 20});
  s.eval();
  const float* memory = s.data<float>();
  auto f = compile([](Array& s, const Array& x) { s = s * 2 + x; });
  f(s, 1.0);
  EXPECT_EQ(s.data<float>(), memory);
  reset_peak_memory();
  std::size_t before = active_memory();
  for (int i = 0; i < 3; ++i) f(s, 1.0);
  EXPECT_LT(peak_memory(), before + (1u << 20)) << "no second buffer";
  EXPECT_EQ(s.to_vector<float>()[77], 31);
}

TEST(spec_5_4, what_somebody_else_holds_is_not) {
  Array s = ones({1000});
  s.eval();
  Array mine = s;
  auto f = compile([](Array& s, const Array& x) { s = s * 2 + x; });
  f(s, 1.0);
  EXPECT_TRUE(same(mine, ones({1000})));
  EXPECT_TRUE(same(s, full({1000}, 3.0)));
  Array view = reshape(s, {10, 100});
  view.eval();
  f(s, 1.0);
  EXPECT_TRUE(same(view, full({10, 100}, 3.0)));
  Array lazy = s + 1;
  f(s, 1.0);
  EXPECT_TRUE(same(lazy, full({1000}, 8.0)));
  auto returns_old = compile([](Array& s) {
    Array old = s;
    s = s + 1;
    return old;
  });
  Array old = returns_old(s);
  EXPECT_TRUE(same(old, full({1000}, 15.0)));
  EXPECT_TRUE(same(s, full({1000}, 16.0)));
}

TEST(spec_5_4, captured_state_is_updated_in_place) {
  Array s = ones({1 << 16});
  s.eval();
  auto f = compile([&s] { s = s + 1; }, captured(s));
  f();
  const float* memory = s.data<float>();
  f();
  EXPECT_EQ(s.data<float>(), memory);
  EXPECT_EQ(s.to_vector<float>()[5], 3);
}

}  // namespace
}  // namespace spec
