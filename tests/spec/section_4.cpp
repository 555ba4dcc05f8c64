// SPEC 4: tracing.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <variant>

#include "spec/helpers.h"

namespace spec {
namespace {

float value(const Array& a) { return a.item<float>(); }
Array global_array(0.5);

struct Linear {
  Array w{2.0};
  Array operator()(const Array& x) const { return x * w; }
};
struct Deep {
  std::vector<Linear> layers{Linear{}};
  Array operator()(const Array& x) const { return layers[0](x); }
};

TEST(spec_4_1, f_runs_once_on_a_miss_and_not_on_a_hit) {
  int runs = 0;
  auto f = compile([&runs](const Array& x) {
    ++runs;
    return x + 1;
  });
  for (int i = 0; i < 5; ++i) f(1.0);
  EXPECT_EQ(runs, 1);
  f(ones({2}));
  EXPECT_EQ(runs, 2);
}

TEST(spec_4_1, a_mutable_callable_starts_from_what_compile_copied) {
  auto f = compile([n = 0](const Array& x) mutable { return x * ++n; });
  EXPECT_EQ(value(f(1.0)), 1);
  EXPECT_EQ(value(f(1.0)), 1);
  EXPECT_TRUE(same(f(ones({2})), ones({2})));
  std::function<Array(const Array&)> wrapped = [n = 0](const Array& x) mutable { return x * ++n; };
  auto g = compile(wrapped);
  g(1.0);
  EXPECT_TRUE(same(g(ones({2})), ones({2})));
}

TEST(spec_4_2, looking_at_a_placeholder) {
  struct Case {
    const char* what;
    void (*look)(const Array&);
  };
  for (Case c : {Case{"item", [](const Array& a) { a.item<float>(); }},
                 {"eval", [](const Array& a) { a.eval(); }},
                 {"data", [](const Array& a) { a.data<float>(); }},
                 {"to_vector", [](const Array& a) { a.to_vector<float>(); }},
                 {"print", [](const Array& a) { text(a); }},
                 {"bool", [](const Array& a) {
                    if (a) {
                    }
                  }}}) {
    auto f = compile(
        [c](const Array& x) {
          Array y = exp(x);
          c.look(y);
          return y;
        },
        {.name = "step"});
    std::string e = thrown<TraceError>([&] { f(1.0); });
    EXPECT_TRUE(has(e, "'step'") && has(e, "exp") && has(e, "disable_compile()") && has(e, "return it")) << c.what << ": " << e;
    EXPECT_EQ(f.stats().entries, 0);
    auto input = compile([c](const Array& x) {
      c.look(x);
      return x;
    });
    EXPECT_TRUE(has(thrown<TraceError>([&] { input(1.0); }), "input 0")) << c.what;
  }
}

TEST(spec_4_2, branching_on_a_placeholder) {
  auto f = compile([](const Array& x) { return x > 0 ? x : -x; }, {.name = "absolute"});
  std::string e = thrown<TraceError>([&] { f(1.0); });
  EXPECT_TRUE(has(e, "'absolute'") && has(e, "greater")) << e;
}

TEST(spec_4_2, work_on_constants_may_be_looked_at) {
  auto f = compile([](const Array& x) {
    Array table = arange(4) * 2;
    return x + table.to_vector<int>()[3];
  });
  EXPECT_EQ(value(f(1.0)), 7);
  EXPECT_EQ(value(f(2.0)), 8);
}

TEST(spec_4_3, escaped_placeholders) {
  std::vector<Array> leaked;
  auto f = compile(
      [&leaked](const Array& x) {
        leaked.push_back(x + 1);
        return x;
      },
      {.name = "step"});
  f(1.0);
  f(1.0);
  ASSERT_EQ(leaked.size(), 1u);
  const std::string part = "escaped from compiled function 'step'; return it or keep it in a state";
  const Array& a = leaked[0];
  auto g = compile([](const Array& x) { return x * 2; });
  std::function<void()> uses[] = {[&] { a.item<float>(); },
                                  [&] { a.eval(); },
                                  [&] { text(a); },
                                  [&] { (void)(a + 1); },
                                  [&] { exp(a); },
                                  [&] { g(a); },
                                  [&] {
                                    if (a) {
                                    }
                                  },
                                  [&] { a.data<float>(); },
                                  [&] { compile([&a](const Array& x) { return x + a; })(1.0); },
                                  [&] { compile([a](const Array& x) { return x + a; })(1.0); },
                                  [&] { compile([a](const Array&) { return a; })(1.0); }};
  for (std::size_t i = 0; i < std::size(uses); ++i) {
    std::string e = thrown<TraceError>(uses[i]);
    EXPECT_TRUE(has(e, part)) << "use " << i << ": " << e;
  }
  EXPECT_EQ(a.dtype(), float32) << "its type may be asked";
}

TEST(spec_4_3, escaped_to_another_trace_of_the_same_function) {
  Array kept;
  auto f = compile([&kept](const Array& x) {
    Array r = kept.valid() ? x + kept : x;
    kept = x * 2;
    return r;
  });
  f(1.0);
  EXPECT_TRUE(has(thrown<TraceError>([&] { f(ones({2})); }), "escaped"));
}

// From what a transform, a branch or a loop runs without data, compiled or not.
TEST(spec_4_3, escaped_from_transforms_branches_and_loops) {
  Array kept;
  const auto keep = [&kept](const Array& x) {
    kept = x + 1;
    return x * 2;
  };
  const std::pair<const char*, std::function<Array(const Array&)>> ways[] = {
      {"vmap", [&](const Array& x) { return vmap(keep)(x); }},
      {"cond", [&](const Array& x) { return cond(sum(x) > 0, keep, keep, x); }},
      {"while_loop", [&](const Array& x) { return while_loop([](const Array& v) { return sum(v) < 9; }, keep, x); }},
      {"fori_loop", [&](const Array& x) { return fori_loop(0, 2, [&](const Array&, const Array& v) { return keep(v); }, x); }},
      {"scan",
       [&](const Array& x) {
         return scan([&](const Array& c, const Array& v) { return std::pair(c + v, keep(v)); }, Array(0.0f), x).second;
       }},
  };
  const Array x({1.f, 2.f});
  for (const auto& [name, f] : ways)
    for (bool compiled : {false, true}) {
      kept = Array();
      const Array y = compiled ? compile(f)(x) : f(x);
      ASSERT_TRUE(kept.valid()) << name;
      EXPECT_EQ(y.shape(), x.shape());
      const std::function<void()> uses[] = {[&] { kept.eval(); }, [&] { text(kept); }, [&] { (void)exp(kept); },
                                            [&] { compile([](const Array& v) { return v; })(kept); },
                                            [&] { compile([&](const Array& v) { return v + kept; })(x); }};
      for (const auto& use : uses) EXPECT_TRUE(has(thrown<TraceError>(use), "escaped from")) << name << ", compiled " << compiled;
    }
}

// ---- captures -------------------------------------------------------------------------------------------------------------------------

template <class F>
void constant(const F& f, const char* what) {
  EXPECT_EQ(value(compile(f)(4.0)), 2) << what;
}
template <class F>
void refused(const F& f, const char* what) {
  std::string e = thrown<CaptureError>([&] { compile(f, {.name = "step"})(4.0); });
  EXPECT_NE(e, "") << what;
  EXPECT_EQ(value(compile(f, {.captures = Captures::constant})(4.0)), 2) << what;
}

TEST(spec_4_4, held_by_value_is_a_constant) {
  Array x(0.5), y(1.0);
  std::vector<Array> v{x};
  std::map<std::string, Array> m{{"x", x}};
  Deep deep;
  deep.layers[0].w = x;
  constant([x](const Array& a) { return a * x; }, "[x]");
  constant([=](const Array& a) { return a * x; }, "[=]");
  constant([x](const Array& a) mutable { return a * x; }, "mutable");
  constant([v](const Array& a) { return a * v[0]; }, "vector");
  constant([m](const Array& a) { return a * m.at("x"); }, "map");
  constant([s = std::array<Array, 2>{y, x}](const Array& a) { return a * s[1]; }, "array");
  constant([s = std::optional<Array>(x)](const Array& a) { return a * *s; }, "optional");
  constant([s = std::variant<int, Array>(x)](const Array& a) { return a * std::get<1>(s); }, "variant");
  constant([s = std::pair{1, x}](const Array& a) { return a * s.second; }, "pair");
  const Array lazy = Array(0.25) * 2;
  constant([lazy](const Array& a) { return a * lazy; }, "not evaluated yet");
  constant([v = std::vector{Array(0.25) * 2}](const Array& a) { return a * v[0]; }, "not evaluated yet, in a vector");
  constant(Linear{x}, "functor");
  constant(deep, "vector in a functor");
  constant([deep](const Array& a) { return deep(a); }, "struct");
  constant(std::bind([](const Array& a, const Array& b) { return a * b; }, std::placeholders::_1, x), "bind");
  constant(std::bind_front([](const Array& b, const Array& a) { return a * b; }, x), "bind_front");
  constant([in = [x](const Array& a) { return a * x; }](const Array& a) { return in(a); }, "lambda in lambda");
  constant(std::function<Array(const Array&)>([x](const Array& a) { return a * x; }), "std::function");
  constant([c = compile([x](const Array& a) { return a * x; })](const Array& a) { return c(a); }, "an inlined function brings its own");
  auto inner = compile([x](const Array& a) { return a * x; });
  constant([&inner](const Array& a) { return inner(a); }, "also by reference");
  constant(compile([x](const Array& a) { return a * x; }), "compiled twice");
}

TEST(spec_4_4, the_first_operation_is_the_one_that_was_called) {
  Array whole({1, 2, 3}), row({1.f, 2.f, 3.f});
  struct Case {
    const char* operation;
    std::function<Array(const Array&)> f;
  };
  // Operands that are cast or broadcast on the way.
  const Case cases[] = {
      {"multiply", [&](const Array& x) { return x * whole; }},   {"where", [&](const Array& x) { return where(whole, x, 0); }},
      {"sum", [&](const Array&) { return sum(whole); }},         {"mean", [&](const Array&) { return mean(whole); }},
      {"exp", [&](const Array&) { return exp(whole); }},         {"matmul", [&](const Array& x) { return matmul(x, whole); }},
      {"softmax", [&](const Array&) { return softmax(whole); }},
  };
  for (const Case& c : cases) {
    auto compiled = compile([&c](const Array& x) { return c.f(x); }, {.name = "step"});
    std::string text;
    try {
      compiled(ones({2, 3}));
    } catch (const CaptureError& e) {
      text = e.what();
    }
    EXPECT_EQ(text.substr(0, text.find(':')), c.operation) << text;
  }
}

struct Member {
  Array k;
  auto through_this(CompileOptions options = {}) {
    return compile([this](const Array& a) { return a * k; }, options);
  }
};

TEST(spec_4_4, reached_in_another_way_is_refused) {
  Array x(0.5);
  auto shared = std::make_shared<Array>(x);
  const Array* p = &x;
  static Array local(0.5);
  refused([&x](const Array& a) { return a * x; }, "[&x]");
  refused([&](const Array& a) { return a * x; }, "[&]");
  refused([p](const Array& a) { return a * *p; }, "pointer");
  refused([shared](const Array& a) { return a * *shared; }, "shared_ptr");
  refused([r = std::ref(x)](const Array& a) { return a * r.get(); }, "reference_wrapper");
  Member member{x};
  EXPECT_EQ(thrown<CaptureError>([&] { member.through_this()(4.0); }).substr(0, 9), "multiply:") << "member through this";
  EXPECT_EQ(value(member.through_this({.captures = Captures::constant})(4.0)), 2);
  const Array lazy = Array(0.25) * 2;
  refused([&lazy](const Array& a) { return a * lazy; }, "not evaluated yet");
  refused([](const Array& a) { return a * global_array; }, "global");
  refused([](const Array& a) { return a * local; }, "static");
  refused(std::bind([](const Array& a, const Array& b) { return a * b; }, std::placeholders::_1, std::cref(x)), "bind of a reference");
  Array two(2.0);
  auto returned = [&two](const Array&) { return two; };
  EXPECT_NE(thrown<CaptureError>([&] { compile(returned)(1.0); }), "") << "returned";
  EXPECT_EQ(value(compile(returned, {.captures = Captures::constant})(1.0)), 2);
  Array state(1.0);
  EXPECT_NE(thrown<CaptureError>([&] { compile([&two](Array& s) { s = two; })(state); }), "") << "put into a state";
  EXPECT_EQ(value(state), 1);
}

TEST(spec_4_4, the_message_names_shape_dtype_operation_and_remedies) {
  Array table = ones({3, 2});
  auto f = compile([&table](const Array& x) { return exp(x) * table; }, {.name = "step"});
  EXPECT_EQ(thrown<CaptureError>([&] { f(1.0); }),
            "multiply: compiled function 'step' uses an array that is neither an argument nor held by value; got float32[3,2]; pass it as "
            "an argument, make "
            "it state, list it in captured(...), or compile with {.captures = Captures::constant}");
}

TEST(spec_4_4, callables_that_cannot_be_copied) {
  auto plain = compile([p = std::make_unique<int>(5)](const Array& x) { return x * *p; });
  auto copy = plain;
  EXPECT_EQ(value(copy(1.0)), 5);
  Array k(2.0);
  auto holds = compile([k, p = std::make_unique<int>(5)](const Array& x) { return x * k * *p; });
  std::string e = thrown<CaptureError>([&] { holds(1.0); });
  EXPECT_TRUE(has(e, "cannot be copied")) << e;
}

TEST(spec_4_4, arrays_made_while_tracing_are_constants) {
  auto f = compile([](const Array& x) { return x + Array({1.f, 2.f}) * ones({2}); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f(1.0), Array({2.f, 3.f})));
  auto local = compile([](const Array& a) {
    static Array table = Array({1.f, 2.f});
    return a * table;
  });
  EXPECT_TRUE(same(local(2.0), Array({2.f, 4.f})));
  EXPECT_NE(thrown<CaptureError>([&] { local(Array({1.f, 2.f})); }), "") << "a static is foreign to the second trace";
}

TEST(spec_4_4, captures_constant_reads_at_each_trace) {
  Array k(2.0);
  auto f = compile([&k](const Array& x) { return x * k; }, {.captures = Captures::constant});
  EXPECT_EQ(value(f(3.0)), 6);
  k = Array(5.0);
  EXPECT_EQ(value(f(3.0)), 6) << "kept till the next trace";
  EXPECT_TRUE(same(f(ones({2})), full({2}, 5.0)));
}

TEST(spec_4_4, constants_held_by_value_outlive_the_original) {
  auto f = [] {
    Array k = arange(3, float32);
    return compile([k](const Array& x) { return x * k; });
  }();
  EXPECT_TRUE(same(f(2.0), Array({0.f, 2.f, 4.f})));
  clear_cache();
  EXPECT_TRUE(same(f(2.0), Array({0.f, 2.f, 4.f})));
}

TEST(spec_4_4, large_constants_are_neither_copied_nor_printed) {
  Array big = ones({4 << 20});
  big.eval();
  std::size_t before = active_memory();
  auto f = compile([big](const Array& x) { return sum(big * x); });
  reset_peak_memory();
  EXPECT_EQ(value(f(1.0)), static_cast<float>(4 << 20));
  EXPECT_LT(peak_memory(), before + (1u << 20));
  EXPECT_LT(f.graph(1.0).size() + f.kernels(1.0).size(), 20000u);
}

TEST(spec_4_4, work_on_constants) {
  Array small = ones({1000});
  auto f = compile([small](const Array& x) { return x + sum(small * 2); });
  EXPECT_EQ(value(f(1.0)), 2001);
  EXPECT_FALSE(has(f.graph(1.0), "sum")) << "done once: " << f.graph(1.0);
  std::size_t before = active_memory();
  reset_peak_memory();
  auto g = compile([](const Array& x) { return sum(full({1 << 24}, 1.0) * 0.5 + x); });
  EXPECT_EQ(value(g(1.0)), 1.5f * (1 << 24));
  EXPECT_LT(peak_memory(), before + (1u << 24)) << "in each call, inside its fusion";
}

// Numbers, and arrays that repeat one, need no kernel: the passes fold them.
TEST(spec_4_4, work_on_numbers_alone) {
  const auto numbers = [](const Array& x) {
    Array k = sqrt(Array(16.0) + astype(Array(9), float32)) * 2;  // 10
    Array repeated = reshape(broadcast_to(k, {6}) - 1, {2, 3});
    return x + where(repeated > 8, repeated, exp(repeated)) + sum(Array({1.0, 2.0}));
  };
  auto f = compile(numbers);
  EXPECT_EQ(f(zeros({2, 3})).to_vector<float>(), std::vector<float>(6, 12));
  EXPECT_LE(f.stats().kernels, 1);
  for (const char* gone : {"sqrt", "where", "reshape", "sum"}) EXPECT_FALSE(has(f.graph(zeros({2, 3})), gone)) << f.graph(zeros({2, 3}));
  set_compile_mode(CompileMode::no_simplify);
  auto plain = compile(numbers);
  EXPECT_EQ(plain(zeros({2, 3})).to_vector<float>(), std::vector<float>(6, 12));
  for (const char* gone : {"sqrt", "where", "sum"}) EXPECT_FALSE(has(plain.graph(zeros({2, 3})), gone)) << "done once in this mode, too";
  set_compile_mode(CompileMode::enabled);
}

TEST(spec_4_4, an_input_that_is_also_captured_is_the_input) {
  Array x(2.0), y(3.0);
  auto by_value = compile([x](const Array& a) { return a * x; });
  EXPECT_EQ(value(by_value(x)), 4);
  EXPECT_EQ(value(by_value(y)), 6);
  EXPECT_EQ(value(by_value(x)), 4);
  auto constant = compile([&x](const Array& a) { return a * x; }, {.captures = Captures::constant});
  EXPECT_EQ(value(constant(x)), 4);
  x = Array(5.0);
  EXPECT_EQ(value(constant(x)), 25) << "the regular call's result";
  EXPECT_EQ(value(constant(y)), 15);
  EXPECT_EQ(value(constant(x)), 25);
  auto reference = compile([&x](const Array& a) { return a * x; });
  EXPECT_EQ(value(reference(x)), 25);
  x = Array(6.0);
  EXPECT_EQ(value(reference(x)), 36);
  EXPECT_NE(thrown<CaptureError>([&] { reference(y); }), "");
}

// ---- inlining -------------------------------------------------------------------------------------------------------------------------

TEST(spec_4_5, impure_functions_are_found) {
  int calls = 0;
  struct Impure {
    const char* what;
    std::function<Array(const Array&)> f;
    const char* part;  // of the message
  };
  const Array extra = full({40}, 2.0);
  const Impure all[] = {
      {"a number that changes", [&](const Array& x) { return x + static_cast<double>(++calls); }, "another graph\n-"},
      {"a branch that changes", [&](const Array& x) { return ++calls % 2 ? exp(x) : sin(x); }, "+  %1 = "},
      {"a result that changes", [&](const Array& x) { return ++calls % 2 ? x : x + 0.0f; }, "another graph"},
      {"an operation more", [&](const Array& x) { return ++calls % 2 ? exp(x) : exp(exp(x)); }, "another graph"},
      {"a large constant that changes", [&](const Array& x) { return x + linspace(0.0, ++calls, 40); }, "other constants"},
      {"a constant result that changes", [&](const Array&) { return full({2}, ++calls); }, "other constants"},
      {"pure", [&](const Array& x) { return exp(x) * 2 + extra; }, nullptr},
      {"pure with random numbers", [&](const Array& x) { return x + random::uniform(0.0, 1.0, {40}); }, nullptr},
  };
  for (const Impure& i : all) {
    calls = 0;
    auto f = compile(i.f, {.captures = Captures::constant, .check_purity = true, .name = "f"});
    const Array x = linspace(0.0, 1.0, 40);
    random::seed(4);
    const Array first = f(x), again = i.part ? Array() : f(x);
    if (!i.part) {
      random::seed(4);
      EXPECT_TRUE(same(first, i.f(x))) << i.what;
      EXPECT_TRUE(same(again, i.f(x))) << i.what;
      EXPECT_EQ(f.stats().traces, 2);
      EXPECT_EQ(f.stats().entries, 1);
      continue;
    }
    const std::string e = thrown<TraceError>([&] { f(x); });
    EXPECT_TRUE(e.starts_with("compile: compiled function 'f' is not pure: tracing it again gave ")) << i.what << ": " << e;
    EXPECT_TRUE(has(e, i.part)) << i.what << ": " << e;
  }
}

TEST(spec_4_5, the_state_of_an_impure_function_stays) {
  int calls = 0;
  auto f = compile([&](Array& s) { s = s + static_cast<double>(++calls); }, {.check_purity = true});
  Array s(1.0);
  f(s);
  EXPECT_EQ(s.item<double>(), 2);
  const Array before = s;
  EXPECT_THROW(f(s), TraceError);
  EXPECT_EQ(s.get(), before.get());
  auto unchecked = compile([&](Array& s) { s = s + static_cast<double>(++calls); });
  unchecked(s), unchecked(s);
}

// SINTER_CHECK_PURE and SINTER_DISABLE_COMPILE, read by processes of their own; without the variable this does nothing.
TEST(spec_4_5, in_a_process_with_a_switch) {
  const char* which = std::getenv("SPEC_4_5_SWITCH");
  if (!which) return;
  int calls = 0;
  auto impure = compile([&calls](const Array& x) { return x + static_cast<double>(++calls); });
  impure(1.0);
  if (std::string(which) == "disable") {
    EXPECT_EQ(value(impure(1.0)), 3);
    EXPECT_EQ(impure.stats().traces, 0);
    enable_compile();
    impure(1.0);
    EXPECT_EQ(impure.stats().traces, 1);
  } else {
    EXPECT_THROW(impure(1.0), TraceError);
    auto pure = compile([](const Array& x) { return x * 2; });
    for (int i = 1; i < 4; ++i) EXPECT_EQ(value(pure(i)), 2.0f * static_cast<float>(i));
    EXPECT_EQ(pure.stats().traces, 3);
  }
}
TEST(spec_4_5, switches_of_the_environment) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const char* variables : {"SPEC_4_5_SWITCH=check SINTER_CHECK_PURE=1", "SPEC_4_5_SWITCH=disable SINTER_DISABLE_COMPILE=1"}) {
    const std::string command =
        std::string("env ") + variables + " '" + self + "' --gtest_filter=spec_4_5.in_a_process_with_a_switch >/dev/null 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << variables;
  }
}

