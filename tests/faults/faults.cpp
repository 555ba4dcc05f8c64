// Fault injection: whatever fails, and whenever, the call throws, everything is as it was, and the next call is right.
//
// A scenario is made anew for each n; its call fails at its n-th allocation of array memory, at its n-th `operator new`, at the n-th kernel
// that is generated, or at the function's n-th operation, until n is beyond what the call does.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>

#include "engine/kernel_store.h"
#include "runtime/buffer.h"
#include "sinter/sinter.h"
#include "support/quiet.h"
#include "support/thrown.h"

namespace {
thread_local std::int64_t news_left = -1;
void* allocate(std::size_t bytes) {
  if (news_left >= 0 && news_left-- == 0) throw std::bad_alloc();
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
}  // namespace
void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes == 0 ? 1 : bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes == 0 ? 1 : bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace faults {
namespace {

using namespace sinter;
using Arrays = std::vector<Array>;

int operations_left = -1;
struct Thrown {};
/// What the functions of the scenarios put around an operation: fails when told to.
Array op(Array x) {
  if (operations_left >= 0 && operations_left-- == 0) throw Thrown();
  return x;
}

struct Scenario {
  std::shared_ptr<Arrays> results;
  std::function<void()> call;     // one compiled call, and nothing else that may fail
  std::function<Arrays()> state;  // what the call must leave alone if it throws
  std::function<std::int64_t()> entries;
};
Arrays evaluated(Arrays arrays) {
  for (const Array& a : arrays) a.eval();
  return arrays;
}
Array data(Shape shape) {
  Array x = sin(reshape(cumsum(ones({zeros(shape).size()})), shape) * 0.37f);
  x.eval();
  return x;
}

struct Model {
  Array weight = data({16, 8}), bias = data({8}), moment = zeros({16, 8});
  std::vector<Array> cache;
  SINTER_FIELDS(weight, bias, moment, cache)
};
Array loss(const Model& m, const Array& x) { return op(mean(square(op(tanh(op(addmm(m.bias, x, m.weight))))))); }

template <class F>
auto compiled(F function) {
  auto f = std::make_shared<decltype(compile(function))>(compile(function));
  f->clear();  // functions of one type share their entries
  return f;
}
template <class F>
Scenario of_function(F function, Arrays in) {
  auto f = compiled(function);
  auto out = std::make_shared<Arrays>();
  auto arguments = std::make_shared<Arrays>(in);
  return {out, [=] { *out = (*f)(*arguments); }, [=] { return *arguments; }, [=] { return f->stats().entries; }};
}
template <class F>
Scenario of_state(F step) {
  auto f = compiled(step);
  auto m = std::make_shared<Model>();
  evaluated({m->weight, m->bias, m->moment});
  auto out = std::make_shared<Arrays>(1);
  auto leaves = [=] {
    Arrays all = {m->weight, m->bias, m->moment};
    all.insert(all.end(), m->cache.begin(), m->cache.end());
    return all;
  };
  return {out, [=, x = data({4, 16})] { (*out)[0] = (*f)(*m, x); }, leaves, [=] { return f->stats().entries; }};
}

// Regular evaluation: what the function makes is lazy until the call.
template <class F>
Scenario of_regular(F function, Arrays in) {
  auto out = std::make_shared<Arrays>(function(in));
  return {out,
          [=] {
            for (const Array& a : *out) a.eval();
          },
          [=] { return in; }, [] { return std::int64_t{0}; }};
}

struct Case {
  const char* name;
  std::function<Scenario()> make;
  bool library = false;  // runs code that is not ours, which need not survive a failing `operator new`
  bool traces = true;
};
std::vector<Case> cases() {
  return {
      {"elementwise",
       [] { return of_function([](const Arrays& in) { return Arrays{op(exp(op(-in[0]))) + in[1]}; }, {data({3, 700}), data({700})}); }},
      {"reductions and rows",
       [] {
         return of_function([](const Arrays& in) { return Arrays{op(softmax(in[0], -1)), op(sum(in[0], 0)), op(max(in[0]))}; },
                            {data({50, 70})});
       }},
      {"views and gathers",
       [] {
         return of_function(
             [](const Arrays& in) {
               return Arrays{op(concatenate({op(transpose(in[0])), in[1]}, 0)), op(take(in[0], astype(in[1] * 3.0f, int32), 0)),
                             op(cumsum(in[0], 0))};
             },
             {data({6, 9}), data({9, 6})});
       }},
      {"control flow",
       [] {
         return of_function(
             [](const Arrays& in) {
               Array y = while_loop([](const Array& v) { return op(sum(v)) < 40.0f; }, [](const Array& v) { return op(v + 1.0f); },
                                    op(abs(in[0])));
               return Arrays{cond(op(sum(y)) > 3.0f, [&] { return op(y * 2.0f); }, [&] { return op(y); })};
             },
             {data({4})});
       }},
      {"a gradient",
       [] {
         return of_function(
             [](const Arrays& in) { return Arrays{grad([](const Array& x) { return op(sum(op(sin(x * op(exp(x)))))); })(in[0])}; },
             {data({33})});
       }},
      {"products",
       [] {
         return of_function([](const Arrays& in) { return Arrays{op(matmul(in[0], op(transpose(in[0])))) * 2.0f}; }, {data({40, 30})});
       },
       true},
      {"branches and loops of arrays",
       [] {
         return of_function(
             [](const Arrays& in) {
               auto [carry, stacked] =
                   scan([](const Array& c, const Array& x) { return std::pair(op(c * 0.5f + x), op(exp(c))); }, sum(in[0]), in[0]);
               return Arrays{carry, op(stacked), op(checkpoint([](const Array& x) { return op(sin(x)); })(in[0]))};
             },
             {data({5})});
       }},
      {"batches",
       [] {
         return of_function(
             [](const Arrays& in) {
               return Arrays{vmap([](const Array& x, const Array& y) { return op(softmax(op(x * y), -1)); })(in[0], in[1])};
             },
             {data({3, 4}), data({3, 4})});
       }},
      {"random numbers",
       [] {
         return of_function([](const Arrays& in) { return Arrays{op(random::normal({9})) + in[0], op(random::uniform(0.0, 1.0, {9}))}; },
                            {data({9})});
       }},
      {"attention",
       [] {
         return of_function([](const Arrays& in) { return Arrays{op(scaled_dot_product_attention(in[0], in[0], in[0], 0.5, "causal"))}; },
                            {data({1, 2, 70, 8})});
       },
       true},
      {"linear systems",
       [] {
         return of_function([](const Arrays& in) { return Arrays{op(linalg::solve(in[0] + 3.0f * eye(4), in[1]))}; },
                            {data({4, 4}), data({4})});
       },
       true},
      {"convolutions",
       [] {
         return of_function([](const Arrays& in) { return Arrays{op(conv2d(in[0], in[1])) * 2.0f}; },
                            {data({2, 6, 6, 3}), data({4, 3, 3, 3})});
       },
       true},
      {"a regular call",
       [] {
         return of_regular([](const Arrays& in) { return Arrays{sum(exp(in[0]) * in[1], 0), cumsum(in[0], 1), in[0] + transpose(in[0])}; },
                           {data({20, 20}), data({20})});
       },
       false, false},
      {"state in place",
       [] {
         return of_state([](Model& m, const Array& x) {
           m.weight = op(m.weight + mean(x));
           m.moment = op(m.moment * 0.9f) + m.weight;
           return op(sum(m.weight)) + op(random::uniform(0.0, 1.0, {}));
         });
       }},
      {"printing",
       [] {
         return of_state([](Model& m, const Array& x) {
           debug_print("weight {}", m.weight);
           m.weight = op(m.weight + mean(x));
           debug_print("weight {}", m.weight);
           return op(sum(m.weight));
         });
       }},
      {"printing in loops",
       [] {
         return of_state([](Model& m, const Array& x) {
           m.weight = fori_loop(
               0, 2,
               [](const Array& i, const Array& w) {
                 debug_print("{}: {}", i, w);
                 return op(w * 0.5f);
               },
               m.weight);
           m.moment = vmap([](const Array& row) {
             debug_print("{}", sum(row));
             return op(row + 1.0f);
           })(m.moment);
           return op(sum(x));
         });
       }},
      {"state that grows",
       [] {
         return of_state([](Model& m, const Array& x) {
           m.cache.push_back(op(mean(x, 0)) + static_cast<float>(m.cache.size()));
           m.bias = op(m.bias * 2.0f);
           return op(sum(m.cache.back()));
         });
       }},
      {"a training step",
       [] {
         return of_state([](Model& m, const Array& x) {
           auto [value, gradient] = value_and_grad(loss)(m, x);
           m.moment = op(m.moment * 0.9f) + gradient.weight;
           m.weight = op(m.weight - 0.1f * m.moment);
           m.bias = op(m.bias - 0.1f * gradient.bias);
           return value;
         });
       },
       true},
  };
}

void expect_same(const Arrays& got, const Arrays& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(array_equal(got[i], expected[i], true).item<bool>()) << what << ", result " << i;
}

// Fails the n-th time, for every n: `arm(n)`, and `arm(-1)` afterwards. `ready`: the call was made before, in part or on another function.
template <class Failure>
void fail_each(const Case& c, bool second_call, const std::function<void(std::int64_t)>& arm, std::int64_t most = 100000) {
  const tests::Quiet quiet;  // scenarios print
  // All that can be seen after a call: its results, the state, and the next random numbers.
  auto seen = [](const Scenario& s) {
    Arrays results = *s.results;
    for (const Array& a : s.state()) results.push_back(a);
    results.push_back(random::uniform(0.0, 1.0, {2}));
    return evaluated(results);
  };
  auto made = [&] {
    random::seed(5);
    Scenario s = c.make();
    if (second_call) s.call();
    return s;
  };
  Scenario whole = made();
  whole.call();
  const Arrays expected = seen(whole);
  std::int64_t failed = 0;
  for (std::int64_t n = 0;; ++n) {
    ASSERT_LT(n, most) << c.name;
    const std::string what = std::string(c.name) + (second_call ? ", second call" : "") + ", failure " + std::to_string(n);
    Scenario s = made();
    const Arrays before = s.state();
    Arrays copies;
    for (const Array& a : before) copies.push_back(a + 0.0f);
    evaluated(copies);
    const std::int64_t entries = s.entries();
    bool threw = false;
    arm(n);
    try {
      s.call();
    } catch (const Failure&) {
      threw = true;
    }
    arm(-1);
    if (threw) {
      ++failed;
      const Arrays after = s.state();
      ASSERT_EQ(after.size(), before.size()) << what;
      for (std::size_t i = 0; i < after.size(); ++i) ASSERT_EQ(after[i].data<float>(), before[i].data<float>()) << what << ", state " << i;
      expect_same(after, copies, what + ", state");
      ASSERT_LE(s.entries(), entries + 1) << what;
      s.call();
    }
    expect_same(seen(s), expected, what);
    if (testing::Test::HasFailure()) return;
    if (!threw) break;
  }
  EXPECT_GT(failed, 0) << c.name;
}

TEST(Faults, ArrayMemory) {
  for (const Case& c : cases())
    for (bool second : {false, c.traces}) fail_each<OutOfMemory>(c, second, runtime::fail_allocation);
}

TEST(Faults, OperatorNew) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "where the initialisation of an aggregate throws, g++ 12 ends the lives of its members before it destroys them";
#endif
  for (const Case& c : cases()) {
    if (c.library) continue;
    for (bool second : {false, c.traces}) fail_each<std::bad_alloc>(c, second, [](std::int64_t n) { news_left = n; });
  }
}

TEST(Faults, TheFunction) {
  for (const Case& c : cases())
    if (c.traces) fail_each<Thrown>(c, false, [](std::int64_t n) { operations_left = static_cast<int>(n); });
}

TEST(Faults, TheCodeGenerator) {
  std::size_t number = 0;
  for (const Case& c : cases())
    if (number++ % 4 == 0)  // each failure generates everything again
      fail_each<DeviceError>(c, false, [](std::int64_t n) {
        if (n >= 0) clear_cache();
        engine::fail_codegen(n);
      });
}

// A limit that leaves no room for the n-th array: nothing is lost, and with more room the same call succeeds.
TEST(Faults, TheMemoryLimit) {
  auto step = compile([](Model& m, const Array& x) {
    m.weight = m.weight + mean(x);
    m.cache.push_back(concatenate({x, x}, 0));
    return sum(matmul(x, m.weight), 1);
  });
  Model m;
  evaluated({m.weight, m.bias, m.moment});
  const Array x = data({300, 16}), sums = sum(matmul(x, m.weight + mean(x)), 1);
  const float* weight = m.weight.data<float>();
  sums.eval();
  int failed = 0;
  for (std::size_t room = 0; m.cache.empty(); room += 1000) {
    const std::size_t limit = active_memory() + room;
    ASSERT_EQ(set_memory_limit(limit), ~std::size_t{0});
    try {
      const Array got = step(m, x);
      ASSERT_EQ(set_memory_limit(~std::size_t{0}), limit);
      EXPECT_LE(active_memory(), limit);
      EXPECT_TRUE(array_equal(got, sums).item<bool>());
    } catch (const OutOfMemory& e) {
      set_memory_limit(~std::size_t{0});
      ++failed;
      EXPECT_TRUE(tests::has(e.what(), "allocate: the memory limit is reached; got ")) << e.what();
      EXPECT_TRUE(tests::has(e.what(), "set_memory_limit()"));
      ASSERT_EQ(m.weight.data<float>(), weight);
    }
  }
  EXPECT_GT(failed, 3);
}

// What is idle is given up before the limit is reached, and never more than the other limit says.
TEST(Faults, IdleMemoryCountsToo) {
  constexpr std::size_t kNone = ~std::size_t{0}, kMiB = std::size_t{1} << 20;
  clear_cache();
  {
    ones({4 * 1024, 1024}).eval();
  }
  EXPECT_GE(cache_memory(), 16 * kMiB);
  set_memory_limit(active_memory() + 10 * kMiB);
  {
    ones({2 * 1024, 1024}).eval();
  }
  EXPECT_LE(cache_memory(), 10 * kMiB);
  set_memory_limit(kNone);
  EXPECT_EQ(set_cache_limit(kMiB), kNone);
  EXPECT_LE(cache_memory(), kMiB);
  {
    ones({2 * 1024, 1024}).eval();
  }
  EXPECT_LE(cache_memory(), kMiB);
  EXPECT_EQ(set_cache_limit(kNone), kMiB);
}

}  // namespace
}  // namespace faults
