// SPEC 7.7 to 7.9, 8 and 9, as far as they concern compile.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

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

TEST(spec_9, a_thousand_inputs_outputs_and_constants) {
  constexpr int kMany = 1000;
  std::vector<Array> in, constants;
  for (int i = 0; i < kMany; ++i) {
    in.emplace_back(Array({static_cast<float>(i), 0.f}));
    constants.emplace_back(Array({static_cast<float>(2 * i), 1.f}));
  }
  auto f = compile([constants](const std::vector<Array>& v) {
    std::vector<Array> out;
    for (int i = 0; i < kMany; ++i) out.push_back(v[static_cast<std::size_t>(i)] + constants[static_cast<std::size_t>(i)]);
    return out;
  });
  for (int k = 0; k < 2; ++k) {
    std::vector<Array> out = f(in);
    ASSERT_EQ(out.size(), static_cast<std::size_t>(kMany));
    for (int i = 0; i < kMany; i += 111) EXPECT_TRUE(same(out[static_cast<std::size_t>(i)], Array({3.f * static_cast<float>(i), 1.f})));
  }
}

// Runs f on a thread with a stack of 256 KiB.
void on_small_stack(void (*f)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* g) -> void* {
                  reinterpret_cast<void (*)()>(g)();
                  return nullptr;
                },
                reinterpret_cast<void*>(f)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(spec_9, a_chain_of_100000_operations) {
  on_small_stack([] {
    auto f = compile([](const Array& x) {
      Array y = x;
      for (int i = 0; i < 50000; ++i) y = (y + 1) * 0.5;
      return y;
    });
    EXPECT_TRUE(same(f(zeros({4})), full({4}, 1.0)));
    EXPECT_EQ(f.stats().traces, 1);
  });
}

TEST(spec_9, threads_share_one_compiled) {
  Array k(2.0);
  auto f = compile([k](const Array& x, int n) { return x * k + n; });
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Array s(0.0);
      auto own = compile([k](Array& s, const Array& x) { s = s + x * k; });
      for (int i = 0; i < 60; ++i) {
        int n = (i + t) % 5;
        if (value(f(Array({3.f}), n)) != 6.f + static_cast<float>(n)) ++wrong;
        own(s, 1.0);
        if (value(s) != 2.f * static_cast<float>(i + 1)) ++wrong;
      }
    });
  std::thread clears([&] {
    while (!stop) {
      clear_cache();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  clears.join();
  EXPECT_EQ(wrong, 0);
}

TEST(spec_9, a_forked_child_calls_compiled_functions) {
  auto f = compile([](const Array& x) { return exp(x) + 5; });
  f(ones({8})).eval();
  for (int i = 0; i < 3; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      bool known = std::abs(f(ones({8})).to_vector<float>()[3] - (std::exp(1.f) + 5)) < 1e-4;
      bool fresh = f(zeros({3})).to_vector<float>()[2] == 6;
      _exit(known && fresh ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace spec