std::string output_of(const std::function<void()>& f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}

TEST(spec_4_8, debug_print_shows_the_values_of_each_call) {
  const auto step = [](Array& total, const Array& x, int n) {
    debug_print("begin {} of {}", n, x);
    const Array y = x * 2;
    debug_print("y = {}, sum {{{}}}", y, sum(y));
    total = total + sum(y);
    debug_print("total {}", total);
    debug_print("end");
    return y;
  };
  const auto expected = [](int n, const char* x, const char* y, int sum, int total) {
    std::ostringstream out;
    out << "begin array(" << n << ", dtype=int32) of " << x << "\ny = " << y << ", sum {array(" << sum << ", dtype=float32)}\ntotal array("
        << total << ", dtype=float32)\nend\n";
    return out.str();
  };
  auto f = compile(step);
  Array total(0.0f);
  const Array a({1.0f, 2.0f}), b({3.0f, 4.0f});
  const char *ta = "array([1, 2], dtype=float32)", *tb = "array([3, 4], dtype=float32)", *ya = "array([2, 4], dtype=float32)",
             *yb = "array([6, 8], dtype=float32)";
  EXPECT_EQ(output_of([&] { f(total, a, 1); }), expected(1, ta, ya, 6, 6)) << "the first call prints once";
  EXPECT_EQ(output_of([&] { f(total, b, 1); }), expected(1, tb, yb, 14, 20));
  EXPECT_EQ(output_of([&] { f(total, a, 1); }), expected(1, ta, ya, 6, 26)) << "a hit";
  EXPECT_EQ(f.stats().traces, 1);
  disable_compile();
  EXPECT_EQ(output_of([&] { f(total, b, 1); }), expected(1, tb, yb, 14, 40));
  enable_compile();
  EXPECT_EQ(output_of([&] { step(total, a, 7); }), expected(7, ta, ya, 6, 46)) << "a regular call";
}

