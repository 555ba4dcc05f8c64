// SPEC 1: the programs that must work as they are written there.
#include "base/knobs.h"
#include "spec/helpers.h"

namespace spec {
namespace {

auto fun = [](const Array& x, const Array& y) { return exp(-x) + y; };

TEST(spec_1_1, basic_use) {
  Array x(1.0), y(2.0);
  EXPECT_EQ(text(fun(x, y)), "array(2.36788, dtype=float32)");
  auto compiled = compile(fun);
  EXPECT_EQ(text(compiled(x, y)), "array(2.36788, dtype=float32)");
}

TEST(spec_1_2, compile_once) {
  Array x(1.0), y(2.0);
  auto once = [](const Array& x, const Array& y) { return exp(-x) * 3 + y; };
  auto compiled = compile(once);
  compiled(x, y);
  compiled(x, y);
  compile(once)(x, y);
  EXPECT_EQ(compiled.stats().traces, 1);
  EXPECT_EQ(compiled.stats().entries, 1);
  EXPECT_EQ(compiled.stats().calls, 3);
  EXPECT_EQ(compiled.stats().hits, 2);
  EXPECT_EQ(compiled.stats().kernels, 1);
  for (int i = 0; i < 10; ++i) compile(once)(x, y);
  EXPECT_EQ(compiled.stats().traces, 1);
  EXPECT_EQ(compiled.stats().kernels, 1);
}

TEST(spec_1_3, recompile_on_shape_dtype_and_number) {
  auto f = compile([](const std::vector<Array>& v, int k) {
    Array r = v[0] * k;
    for (std::size_t i = 1; i < v.size(); ++i) r = r - v[i];
    return r;
  });
  int traces = 0;
  auto call = [&](const std::vector<Array>& v, int k, bool new_trace) {
    f(v, k);
    EXPECT_EQ(f.stats().traces, traces += new_trace) << v[0].shape();
  };
  call({ones({32, 784})}, 2, true);
  call({zeros({32, 784})}, 2, false);
  std::int64_t kernels = f.stats().kernels;
  call({ones({16, 784})}, 2, true);
  EXPECT_TRUE(has(f.explain(), "input 0[0]: float32[32,784] -> float32[16,784]")) << f.explain();
  EXPECT_EQ(f.stats().kernels, kernels) << "a new shape generates no code";
  call({ones({16 * 784})}, 2, true);
  call({ones({16, 784}, int32)}, 2, true);
  EXPECT_TRUE(has(f.explain(), " -> int32[16,784]")) << f.explain();
  EXPECT_GT(f.stats().kernels, kernels) << "a new dtype does";
  call({ones({16, 784}), ones({16, 784})}, 2, true);
  EXPECT_TRUE(has(f.explain(), "1 element -> 2 elements")) << f.explain();
  call({ones({16, 784}), ones({16, 784})}, 3, true);
  EXPECT_TRUE(has(f.explain(), "input 1: 2 -> 3")) << f.explain();
  call({ones({32, 784})}, 2, false);
}

TEST(spec_1_3, guard_text) {
  auto f = compile([](const Array& x) { return x + 1; });
  f(ones({32, 784}));
  f(ones({16, 784}));
  EXPECT_TRUE(has(f.explain(), "input 0: float32[32,784] -> float32[16,784]")) << f.explain();
}

TEST(spec_1_3, compile_mode_is_part_of_the_key) {
  EnabledScope scope;
  auto f = compile([](const Array& x) { return x * 1 + 5; });
  Array x({1.f, 2.f});
  f(x);
  for (CompileMode mode : {CompileMode::no_simplify, CompileMode::no_fuse}) {
    set_compile_mode(mode);
    EXPECT_EQ(compile_mode(), mode);
    EXPECT_TRUE(same(f(x), Array({6.f, 7.f})));
  }
  EXPECT_EQ(f.stats().traces, 3);
  EXPECT_TRUE(has(f.explain(), "compile mode: no_simplify -> no_fuse")) << f.explain();
  set_compile_mode(CompileMode::enabled);
  f(x);
  EXPECT_EQ(f.stats().traces, 3);
}

TEST(spec_1_4, impure_use_is_an_error) {
  Array k(2.0);
  std::vector<Array> leaked;
  auto reference = compile([&k](const Array& x) { return x * k; });
  EXPECT_NE(thrown<CaptureError>([&] { reference(1.0); }), "");
  auto leaks = compile([&leaked](const Array& x) {
    leaked.push_back(x + 1);
    return x;
  });
  leaks(1.0);
  EXPECT_NE(thrown<TraceError>([&] { leaked.at(0).item<float>(); }), "");
  auto value = compile([k](const Array& x) { return x * k; });
  EXPECT_EQ(value(3.0).item<float>(), 6);
}

TEST(spec_1_5, state) {
  std::vector<Array> state;
  auto fun = [](std::vector<Array>& state, const Array& x, const Array& y) {
    Array z = x + y;
    state.push_back(z);
    return exp(z);
  };
  Array x(1.0), y(2.0);
  auto compiled = compile_with_state(fun);
  Array r = compiled(state, x, y);
  EXPECT_EQ(text(r), "array(20.0855, dtype=float32)");
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(text(state[0]), "array(3, dtype=float32)");
  std::int64_t kernels = compiled.stats().kernels;
  for (std::size_t n = 2; n < 6; ++n) {
    compiled(state, x, y);
    ASSERT_EQ(state.size(), n);
    for (const Array& a : state) EXPECT_EQ(a.item<float>(), 3);
  }
  EXPECT_EQ(compiled.stats().kernels, kernels) << "a grown container retraces with the same kernels";
}

TEST(spec_1_6, clear_cache_drops_entries_everywhere) {
  auto plain = compile([](const Array& x) { return x + 11; });
  Array k(3.0);
  auto capturing = compile([k](const Array& x) { return x + k; });
  plain(1.0);
  capturing(1.0);
  clear_cache();
  for (const Stats& s : {plain.stats(), capturing.stats()}) {
    EXPECT_EQ(s.entries, 0);
    EXPECT_EQ(s.traces, 1) << "totals stay";
  }
  EXPECT_EQ(plain(1.0).item<float>(), 12);
  EXPECT_EQ(capturing(1.0).item<float>(), 4);
  EXPECT_EQ(plain.stats().traces, 2);
}

TEST(spec_1_6, disable_acts_at_the_next_call) {
  EnabledScope scope;
  int runs = 0;
  auto f = compile([&runs](const Array& x) {
    ++runs;
    return x + 1;
  });
  f(1.0);
  f(1.0);
  EXPECT_EQ(runs, 1);
  disable_compile();
  EXPECT_EQ(f(1.0).item<float>(), 2);
  EXPECT_EQ(f(1.0).item<float>(), 2);
  EXPECT_EQ(runs, 3);
  enable_compile();
  f(1.0);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(f.stats().calls, 5);
  EXPECT_EQ(f.stats().hits, 2);
}

TEST(spec_1_6, a_disabled_call_is_the_regular_call) {
  EnabledScope scope;
  disable_compile();
  Array k(2.0);
  std::vector<Array> leaked;
  auto f = compile([&](const Array& x) {
    leaked.push_back(x * 2);
    if (x.item<float>() > 0) return x * k;
    return x;
  });
  EXPECT_EQ(f(3.0).item<float>(), 6);
  EXPECT_EQ(leaked.at(0).item<float>(), 6);
  auto throws = compile([](Array& s, const Array& x) -> Array {
    s = s + x;
    throw 1;
  });
  Array s(1.0);
  EXPECT_THROW(throws(s, 1.0), int);
  EXPECT_EQ(s.item<float>(), 2) << "5.2 does not apply";
}

TEST(spec_1_6, environment_switch) {
  static const char* value;
  auto disables = [](const char* v) {
    value = v;
    return base::read_knobs([](const char* variable) { return std::string(variable) == "SINTER_DISABLE_COMPILE" ? value : nullptr; })
        .disable_compile;
  };
  for (const char* v : {"1", "true", "on"}) EXPECT_TRUE(disables(v)) << v;
  for (const char* v : {"0", "false", "off", ""}) EXPECT_FALSE(disables(v)) << v;
  EXPECT_FALSE(disables(nullptr));
}

TEST(spec_1_7, names_and_concepts) {
  struct Scale {
    Array k{3.0};
    Array operator()(const Array& x) const { return x * k; }
    Array forward(const Array& x) const { return x * k; }
  };
  struct Overloaded {
    Array operator()(const Array& x) const { return x; }
    Array operator()(const Array& x, const Array& y) const { return x + y; }
  };
  auto push = [](std::vector<Array>& s, const Array& x) { s.push_back(x); };
  using Push = decltype(push);
  using Fun = decltype(fun);
  static_assert(Compile<Fun> && Compile<Array (*)(const Array&)> && Compile<Array(const Array&)> && Compile<Scale> &&
                Compile<decltype(&Scale::forward)>);
  static_assert(!Compile<int> && !Compile<int*> && !Compile<std::string*> && !Compile<Array Scale::*>);
  static_assert(CallMut<Fun, const Array&, const Array&> && !CallMut<Fun, const Array&> && !CallMut<Fun, int*, Array>);
  static_assert(CallMutWithState<Push, std::vector<Array>, Array> && !CallMutWithState<Fun, int*, Array>);
  static_assert(CompileWithState<Push> && !CompileWithState<Fun> && CompileWithState<Overloaded>);
  static_assert(std::copyable<Compiled<Fun>> && std::movable<Compiled<Scale>> && CallMut<Compiled<Scale>, Array>);
  EXPECT_EQ(compile(Scale{})(2.0).item<float>(), 6);
}

TEST(spec_1_8, two_spellings_of_shapeless) {
  auto f = [](const Array& x) { return x * 2 + 1; };
  auto a = compile(f, true);
  auto b = compile(f, {.shapeless = true});
  EXPECT_TRUE(same(a(ones({3})), full({3}, 3.0)));
  b(ones({3}));
  EXPECT_EQ(b.stats().traces, 1) << "the same identity and options";
  EXPECT_EQ(b.stats().hits, 1);
  EXPECT_TRUE(same(b(ones({4, 2})), full({4, 2}, 3.0)));
  auto c = compile(f, {.shapeless = false,
                       .fast_math = false,
                       .dynamic = Dynamic::never,
                       .captures = Captures::constant,
                       .check_purity = false,
                       .max_entries = 7,
                       .name = "step"});
  EXPECT_EQ(c.name(), "step");
  std::vector<Array> state;
  auto push = [](std::vector<Array>& s, const Array& x) { s.push_back(x * 2); };
  compile_with_state(push, true)(state, 1.0);
  compile_with_state(push, {.shapeless = true, .name = "push"})(state, 2.0);
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[1].item<float>(), 4);
  Array sums = zeros({});
  auto add = compile([&](const Array& x) { sums = sums + sum(x) * x.shape(0); }, true, captured(sums));
  for (int n : {2, 3, 4}) add(ones({n}));
  EXPECT_EQ(sums.item<float>(), 4 + 9 + 16);
  EXPECT_EQ(add.stats().traces, 1);
}

}  // namespace
}  // namespace spec
