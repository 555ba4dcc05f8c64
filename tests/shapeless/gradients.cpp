// Gradients of what has a structure beside its sizes, windows and products: over many sizes above 1 one trace, whose results equal the
// regular ones in every bit.
#include <gtest/gtest.h>

#include <complex>
#include <functional>
#include <span>

#include "sinter/sinter.h"
#include "support/graphs.h"

namespace sinter {
namespace {

using Function = std::function<Array(const Array&)>;

struct Case {
  std::string name;
  int rows = 0, columns = 0;  // that x has more than the case's size
  Function f;                 // of x (n, h + rows, w + columns, c)
  std::vector<Dtype> dtypes{float32};
  int traces = 1;  // for all sizes above 1: more where the structure follows them
};

const std::vector<Dtype> kFloats{float16, bfloat16, float32, float64}, kAll{float16, bfloat16, float32, float64, complex64};

// Different numbers around 1, of which no two have the same size; of complex ones, the parts differ.
Array numbers(const Shape& shape, Dtype t) {
  const Array i = arange(shape.product(), float64), x = sin(i * i + 0.3) * 0.4 + 1;
  const Array y = is_complex(t) ? x.astype(t) + Array(std::complex<float>(0, 0.5f)) * sin(i).astype(float32) : x.astype(t);
  return y.reshape(shape);
}
// Cotangents: of both signs, and zeros of both.
Array weights(const Array& like) {
  const Array i = arange(like.size(), float32);
  return where(i % 5 == 0, -0.0f, where(i % 7 == 0, 0.0f, cos(i * 3))).reshape(like.shape());
}
Array real_part(const Array& x) { return is_complex(x.dtype()) ? real(x) : x; }

// Derivatives of f that a loss may ask for.
struct Derivative {
  const char* name;
  Array (*of)(const Function& f, const Array& x);
};
Array slope(const Function& f, const Array& x) {
  return grad([&](const Array& v) {
    const Array y = real_part(f(v));
    return sum(y * weights(y).astype(y.dtype()));
  })(x);
}
Array slope_of_squares(const Function& f, const Array& x) {
  return grad([&](const Array& v) { return sum(square(real_part(f(v)))); })(x);
}
constexpr Derivative kDerivatives[] = {
    {"first", slope},
    {"second",
     [](const Function& f, const Array& x) {
       return grad([&](const Array& v) {
         const Array g = real_part(slope_of_squares(f, v));
         return sum(g * weights(g).astype(g.dtype()));
       })(x);
     }},
    {"of_examples",
     [](const Function& f, const Array& x) {
       return vmap([&](const Array& v) { return slope(f, v.reshape({1, v.shape(0), v.shape(1), v.shape(2)})); })(x);
     }},
    {"forward", [](const Function& f, const Array& x) { return jvp(f, std::tuple(x), std::tuple(weights(x).astype(x.dtype()))).second; }},
};

struct Pool {
  PerAxis<2> kernel, stride, padding;
};
std::string name_of(const Pool& p) {
  std::string s;
  for (const PerAxis<2>& v : {p.kernel, p.stride, p.padding}) s.append("_").append(std::to_string(v[0])).append(std::to_string(v[1]));
  return s;
}

std::vector<Case> cases() {
  std::vector<Case> list{
      {"frames", 2, 0, [](const Array& x) { return as_strided(flatten(x), {(x.size() - 3) / 2 + 1, 3}, {2, 1}); }, kAll},
      {"frames_of_each_place", 2, 0, [](const Array& x) { return as_strided(flatten(x), {x.size() - 3, 4}, {1, 1}); }, kAll},
      {"places_of_each_frame", 2, 0, [](const Array& x) { return as_strided(flatten(x), {4, x.size() - 3}, {1, 1}); }, kAll},
      {"frames_apart", 4, 0, [](const Array& x) { return as_strided(flatten(x), {x.size() / 5, 2}, {5, 1}, 3); }},
      {"columns", 2, 0,
       [](const Array& x) {
         const Array m = x.reshape({x.shape(0) * x.shape(1), x.shape(2) * x.shape(3)});
         return as_strided(m, {m.shape(1) - 2, m.shape(0), 2}, {1, m.shape(1), 1}, 1);
       }},
      {"from_a_place_that_follows", 2, 0,
       [](const Array& x) {
         const Dim row = x.shape(2) * x.shape(3);
         return as_strided(x, {x.shape(0), x.shape(1) - 1, 2, row}, {x.shape(1) * row, row, row, 1});
       }},
      {"transposed", 0, 0,
       [](const Array& x) {
         return as_strided(x, {x.shape(3), x.shape(1), x.shape(0)}, {1, x.shape(2) * x.shape(3), x.shape(1) * x.shape(2) * x.shape(3)});
       }},
      {"backwards", 0, 0, [](const Array& x) { return as_strided(x, {x.size() - 1, 2}, {-1, -1}, x.size() - 1); }, kAll},
      {"repeated", 0, 0, [](const Array& x) { return as_strided(x, {3, x.size()}, {0, 1}); }},
      {"across_rows", 1, 0,
       [](const Array& x) {
         const Dim row = x.shape(2) * x.shape(3);
         return as_strided(x, {x.shape(1) - 1, row - 1}, {row + 1, 1});
       }},
  };
  const Pool pools[] = {{2, 1, 0},           {3, 2, 0}, {3, 2, 1}, {3, 1, 1}, {3, 3, 0}, {2, 3, 0}, {5, 2, 2}, {{3, 2}, {1, 2}, {1, 0}},
                        {{1, 4}, {2, 1}, 0}, {7, 1, 3}};
  for (const Pool& p : pools) {
    const int rows = p.kernel[0] + p.stride[0] - 2, columns = p.kernel[1] + p.stride[1] - 2;
    const bool all = p.kernel[0] == 3 && p.stride[0] < 3;
    list.push_back({"avg_pool" + name_of(p), rows, columns, [p](const Array& x) { return avg_pool2d(x, p.kernel, p.stride, p.padding); },
                    all ? kFloats : std::vector{float32}});
    list.push_back({"max_pool" + name_of(p), rows, columns, [p](const Array& x) { return max_pool2d(x, p.kernel, p.stride, p.padding); },
                    all ? kFloats : std::vector{float32}});
  }
  // Windows of 49 elements: few of them are sums that are written out.
  list.push_back({"avg_pool_of_many", 6, 6, [](const Array& x) { return avg_pool2d(x, 7, PerAxis<2>(1)); }, {float32}, 2});
  const std::vector<std::pair<std::string, Axes>> products{{"0", 0}, {"1", 1}, {"3", 3}, {"12", {1, 2}}, {"02", {0, 2}}, {"all", {}}};
  for (const auto& [name, axes] : products)
    list.push_back({"prod_" + name, 0, 0, [axes](const Array& x) { return prod(x, axes); },
                    name == "1" || name == "02" ? kAll : std::vector{float32}});
  list.push_back({"prod_with_zeros", 0, 0, [](const Array& x) {
                    const Array i = arange(x.size()).reshape(x.shape());
                    return prod(where(i % 11 == 0, 0 * x, x), {1, 3});
                  }});
  return list;
}

class Gradients : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Gradients, ::testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

TEST_P(Gradients, FollowSizes) {
  const Case& c = GetParam();
  for (const Dtype t : c.dtypes)
    for (const Derivative& derivative : std::span(kDerivatives).first(t == float32 ? std::size(kDerivatives) : 2)) {
      const auto of = derivative.of;
      const std::function<Array(const Array&)> f = [&c, of](const Array& x) { return of(c.f, x); };
      auto compiled = compile(f, true);
      const auto check = [&](int n, int h, int w, int channels) {
        const Array x = numbers({n, h + c.rows, w + c.columns, channels}, t);
        const tests::Tensor expected = tests::read(f(x)), got = tests::read(compiled(x));
        ASSERT_EQ(graph::difference({&expected, 1}, {&got, 1}), "") << derivative.name << ' ' << t << ' ' << x.shape() << '\n'
                                                                    << compiled.explain();
      };
      for (int i = 0; i < (t == float32 ? 30 : 6); ++i) check(2 + i % 3, 2 + i * 7 % 11, 2 + i * 5 % 13, 2 + i * 3 % 5);
      EXPECT_LE(compiled.stats().traces, c.traces) << derivative.name << ' ' << t << '\n' << compiled.explain();
      for (auto [n, h, w, channels] : {std::array{1, 5, 4, 3}, {2, 1, 4, 3}, {2, 4, 1, 3}, {2, 3, 4, 1}, {1, 1, 1, 2}})
        check(n, h, w, channels);
    }
}

}  // namespace
}  // namespace sinter