TEST(spec_4_8, debug_print_in_other_places) {
  auto inner = compile([](const Array& x) {
    debug_print("inner {}", x);
    return x + 1;
  });
  auto outer = compile([inner](const Array& x) { return inner(inner(x)); });
  EXPECT_EQ(output_of([&] { outer(1.0f); }), "inner array(1, dtype=float32)\ninner array(2, dtype=float32)\n");
  // What is printed is computed, and changes nothing.
  auto unused = compile([](const Array& x) {
    debug_print("{}", exp(x));
    return x * 2;
  });
  EXPECT_EQ(output_of([&] { EXPECT_EQ(unused(0.0f).item<float>(), 0); }), "array(1, dtype=float32)\n");
  // An argument that is printed is not overwritten.
  auto update = compile([](Array x) {
    Array y = x + 1;
    debug_print("{}", sum(x));
    debug_print("{}", slice(x, {0}, {2}));
    return y;
  });
  EXPECT_EQ(output_of([&] { update(ones({1000}) * 3); }), "array(3000, dtype=float32)\narray([3, 3], dtype=float32)\n");
  // Under a gradient, compiled or not.
  const auto loss = [](const Array& x) {
    const Array y = x * x;
    debug_print("y {}", y);
    return y;
  };
  const std::string once = "y array(9, dtype=float32)\n";
  EXPECT_EQ(output_of([&] { EXPECT_EQ(grad(loss)(Array(3.0f)).item<float>(), 6); }), once);
  auto gradient = compile([loss](const Array& x) { return grad(loss)(x); });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(output_of([&] { EXPECT_EQ(gradient(Array(3.0f)).item<float>(), 6); }), once);
  EXPECT_EQ(output_of([&] { EXPECT_EQ(grad(compile(loss))(Array(3.0f)).item<float>(), 6); }), once);
  // A call that throws prints nothing.
  auto thrower = compile([](const Array& x) -> Array {
    debug_print("{}", x);
    throw Error("no");
  });
  EXPECT_EQ(output_of([&] { EXPECT_THROW(thrower(1.0f), Error); }), "");
}

