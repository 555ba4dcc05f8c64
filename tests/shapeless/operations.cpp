// Every operation on shapes that change: the compiled call equals the regular one bit for bit, and one trace serves all sizes above 1.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <sstream>

#include "api/common.h"
#include "ops/op.h"
#include "sinter/sinter.h"
#include "support/quiet.h"

namespace sinter {
namespace {

using Arrays = std::vector<Array>;

struct Case {
  std::string name;
  const char* operations;                                      // of structured.def that it reaches, by their names
  std::function<Arrays(std::int64_t n, std::int64_t m)> make;  // arguments
  std::function<Arrays(const Arrays& x)> f;
  int traces = 1;       // for all sizes above 1: more where a size is a structure
  int derivatives = 1;  // of derivatives
};

// Different numbers, of which none is whole.
Array numbers(const Shape& shape, double from = 0.25) {
  return (sin(arange(shape.product(), float64) + from) + 1.5).astype(float32).reshape(shape);
}
Array indices(const Shape& shape, std::int64_t below) {
  const Array i = arange(shape.product()) * 7 + 3;
  return (below == 0 ? i * 0 : i % below).reshape(shape);
}
Arrays matrix(std::int64_t n, std::int64_t m) { return {numbers({n, m})}; }
Arrays two(std::int64_t n, std::int64_t m) { return {numbers({n, m}), numbers({n, m}, 2)}; }

// Derivatives by the first argument, which a loss reads directly, in part by the same operations, and through each of these.
using View = Array (*)(const Array& a, const Array& b);
Arrays gradients_through(const Arrays& x, std::span<const View> views) {
  Arrays results;
  for (const View view : views) {
    auto loss = [view](const Array& a, const Array& b) {
      const Array v = view(a, b);
      return sum(exp(v) * 0.3) + sum(v * v * v) + sum(exp(a) * b) + sum(sin(a) * b) + sum(a);
    };
    results.push_back(grad(loss)(x[0], x[1]));
  }
  return results;
}
constexpr View kViews[] = {
    [](const Array& a, const Array& b) { return a * b + a; },
    [](const Array& a, const Array& b) { return broadcast_to(a, b.shape()); },
    [](const Array& a, const Array& b) { return reshape(a, b.shape()); },
    [](const Array& a, const Array& b) { return slice(a, {0, 0}, {b.shape(0), b.shape(1)}); },
    [](const Array& a, const Array& b) { return pad(a, {{0, b.shape(0) - a.shape(0)}, {0, 0}}); },
    [](const Array& a, const Array& b) { return reshape(broadcast_to(a, b.shape()), a.shape()); },
    [](const Array& a, const Array&) { return flip(a); },
    [](const Array& a, const Array& b) { return where(b > 1.5, broadcast_to(a, b.shape()), a); },
};
// Of one half, found by two sizes that are equal.
Array two_slices(const Array& a, const Array& b) {
  const Array first = slice(a, {0, 0}, {a.shape(0) / 2, a.shape(1)}), second = slice(a, {0, 0}, {b.shape(0) / 2, b.shape(1)});
  return sum(exp(first) * 0.3) + sum(exp(second) * slice(b, {0, 0}, {b.shape(0) / 2, b.shape(1)})) + sum(sin(a) * 0.7);
}
constexpr View kSwaps[] = {[](const Array& a, const Array&) { return reshape(a, {a.shape(1), a.shape(0)}); }};

std::vector<Case> cases() {
  std::vector<Case> list{
      {"input", "input", matrix, [](const Arrays& x) { return x; }},
      {"constants", "constant copy", matrix,
       [](const Arrays& x) { return Arrays{ones(x[0].shape()), full({x[0].shape(1)}, 3) + x[0], x[0] / x[0].size()}; }},
      {"arange", "arange", matrix,
       [](const Arrays& x) { return Arrays{arange(x[0].shape(0)), arange(1, x[0].shape(1) + 1, 2), x[0] * arange(x[0].shape(1))}; }},
      {"ramps", "arange", matrix,
       [](const Arrays& x) {
         return Arrays{linspace(0, 1, x[0].shape(0) + 2), hamming(x[0].shape(0) + 2), bartlett(x[0].shape(1) + 2), eye(x[0].shape(0)),
                       tril(x[0])};
       }},
      {"random_bits", "random_bits", [](auto n, auto m) { return Arrays{random::key(3), numbers({n, m})}; },
       [](const Arrays& x) {
         return Arrays{random::bits(x[1].shape(), 4, x[0]), x[1] * random::uniform(0, 1, x[1].shape(), float32, x[0]),
                       random::normal({x[1].shape(0)}, float32, 0, 1, x[0])};
       }},
      {"astype", "astype", matrix, [](const Arrays& x) { return Arrays{(x[0] * 10).astype(int32), x[0].astype(float16) + 1}; }},
      {"reshape", "reshape", matrix,
       [](const Arrays& x) {
         const Dim n = x[0].shape(0), m = x[0].shape(1);
         return Arrays{reshape(x[0], {n * m, -1}), reshape(x[0], {m, n}), flatten(x[0]) * 2,
                       reshape(concatenate({x[0], x[0]}), {2, -1, m})};
       }},
      {"transpose", "transpose", matrix,
       [](const Arrays& x) { return Arrays{transpose(x[0]) + 1, swapaxes(x[0], 0, 1), moveaxis(x[0], 0, 1) * 2}; }},
      {"broadcast_to", "broadcast_to", [](auto n, auto m) { return Arrays{numbers({n, 1}), numbers({m})}; },
       [](const Arrays& x) { return Arrays{x[0] + x[1], broadcast_to(x[1], {3, x[1].shape(0)}), broadcast_arrays(x)[0]}; }},
      {"slice", "slice", matrix,
       [](const Arrays& x) {
         const Dim m = x[0].shape(1);
         return Arrays{slice(x[0], {1}, {100}), slice(x[0], {0, 0}, {5, m / 2}), slice(x[0], {0, -1}, {100, -100}, {1, -2}), flip(x[0]),
                       slice(x[0], {-3, 1}, {100, -1})};
       }},
      {"split", "slice", [](auto n, auto m) { return Arrays{numbers({3 * n, m})}; },
       [](const Arrays& x) {
         Arrays parts = split(x[0], 3), more = split(x[0], {2, 4}, 1);
         parts.insert(parts.end(), more.begin(), more.end());
         return parts;
       }},
      {"as_strided", "as_strided", matrix,
       [](const Arrays& x) {
         return Arrays{as_strided(x[0], {x[0].size() / 2, 2}, {2, 1}), as_strided(x[0], {x[0].size()}, {-1}, x[0].size() - 1)};
       },
       1, 7},
      {"concatenate", "concatenate", two,
       [](const Arrays& x) {
         return Arrays{concatenate({x[0], x[1], x[0]}, 1), stack(x, 1), exp(concatenate({x[0], ones({2, x[0].shape(1)})}, 0))};
       }},
      {"pad", "pad", matrix, [](const Arrays& x) { return Arrays{pad(x[0], 1), pad(x[0], {{0, x[0].shape(1)}, {2, 0}}, 7)}; }},
      {"take", "take", [](auto n, auto m) { return Arrays{numbers({n, m}), indices({m}, n)}; },
       [](const Arrays& x) { return Arrays{take(x[0], x[1], 0), take(x[0], 0, 1), take(x[0], -1, 0), take(x[0], Array({0, 1, 0}), 1)}; }},
      {"take_along_axis", "take_along_axis", [](auto n, auto m) { return Arrays{numbers({n, m}), indices({3, m}, n)}; },
       [](const Arrays& x) { return Arrays{take_along_axis(x[0], x[1], 0)}; }},
      {"scatter", "scatter_add put_along_axis", [](auto n, auto m) { return Arrays{numbers({n, m}), indices({5, m}, n), numbers({5, m})}; },
       [](const Arrays& x) { return Arrays{scatter_add_axis(x[0], x[1], x[2], 0), put_along_axis(x[0], x[1], 2, 0)}; }},
      {"sums", "sum", matrix,
       [](const Arrays& x) {
         return Arrays{sum(x[0]),  sum(x[0], 0), sum(x[0], 1, true), x[0] - mean(x[0], 1, true),
                       mean(x[0]), var(x[0], 1), sinter::std(x[0])};
       }},
      {"variance", "sum", matrix, [](const Arrays& x) { return Arrays{var(x[0], 0), sinter::std(x[0], 0, true, 1)}; }},
      {"prod", "prod", matrix, [](const Arrays& x) { return Arrays{prod(x[0], 0), prod(x[0])}; }},
      {"extremes", "max min argmax argmin", matrix,
       [](const Arrays& x) { return Arrays{max(x[0]), min(x[0], 0), argmax(x[0], 1), argmin(x[0])}; }},
      {"all_any", "all any", matrix, [](const Arrays& x) { return Arrays{all(x[0] > 0.6, 0), any(x[0] > 2.4, 1), all(x[0] < 3)}; }},
      {"softmax", "sum max", matrix,
       [](const Arrays& x) { return Arrays{softmax(x[0], -1), log_softmax(x[0], 0), logsumexp(x[0]), norm(x[0], 1)}; }},
      {"norms", "sum", matrix, [](const Arrays& x) { return Arrays{layer_norm(x[0]), rms_norm(x[0])}; }},
      {"cumulative", "cumsum cumprod cummax cummin logcumsumexp", matrix,
       [](const Arrays& x) {
         return Arrays{cumsum(x[0], 0), cumprod(x[0], 1, true), cummax(x[0]), cummin(x[0], 1, false, false), logcumsumexp(x[0], 0)};
       }},
      {"matmul", "matmul addmm", [](auto n, auto m) { return Arrays{numbers({n, m}), numbers({m, n}), numbers({n})}; },
       [](const Arrays& x) { return Arrays{matmul(x[0], x[1]), matmul(x[0], x[1] + 1) * 2, addmm(x[2], x[0], x[1]), matmul(x[1], x[2])}; }},
      {"solve", "solve", [](auto n, auto m) { return Arrays{numbers({n, n}) + eye(n) * 5, numbers({n, m})}; },
       [](const Arrays& x) { return Arrays{linalg::solve(x[0], x[1]), linalg::inv(x[0])}; }},
      {"conv", "conv", [](auto n, auto m) { return Arrays{numbers({n, m + 2, 3}), numbers({4, 2, 3})}; },
       [](const Arrays& x) { return Arrays{conv1d(x[0], x[1]), conv1d(x[0], x[1], 2, 1)}; }},
      {"conv_gradients", "conv_input conv_weight", [](auto n, auto m) { return Arrays{numbers({n, m + 2, 3}), numbers({4, 2, 3})}; },
       [](const Arrays& x) {
         auto loss = [](const Array& input, const Array& weight) { return sum(square(conv1d(input, weight))); };
         auto [a, b] = grad<0, 1>(loss)(x[0], x[1]);
         return Arrays{a, b};
       }},
      {"pools", "", [](auto n, auto m) { return Arrays{numbers({2, n + 3, m + 3, 2})}; },
       [](const Arrays& x) { return Arrays{max_pool2d(x[0], 2), avg_pool2d(x[0], 2, PerAxis<2>(1))}; }},
      {"attention", "matmul blocks",
       [](auto n, auto m) { return Arrays{numbers({2, 4, n, 8}), numbers({2, 2, n + m, 8}), numbers({2, 2, n + m, 8}, 1)}; },
       [](const Arrays& x) { return Arrays{scaled_dot_product_attention(x[0], x[1], x[2], 0.3, "causal"), rope(x[0], 8)}; },
       2},  // of up to four queries; of more
      {"sort", "argsort", matrix, [](const Arrays& x) { return Arrays{sort(x[0], 0), argsort(sin(x[0] * 9), 1)}; }},
      {"losses", "", [](auto n, auto m) { return Arrays{numbers({n, m}), indices({n}, m)}; },
       [](const Arrays& x) {
         return Arrays{cross_entropy(x[0], x[1], Reduction::mean), mse_loss(x[0], x[0] * 2, Reduction::mean), one_hot(x[1], x[0].shape(1))};
       }},
      {"beyond_a_dtype", "", matrix,
       [](const Arrays& x) {
         const Array i = (x[0] * 10).astype(int8);
         return Arrays{i < x[0].shape(0) * 40, clip(i, 12, x[0].shape(1) * 40)};
       },
       4},  // below and above 127
      {"checkpoint", "checkpoint barrier", matrix,
       [](const Arrays& x) {
         auto f = checkpoint([](const Array& v) { return exp(sin(v)); });
         return Arrays{grad([&](const Array& v) { return sum(f(v)); })(x[0])};
       }},
      {"cond", "cond get", matrix,
       [](const Arrays& x) {
         return Arrays{cond(sum(x[0]) > 9, [](const Array& v) { return v + 1; }, [](const Array& v) { return v * 2; }, x[0])};
       }},
      {"while_loop", "while_loop", matrix,
       [](const Arrays& x) {
         const auto start = ::std::pair(Array(0), x[0]);
         const auto last = while_loop([](const auto& s) { return s.first < 3; },
                                      [](const auto& s) { return ::std::pair(s.first + 1, s.second * 2); }, start);
         return Arrays{last.second, fori_loop(0, x[0].shape(0), [](const Array& i, const Array& v) { return v + i; }, x[0])};
       }},
      {"debug_print", "debug_print", matrix,
       [](const Arrays& x) {
         const Array rows = vmap([](const Array& v) {
           debug_print("{}", v);
           return sum(v);
         })(x[0]);
         return Arrays{rows, scan(
                                 [](const Array& c, const Array& v) {
                                   debug_print("{} {}", c, v);
                                   return std::pair(c + v, c * v);
                                 },
                                 Array(0.0f), rows)
                                 .second};
       }},
      {"scan", "scan", matrix,
       [](const Arrays& x) {
         auto [last, all] = scan([](const Array& c, const Array& v) { return std::pair(c + v, c * v); }, zeros({x[0].shape(1)}), x[0]);
         return Arrays{last, all};
       }},
      {"custom", "custom_vjp custom_jvp custom_vmap", matrix,
       [](const Arrays& x) {
         auto back = custom_vjp([](const Array& v) { return sin(v); }, [](const Array& v) { return std::pair(sin(v), v); },
                                [](const Array& saved, const Array& g) { return g * saved; });
         auto along = custom_jvp(
             [](const Array& v) { return cos(v); },
             [](const auto& v, const auto& t) { return ::std::pair(cos(::std::get<0>(v)), ::std::get<0>(t) * ::std::get<0>(v)); });
         auto batched = custom_vmap([](const Array& v) { return v * 2; }, [](const Array& v) { return v * 2; });
         return Arrays{grad([&](const Array& v) { return sum(back(v)); })(x[0]), grad([&](const Array& v) { return sum(along(v)); })(x[0]),
                       vmap(batched)(x[0])};
       }},
      {"recurrence", "linear_recurrence", matrix,
       [](const Arrays& x) { return Arrays{grad([](const Array& v) { return sum(cumprod(v, 0)); })(x[0])}; }},
      {"gradients", "", two,
       [](const Arrays& x) {
         auto loss = [](const Array& a, const Array& b) {
           const Array y = softmax(a * b + mean(a, 0), -1);
           return sum(y * cumsum(b, 1)) + max(a) + mean(concatenate({a, b}, 0)) + sum(slice(a, {0, 0}, {1, 100})) + sum(transpose(a));
         };
         auto [a, b] = grad<0, 1>(loss)(x[0], x[1]);
         return Arrays{a, b};
       }},
      // Views that a call of fixed sizes does not see: what reaches their operand adds up in the same order.
      {"gradients_through_views", "", two, [](const Arrays& x) { return gradients_through(x, kViews); }},
      {"gradients_of_equal_nodes", "", two, [](const Arrays& x) { return Arrays{grad(two_slices)(x[0], x[1])}; }, 2},  // a half may be 1
      {"gradients_through_swapped_sizes", "", two, [](const Arrays& x) { return gradients_through(x, kSwaps); }, 2},
      {"vmap", "", two,
       [](const Arrays& x) {
         auto f = [](const Array& a, const Array& b) { return softmax(a, 0) * sum(b) + cumsum(b, 0) - flip(a); };
         return Arrays{vmap(f)(x[0], x[1])};
       }},
      {"gradients_of_vmap", "", two,
       [](const Arrays& x) {
         auto f = [](const Array& a, const Array& b) { return sum(square(a)) * mean(b); };
         return Arrays{grad([&](const Array& a) { return sum(vmap(f)(a, x[1])); })(x[0]), vmap(grad(f))(x[0], x[1])};
       }},
      {"read_sizes", "", matrix,
       [](const Arrays& x) {
         const Dim n = x[0].shape(0), m = x[0].shape(1);
         return Arrays{reshape(x[0] * n, {n * m, 1}), x[0] / (n + 2 * m), arange(n * m - 1), sum(x[0]) / x[0].size()};
       }},
  };
  // One for each line of elementwise.def, on operands of equal shapes and on a row.
  for (std::size_t i = 0; i < ops::all_ops().size(); ++i) {
    const auto op = static_cast<ops::Op>(i);
    const ops::OpInfo& info = ops::info(op);
    if (!ops::is_elementwise(op)) continue;
    const bool integers = info.rule == ops::Rule::Integer || info.rule == ops::Rule::Shift;
    list.push_back({std::string(info.name), "",
                    [integers](auto n, auto m) {
                      Arrays x{numbers({n, m}), numbers({m}, 2), numbers({n, 1}, 3)};
                      if (integers)
                        for (Array& a : x) a = astype(a * 3, int32);
                      return x;
                    },
                    [op, count = info.operands, choice = info.rule == ops::Rule::Where](const Arrays& x) {
                      const Array first = choice ? x[0] > 1.5 : x[0];
                      const Operand a(first), b(x[1]), c(x[2]);
                      if (count == 1) return Arrays{api::elementwise(op, {&a})};
                      if (count == 2) return Arrays{api::elementwise(op, {&a, &b}), api::elementwise(op, {&a, &a})};
                      return Arrays{api::elementwise(op, {&a, &b, &c})};
                    }});
  }
  return list;
}

class Operations : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Operations, ::testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string outcome(FunctionRef<Arrays()> f, Arrays& results) {
  try {
    results = f();
    eval(results);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

using Sizes = std::pair<std::int64_t, std::int64_t>;

// The compiled call equals the regular one for all of these, and one trace serves those above 1.
void check_sizes(const Case& c, const std::function<Arrays(const Arrays&)>& f, std::initializer_list<Sizes> sizes, int traces) {
  const tests::Quiet quiet;
  auto compiled = compile(f, true);
  bool fails = false;  // which every call finds out by a trace
  auto check = [&](std::int64_t n, std::int64_t m) {
    const Arrays x = c.make(n, m);
    Arrays expected, got;
    const std::string error = outcome([&] { return f(x); }, expected), own = outcome([&] { return compiled(x); }, got);
    ASSERT_EQ(own, error) << n << ", " << m << "\n" << compiled.explain();
    fails = fails || !error.empty();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].dtype(), expected[i].dtype()) << i;
      ASSERT_TRUE(got[i].shape() == expected[i].shape())
          << i << ": " << got[i].shape() << " for " << expected[i].shape() << " at " << n << ", " << m;
      ASSERT_TRUE(array_equal(got[i], expected[i], true).item<bool>())
          << "result " << i << " at " << n << ", " << m << ": " << got[i] << "\n"
          << expected[i] << compiled.explain();
    }
  };
  for (auto [n, m] : sizes) check(n, m);
  EXPECT_LE(fails ? 0 : compiled.stats().traces, traces) << compiled.explain();
  for (auto [n, m] : {Sizes(1, 4), {0, 4}, {4, 0}, {4, 1}, {1, 1}, {0, 0}, {6, 5}, {2, 2}}) check(n, m);
  EXPECT_LE(fails ? 0 : compiled.stats().traces, 20) << compiled.explain();
}

TEST_P(Operations, FollowSizes) {
  check_sizes(GetParam(), GetParam().f, {{5, 4}, {2, 2}, {3, 7}, {17, 2}, {4, 33}, {5, 4}, {40, 50}}, GetParam().traces);
}

// Transforms of f. Sizes that are equal, to each other or to what is cut out, may have a trace of their own: equal nodes get their
// cotangents together, as in the regular call.
constexpr std::initializer_list<Sizes> kApart = {{7, 9}, {8, 19}, {17, 14}, {11, 33}, {7, 9}, {40, 50}, {50, 41}};

Arrays floating(const Arrays& x) {
  Arrays some;
  for (const Array& a : x)
    if (is_floating(a.dtype())) some.push_back(a);
  return some;
}
// f of these in the places of x's floating arrays.
Arrays with_floating(const Case& c, Arrays x, const Arrays& given) {
  std::size_t next = 0;
  for (Array& a : x)
    if (is_floating(a.dtype())) a = given[next++];
  return c.f(x);
}

// A number that all floating results make.
Array loss(const Case& c, const Arrays& x, const Arrays& given) {
  Array total(0.0f);
  for (const Array& r : floating(with_floating(c, x, given))) total = total + sum(square(r) + r);
  return total;
}

TEST_P(Operations, GradientsFollowSizes) {
  const Case& c = GetParam();
  check_sizes(
      c, [&c](const Arrays& x) { return grad([&](const Arrays& given) { return loss(c, x, given); })(floating(x)); }, kApart,
      c.derivatives);
}

TEST_P(Operations, SecondGradientsFollowSizes) {
  const Case& c = GetParam();
  check_sizes(
      c,
      [&c](const Arrays& x) {
        auto slopes = [&](const Arrays& given) {
          Array total(0.0f);
          for (const Array& r : grad([&](const Arrays& inner) { return loss(c, x, inner); })(given)) total = total + sum(square(r));
          return total;
        };
        return grad(slopes)(floating(x));
      },
      kApart, c.derivatives);
}

TEST_P(Operations, TangentsFollowSizes) {
  const Case& c = GetParam();
  check_sizes(
      c,
      [&c](const Arrays& x) {
        Arrays along;
        for (const Array& a : floating(x)) along.push_back(a * 0.5);
        return jvp([&](const Arrays& given) { return floating(with_floating(c, x, given)); }, std::tuple(floating(x)), std::tuple(along))
            .second;
      },
      kApart, c.derivatives);
}

TEST_P(Operations, BatchesFollowSizes) {
  const Case& c = GetParam();
  check_sizes(
      c,
      [&c](const Arrays& x) {
        Arrays batch;
        for (const Array& a : x) batch.push_back(stack({a, a, a}));
        return vmap(c.f)(batch);
      },
      kApart, c.derivatives);
}

TEST(Operations, NoneIsForgotten) {
  std::set<std::string> seen;
  for (const Case& c : cases()) {
    std::istringstream names(c.operations);
    for (std::string name; names >> name;) seen.insert(name);
  }
  for (const ops::OpInfo& info : ops::all_ops())
    EXPECT_TRUE(ops::OpKind::Elementwise == info.kind || seen.contains(std::string(info.name))) << info.name << " has no case in this file";
}

}  // namespace
}  // namespace sinter
