// SPEC 3: identity and cache.
#include <chrono>
#include <functional>
#include <thread>

#include "engine/kernel_store.h"
#include "runtime/buffer.h"
#include "spec/helpers.h"

namespace spec {
namespace {

float value(const Array& a) { return a.item<float>(); }
Array plus_one(const Array& x) { return x + 1; }
Array plus_two(const Array& x) { return x + 2; }

TEST(spec_3_1, function_pointers_by_address) {
  auto a = compile(plus_one), b = compile(&plus_one), c = compile(plus_two);
  EXPECT_EQ(value(a(1.0)), 2);
  EXPECT_EQ(value(b(1.0)), 2);
  EXPECT_EQ(value(c(1.0)), 3);
  EXPECT_EQ(b.stats().traces, 1);
  EXPECT_EQ(b.stats().hits, 1);
  EXPECT_EQ(c.stats().traces, 1);
}

TEST(spec_3_1, captureless_callables_by_type) {
  auto f = [](const Array& x) { return x * 7; };
  for (int i = 0; i < 20; ++i) compile(f)(1.0);
  EXPECT_EQ(compile(f).stats().traces, 1);
  EXPECT_EQ(compile(f).stats().hits, 19);
}

TEST(spec_3_1, closures_by_compile_call) {
  auto make = [](double k) { return compile([k](const Array& x) { return x * k; }); };
  auto two = make(2), three = make(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(value(two(1.0)), 2);
    EXPECT_EQ(value(three(1.0)), 3);
  }
  {
    auto four = make(4);
    EXPECT_EQ(value(four(1.0)), 4);
  }
  EXPECT_EQ(value(two(1.0)), 2) << "destroying one does not touch the others";
  EXPECT_EQ(two.stats().traces, 1);
  std::function<Array(const Array&)> wrapped = plus_one;
  auto a = compile(wrapped), b = compile(wrapped);
  a(1.0);
  b(1.0);
  EXPECT_EQ(a.stats().traces, 1);
  EXPECT_EQ(b.stats().traces, 1);
}

TEST(spec_3_2, entries_go_with_the_last_copy) {
  std::size_t before = active_memory();
  for (int i = 0; i < 50; ++i) {
    Array big = ones({1 << 18});
    big.eval();
    auto f = compile([big](const Array& x) { return x * big; });
    auto copy = f;
    std::thread([copy = std::move(copy)] { copy(1.0).eval(); }).join();
  }
  EXPECT_LE(active_memory(), before + 4096);
}

TEST(spec_3_2, a_new_callable_at_an_old_address_is_new) {
  for (int i = 0; i < 20; ++i) {
    auto f = std::make_unique<std::function<Array(const Array&)>>([i](const Array& x) { return x + i; });
    EXPECT_EQ(value(compile(*f)(0.0)), static_cast<float>(i));
  }
}

TEST(spec_3_2, entries_of_plain_callables_stay) {
  auto f = [](const Array& x) { return x * 9; };
  compile(f)(1.0);
  EXPECT_EQ(compile(f).stats().entries, 1);
  clear_cache();
  EXPECT_EQ(compile(f).stats().entries, 0);
}

TEST(spec_3_3, entries_are_bounded_least_recently_used_first) {
  auto f = compile([](const Array& x, int k) { return x + k; }, {.max_entries = 3});
  for (int k : {1, 2, 3}) f(1.0, k);
  f(1.0, 1);  // 2 is now the oldest
  f(1.0, 4);
  EXPECT_EQ(f.stats().entries, 3);
  std::int64_t traces = f.stats().traces;
  for (int k : {1, 3, 4}) f(1.0, k);
  EXPECT_EQ(f.stats().traces, traces);
  f(1.0, 2);
  EXPECT_EQ(f.stats().traces, traces + 1);
  EXPECT_EQ(CompileOptions().max_entries, 1024);
}

TEST(spec_3_3, lookup_does_not_depend_on_the_number_of_entries) {
  auto median = [](auto& f, int signatures) {
    std::vector<double> times;
    for (int i = 0; i < 200; ++i) {
      auto start = std::chrono::steady_clock::now();
      f(1.0, i % signatures);
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  };
  auto f = compile([](const Array& x, int k) { return x + k; }, {.dynamic = Dynamic::never, .max_entries = 5000});
  for (int k = 0; k < 10; ++k) f(1.0, k);
  double few = median(f, 10);
  for (int k = 0; k < 1000; ++k) f(1.0, k);
  double many = median(f, 10);
  EXPECT_EQ(f.stats().entries, 1000);
  EXPECT_LT(many, 3 * few + 5) << few << " us with 10 entries, " << many << " us with 1000";
}

TEST(spec_3_3, warns_once_after_eight_retraces) {
  auto f = compile([](const Array& x, int step) { return x * step; }, {.name = "train"});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 8; ++i) f(1.0, i);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  for (int i = 8; i < 30; ++i) f(1.0, i);
  std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(warning, "'train'") && has(warning, "input 1: 7 -> 8")) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
}

TEST(spec_3_3, a_trace_that_throws_leaves_no_entry) {
  int times = 0;
  auto f = compile([&times](const Array& x) {
    if (++times < 3) throw std::runtime_error("not yet");
    return x + 2;
  });
  EXPECT_THROW(f(1.0), std::runtime_error);
  EXPECT_THROW(f(1.0), std::runtime_error);
  EXPECT_EQ(value(f(1.0)), 3);
  EXPECT_EQ(f.stats().entries, 1);
  EXPECT_EQ(f.stats().traces, 3);
  times = 0;
  auto none = compile([&times] {
    if (++times < 3) throw std::runtime_error("not yet");
    return Array(3.0);
  });
  EXPECT_THROW(none(), std::runtime_error);
  EXPECT_THROW(none(), std::runtime_error);
  EXPECT_EQ(value(none()), 3);
}

TEST(spec_3_4, kernels_are_shared_across_functions_by_content) {
  auto a = compile([](const Array& x) { return exp(x * 3.25) - 17; });
  auto b = compile([](const Array& x) { return exp(x * 3.25) - 17; });
  a(ones({5}));
  b(ones({5}));
  EXPECT_EQ(a.stats().kernels, 1);
  EXPECT_EQ(b.stats().kernels, 0);
  EXPECT_EQ(b.stats().traces, 1);
}

TEST(spec_3_4, equal_operations_with_other_uses_are_other_kernels) {
  Array one(1.0);
  auto both = compile([](const Array& x) {
    Array a = abs(log(x));
    return std::pair{a, abs(a)};
  });
  auto last = compile([](const Array& x) { return abs(abs(log(x))); });
  for (int i = 0; i < 2; ++i) {
    auto [a, b] = both(one);
    EXPECT_EQ(value(a), 0);
    EXPECT_EQ(value(b), 0);
    EXPECT_EQ(value(last(one)), 0);
  }
  auto de_e = compile([](const Array& a, const Array& b, const Array& c) {
    Array d = a + b, e = a + c;
    return d * e - e;
  });
  auto de_d = compile([](const Array& a, const Array& b, const Array& c) {
    Array d = a + b, e = a + c;
    return d * e - d;
  });
  EXPECT_EQ(value(de_e(3.0, 5.0, 2.0)), 35);
  EXPECT_EQ(value(de_d(3.0, 5.0, 2.0)), 32);
}

// Kernels by the thousand: each a sequence of 13 operations of its own.
TEST(spec_3_2, the_store_of_kernels_is_bounded) {
  engine::interpret_kernels(true);  // generating so many takes long
  clear_cache();
  const auto sequence = [](int bits) {
    return compile([bits](const Array& x) {
      Array y = x;
      for (int b = 0; b < 13; ++b) y = bits >> b & 1 ? sin(y) : cos(y);
      return y;
    });
  };
  const Array x({0.5f, 1.f});
  auto first = sequence(0);
  const Array value = first(x);
  for (int i = 1; i < 4200; ++i) sequence(i)(x);
  EXPECT_LE(engine::kernel_count(), 4096);
  EXPECT_GE(engine::kernel_count(), 4000);
  EXPECT_TRUE(same(first(x), value)) << "its kernel is gone from the store, not from the entry";
  first = sequence(0);
  EXPECT_TRUE(same(first(x), value));
  EXPECT_EQ(first.stats().kernels, 1) << "made again";
  clear_cache();
  EXPECT_LE(engine::kernel_count(), 1);
  engine::interpret_kernels(false);
  clear_cache();
}

}  // namespace
// Also where more changes than are listed.
TEST(spec_3_3, the_warning_names_what_keeps_changing) {
  for (int arrays : {1, 40}) {
    auto f = compile([arrays](const std::vector<Array>& all) { return sum(all[0]) * arrays; }, {.dynamic = Dynamic::never});
    testing::internal::CaptureStderr();
    for (int n = 1; n <= 12; ++n) f(std::vector<Array>(static_cast<std::size_t>(arrays), ones({n})));
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("what keeps changing: input"), std::string::npos) << text;
    EXPECT_EQ(text.find("more"), std::string::npos) << text;
  }
}

}  // namespace spec