TEST(spec_4_8, debug_print_refuses) {
  EXPECT_EQ(thrown<Error>([] { debug_print("{} {}", 1); }),
            "debug_print: the format has another number of {} than there are values; got \"{} {}\" and 1; write one {} for each");
  EXPECT_THROW(debug_print("none", 1), Error);
  EXPECT_THROW(debug_print("{}", Array()), Error);
  Array kept;
  auto keeper = compile([&](const Array& x) {
    kept = x + 1;
    return x;
  });
  keeper(ones({3}));
  EXPECT_THROW(debug_print("{}", kept), TraceError);
  // A body that gives nothing is not run.
  EXPECT_THROW(cond(Array(true), [] { return debug_print("yes"), std::tuple(); }, [] { return std::tuple(); }), TraceError);
}

// In functions that are traced apart: what is shown, and how often, is what the function says when it is run as it is written, in its
// order, compiled or not; and results are the same.
struct Shown {
  const char* name;
  Array (*f)(const Array& x);
  const char* lines;  // for x = [1, 2]
  friend void PrintTo(const Shown& s, std::ostream* out) { *out << s.name; }
};
Array number(double v) { return Array(static_cast<float>(v)); }
Array at(const Array& x, int i) { return reshape(slice(x, {i}, {i + 1}), {}); }
const Shown kShown[] = {
    {"vmap",
     [](const Array& x) {
       debug_print("begin");
       const Array y = vmap([](const Array& e) {
         debug_print("e {}", e);
         debug_print("once");
         const Array z = e * 2;
         debug_print("{} of {}", z, e);
         return z;
       })(x);
       debug_print("end {}", sum(y));
       return y;
     },
     "begin\ne 1\ne 2\nonce\n2 of 1\n4 of 2\nend 6\n"},
    {"vmap_in_vmap",
     [](const Array& x) {
       return vmap([&](const Array& a) {
         return vmap([&](const Array& b) {
           debug_print("{} {} {}", a, b, a * b);
           return a * b;
         })(x);
       })(x);
     },
     "1 1 1\n1 2 2\n2 1 2\n2 2 4\n"},
    {"vmap_of_vectors",
     [](const Array& x) {
       return vmap([](const Array& row) {
         debug_print("{}", row);
         return sum(row);
       })(stack({x, x + 1, x * 0}, 0));
     },
     "[1, 2]\n[2, 3]\n[0, 0]\n"},
    {"vmap_along_axis_1",
     [](const Array& x) {
       return vmap(
           [](const Array& column) {
             debug_print("{}", column);
             return column * 2;
           },
           {1}, 1)(stack({x, x + 1}, 0));
     },
     "[1, 2]\n[2, 3]\n"},
    {"cond",
     [](const Array& x) {
       const auto branch = [](const char* name) {
         return [name](const Array& v) {
           debug_print("{{}} {}", v * 10);
           debug_print(name);
           return v + 1;
         };
       };
       Array y = cond(sum(x) > 2, branch("yes"), branch("no"), x);
       debug_print("between");
       y = cond(sum(x) > 20, branch("yes"), branch("no"), y);
       return cond(sum(x) > 20, branch("yes"), [](const Array& v) { return v; }, y);
     },
     "{} [10, 20]\nyes\nbetween\n{} [20, 30]\nno\n"},
    {"cond_of_captures",
     [](const Array& x) {
       return cond(
           at(x, 0) > 0,
           [&] {
             debug_print("positive");
             debug_print("{}", x);
             return x;
           },
           [&] { return -x; });
     },
     "positive\n[1, 2]\n"},
    {"while_loop",
     [](const Array& x) {
       return while_loop(
           [](const Array& v) {
             debug_print("{}?", at(v, 0));
             return at(v, 0) < 3;
           },
           [](const Array& v) {
             debug_print("go on from {}", v);
             debug_print("step");
             return v + 1;
           },
           x);
     },
     "1?\ngo on from [1, 2]\nstep\n2?\ngo on from [2, 3]\nstep\n3?\n"},
    {"bounded_while_loop",
     [](const Array& x) {
       return while_loop([](const Array& v) { return at(v, 0) < 3; },
                         [](const Array& v) {
                           debug_print("{}", v);
                           return v + 1;
                         },
                         x, 5);
     },
     "[1, 2]\n[2, 3]\n"},
    {"bounded_while_loop_whose_condition_shows",
     [](const Array& x) {
       return while_loop(
                  [](const std::pair<Array, Array>& s) {
                    debug_print("{}?", s.first);
                    return at(s.first, 0) < 3;
                  },
                  [](const std::pair<Array, Array>& s) {
                    debug_print("from {}", s.second);
                    return std::pair(s.first + 1, s.second * 2);
                  },
                  std::pair(x, -x), 5)
           .second;
     },
     "[1, 2]?\nfrom [-1, -2]\n[2, 3]?\nfrom [-2, -4]\n[3, 4]?\n"},
    {"bounded_while_loop_that_is_stopped",
     [](const Array& x) {
       return while_loop(
           [](const Array& v) {
             debug_print("{}?", at(v, 0));
             return at(v, 0) < 3;
           },
           [](const Array& v) { return v + 1; }, x, 1);
     },
     "1?\n"},
    {"gradient_of_a_bounded_while_loop",
     [](const Array& x) {
       return grad([](const Array& v) {
         return sum(while_loop(
             [](const Array& w) {
               debug_print("{}?", at(w, 0));
               return at(w, 0) < 3;
             },
             [](const Array& w) { return w * 2; }, v, 5));
       })(x);
     },
     "1?\n2?\n4?\n"},
    {"fori_loop",
     [](const Array& x) {
       return fori_loop(
           0, 3,
           [&](const Array& i, const Array& v) {
             debug_print("step {} of {}", i, x);
             debug_print("v {}", at(v, 1));
             return v * 2;
           },
           x);
     },
     "step 0 of [1, 2]\nv 2\nstep 1 of [1, 2]\nv 4\nstep 2 of [1, 2]\nv 8\n"},
    {"fori_loop_of_arrays",
     [](const Array& x) {
       return fori_loop(
           0, astype(at(x, 1), int32),
           [](const Array& i, const Array& v) {
             debug_print("{}", i);
             return v * 2;
           },
           x);
     },
     "0\n1\n"},
    {"scan",
     [](const Array& x) {
       return scan(
                  [](const Array& c, const Array& e) {
                    debug_print("before {}", c);
                    debug_print("element {}", e);
                    return std::pair(c + e, c * e);
                  },
                  number(0), x)
           .second;
     },
     "before 0\nelement 1\nbefore 1\nelement 2\n"},
    {"scan_backward",
     [](const Array& x) {
       return scan(
                  [](const Array& c, const Array& e) {
                    debug_print("{}", e);
                    return std::pair(c + e, e);
                  },
                  number(0), x, {.reverse = true})
           .first;
     },
     "2\n1\n"},
    {"scan_whose_results_are_not_used",
     [](const Array& x) {
       debug_print("before");
       scan(
           [](const Array& c, const Array& e) {
             debug_print("{}", e);
             return std::pair(c + e, e);
           },
           number(0), x);
       debug_print("behind");
       return x;
     },
     "before\n1\n2\nbehind\n"},
    {"cond_of_a_batch",  // both branches run
     [](const Array& x) {
       return vmap([](const Array& e) {
         return cond(
             e > 1,
             [&] {
               debug_print("yes {}", e);
               return e;
             },
             [&] {
               debug_print("no {}", e);
               return -e;
             });
       })(x);
     },
     "yes 1\nyes 2\nno 1\nno 2\n"},
    {"cond_in_scan_in_vmap",
     [](const Array& x) {
       return vmap([&](const Array& a) {
         return scan(
                    [&](const Array& c, const Array& e) {
                      const Array next = cond(
                          at(e, 0) > 1,
                          [&] {
                            debug_print("{} after {}", at(e, 0), c);
                            return c + at(e, 0) * a;
                          },
                          [&] { return c; });
                      debug_print("c {}", next);
                      return std::pair(next, e);
                    },
                    number(0), reshape(x, {2, 1}))
             .first;
       })(x);
     },
     "c 0\nc 0\n2 after 0\n2 after 0\nc 2\nc 4\n"},
    {"checkpoint",
     [](const Array& x) {
       return checkpoint([](const Array& v) {
         debug_print("v {}", v);
         return sin(v);
       })(x);
     },
     "v [1, 2]\n"},
    {"gradient_of_loops",
     [](const Array& x) {
       return grad([](const Array& v) {
         debug_print("begin {}", v);
         const Array y = fori_loop(
             0, 2,
             [](const Array& i, const Array& w) {
               debug_print("{}: {}", i, w);
               return w * w;
             },
             v);
         const Array z = checkpoint([](const Array& w) {
           debug_print("again");
           return sum(w * w);
         })(y);
         return cond(
             z > 0,
             [&] {
               debug_print("z {}", z);
               return z * 2;
             },
             [&] { return z; });
       })(x);
     },
     "begin [1, 2]\n0: [1, 2]\n1: [1, 4]\nagain\nz 257\n"},
    {"tangent_of_a_loop",
     [](const Array& x) {
       return jvp(
                  [](const Array& v) {
                    return while_loop([](const Array& w) { return at(w, 0) < 3; },
                                      [](const Array& w) {
                                        debug_print("{}", w);
                                        return w * 3;
                                      },
                                      v);
                  },
                  std::tuple(x), std::tuple(ones({2})))
           .second;
     },
     "[1, 2]\n"},
    {"batch_of_gradients",
     [](const Array& x) {
       return vmap(grad([](const Array& e) {
         debug_print("e {}", e);
         return fori_loop(
             0, 2,
             [](const Array&, const Array& v) {
               debug_print("v {}", v);
               return v * v;
             },
             e);
       }))(x);
     },
     "e 1\ne 2\nv 1\nv 2\nv 1\nv 4\n"},
    {"gradient_of_a_batch",
     [](const Array& x) {
       return grad([](const Array& v) {
         return sum(vmap([](const Array& e) {
           debug_print("{}", e);
           return e * e;
         })(v));
       })(x);
     },
     "1\n2\n"},
};
class DebugPrint : public testing::TestWithParam<Shown> {};

// Lines without what surrounds the numbers of an array.
std::string bare(std::string text) {
  for (std::size_t at; (at = text.find("array(")) != std::string::npos;) {
    text.erase(at, 6);
    const std::size_t dtype = text.find(", dtype=", at);
    text.erase(dtype, text.find(')', dtype) + 1 - dtype);
  }
  return text;
}

TEST_P(DebugPrint, spec_4_8_shows_the_same_compiled_or_not) {
  const Shown& c = GetParam();
  const Array x({1.0f, 2.0f});
  Array regular, y;
  EXPECT_EQ(bare(output_of([&] {
              regular = c.f(x);
              regular.eval();
            })),
            c.lines)
      << "a regular call";
  for (CompileMode mode : {CompileMode::enabled, CompileMode::no_simplify, CompileMode::no_fuse, CompileMode::disabled}) {
    set_compile_mode(mode);
    auto f = compile(c.f);
    for (const char* which : {"the first call", "the second call"}) {
      EXPECT_EQ(bare(output_of([&] {
                  y = f(x);
                  y.eval();
                })),
                c.lines)
          << which;
      EXPECT_TRUE(same(y, regular)) << which;
    }
  }
  set_compile_mode(CompileMode::enabled);
  auto outer = compile([f = compile(c.f)](const Array& v) { return f(v) + 0; });
  EXPECT_EQ(bare(output_of([&] { outer(x).eval(); })), c.lines) << "inlined";
  auto shapeless = compile(c.f, true);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bare(output_of([&] { shapeless(x).eval(); })), c.lines) << "shapeless";
}
INSTANTIATE_TEST_SUITE_P(All, DebugPrint, testing::ValuesIn(kShown), [](const auto& i) { return i.param.name; });

TEST(spec_4_6, compiled_functions_are_inlined) {
  auto inner = compile([](const Array& x, const Array& y) { return exp(-x) + y; });
  auto outer = compile([&inner](const Array& a) { return inner(a, a) * 2; });
  EXPECT_NEAR(value(outer(1.0)), 2 * (std::exp(-1.0) + 1), 1e-5);
  EXPECT_EQ(inner.stats().traces, 0);
  EXPECT_EQ(inner.stats().calls, 1);
  auto twice = compile(compile(compile([](const Array& x) { return x * 2; })));
  EXPECT_EQ(value(twice(3.0)), 6);
}

TEST(spec_4_6, inlined_state_belongs_to_the_outer_trace) {
  auto inner = compile([](Array& s, const Array& x) {
    s = s + x;
    return s * 2;
  });
  auto outer = compile([&inner](Array& s, const Array& x) { return inner(s, x) + inner(s, x); });
  Array s(1.0);
  EXPECT_EQ(value(outer(s, 1.0)), 10);
  EXPECT_EQ(value(s), 3);
  EXPECT_EQ(value(outer(s, 1.0)), 18);
  EXPECT_EQ(value(s), 5);
}

TEST(spec_4_6, a_function_that_calls_itself) {
  std::function<Array(const Array&, int)> power;
  auto compiled = compile([&power](const Array& x, int n) { return power(x, n); });
  power = [&compiled](const Array& x, int n) { return n == 0 ? ones_like(x) : x * compiled(x, n - 1); };
  EXPECT_EQ(value(compiled(2.0, 5)), 32);
  EXPECT_EQ(compiled.stats().traces, 1);
}

TEST(spec_4_6, captures_of_an_inlined_function_end_with_it) {
  Array k(2.0);
  auto inner = compile([&k](const Array& x) { return x * k; }, {.captures = Captures::constant});
  auto outer = compile([&](const Array& x) { return inner(x); });
  EXPECT_EQ(value(outer(3.0)), 6);
  Array other(1.0);
  auto refuses = compile([&](const Array& x) { return inner(x) + other; });
  EXPECT_NE(thrown<CaptureError>([&] { refuses(3.0); }), "");
}

// ---- random numbers -------------------------------------------------------------------------------------------------------------------

TEST(spec_4_7, the_generator_is_implicit_state) {
  auto noisy = [](const Array& x) { return x + random::uniform({3}) * 2 + random::normal({3}); };
  auto f = compile(noisy);
  random::seed(7);
  std::vector<Array> regular, compiled;
  for (int i = 0; i < 4; ++i) regular.push_back(noisy(1.0));
  random::seed(7);
  for (int i = 0; i < 4; ++i) compiled.push_back(f(1.0));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same(regular[i], compiled[i])) << i;
  EXPECT_FALSE(array_equal(compiled[0], compiled[1]).item<bool>());
  EXPECT_EQ(f.stats().traces, 1);
  random::seed(7);
  noisy(1.0);
  EXPECT_TRUE(same(f(1.0), regular[1])) << "regular and compiled calls share the sequence";
}

TEST(spec_4_7, a_call_that_throws_leaves_the_generator) {
  auto draws = [] { return random::uniform({2}); };
  auto bad = compile([](const Array& x) { return x + random::uniform({2}) + ones({7}); });
  random::seed(3);
  Array expected = draws();
  random::seed(3);
  EXPECT_NE(thrown<ShapeError>([&] { bad(1.0); }), "");
  EXPECT_TRUE(same(draws(), expected));
}

TEST(spec_4_7, seeding_inside) {
  auto f = compile([](const Array& x) {
    random::seed(11);
    return x + random::uniform({2});
  });
  random::seed(11);
  Array expected = random::uniform({2}), next = random::uniform({2});
  random::seed(1);
  EXPECT_TRUE(same(f(0.0), expected));
  EXPECT_TRUE(same(random::uniform({2}), next));
  random::seed(2);
  EXPECT_TRUE(same(f(0.0), expected));
}

TEST(spec_4_7, each_thread_has_its_generator) {
  auto f = compile([](const Array& x) { return x + random::uniform({4}); });
  random::seed(5);
  Array here = f(0.0), there;
  std::thread([&] {
    random::seed(5);
    there = f(0.0);
  }).join();
  EXPECT_TRUE(same(here, there));
  EXPECT_EQ(f.stats().traces, 1);
}

}  // namespace
}  // namespace spec
