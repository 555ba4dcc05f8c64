// Gradients where nodes of a trace for any sizes are equal for those of a call: views that change nothing there, and what is made of them.
// A regular call has one node for them; that all cotangents add up in its order shows in the last bits.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "sinter/sinter.h"
#include "support/graphs.h"
#include "support/quiet.h"

namespace sinter {
namespace {

using Function = std::function<Array(const Array& z, const Array& y)>;
struct Named {
  const char* name;
  Function f;
};
void PrintTo(const Named& n, std::ostream* out) { *out << n.name; }

// Of z and y of one shape: z.
const Named kViews[] = {
    {"itself", [](const Array& z, const Array&) { return z; }},
    {"slice", [](const Array& z, const Array& y) { return slice(z, {0, 0}, {y.shape(0), y.shape(1)}); }},
    {"reshape", [](const Array& z, const Array& y) { return reshape(z, y.shape()); }},
    {"broadcast", [](const Array& z, const Array& y) { return broadcast_to(z, y.shape()); }},
    {"pad", [](const Array& z, const Array& y) { return pad(z, {{0, y.shape(0) - z.shape(0)}, {0, 0}}); }},
};
// y is differentiated, or not.
const Named kUses[] = {
    {"mean", [](const Array& z, const Array&) { return mean(z, 1); }},
    {"var", [](const Array& z, const Array&) { return var(z, 1); }},
    {"columns_var", [](const Array& z, const Array&) { return var(z, 0); }},
    {"divided", [](const Array& z, const Array&) { return z / z.shape(0); }},
    {"times_other", [](const Array& z, const Array& y) { return z * y; }},
    {"product", [](const Array& z, const Array& y) { return matmul(transpose(z), y); }},
    {"softmax", [](const Array& z, const Array& y) { return softmax(z * y, -1); }},
    {"numbers", [](const Array& z, const Array&) { return z * expand_dims(arange(z.shape(0), float32), 1); }},
    {"checkpoint", [](const Array& z, const Array&) { return checkpoint([](const Array& v) { return sin(v * 1.7f) * v; })(z); }},
    {"loop",
     [](const Array& z, const Array& y) {
       return fori_loop(0, 2, [&](const Array&, const Array& c) { return sin(c * y * 1.5) + cos(c * y); }, z);
     }},
    {"scan",
     [](const Array& z, const Array& y) {
       auto step = [&](const Array& c, const Array& row) { return std::pair(c + row * y, sum(c * y)); };
       return scan(step, y * 0, z).second;
     }},
    {"attention",
     [](const Array& z, const Array& y) {
       auto heads = [](const Array& a) { return reshape(a, {1, 1, a.shape(0), a.shape(1)}); };
       return scaled_dot_product_attention(heads(z), heads(y), heads(y), 0.4, "causal");
     }},
};

class EqualNodes : public ::testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(All, EqualNodes, ::testing::ValuesIn(kUses), [](const auto& info) { return info.param.name; });

Array numbers(const Shape& shape, double from) {
  const Array i = arange(shape.product(), float32);
  return (sin(i * i + from) * 0.9 + 1).astype(float32).reshape(shape);
}

TEST_P(EqualNodes, GetCotangentsInTheOrderOfRegularCalls) {
  const Function use = GetParam().f;
  const tests::Quiet quiet;
  for (const Named& view : kViews)
    for (const bool both : {false, true}) {
      auto loss = [&](const Array& x, const Array& y) {
        const Array z = tanh(x);
        return sum(sin(use(view.f(z, y), y))) + sum(exp(use(z, y) * 0.1f)) + sum(sin(use(z, view.f(y, z)) * 0.3f));
      };
      const std::function<Array(const Array&, const Array&)> f = [&](const Array& x, const Array& y) {
        if (!both) return grad([&](const Array& v) { return loss(v, y); })(x);
        const auto [dx, dy] = grad<0, 1>(loss)(x, y);
        return stack({dx, dy});
      };
      auto shapeless = compile(f, true), compiled = compile(f);
      for (const int n : {2, 7, 33, 50, 64, 7}) {
        const Array x = numbers({n, 7}, 0.3), y = numbers({n, 7}, 0.8);
        const tests::Tensor expected = tests::read(f(x, y));
        for (auto* other : {&shapeless, &compiled}) {
          const tests::Tensor got = tests::read((*other)(x, y));
          ASSERT_EQ(graph::difference({&expected, 1}, {&got, 1}), "")
              << view.name << ", " << (both ? "of both, " : "") << n << (other == &shapeless ? ", shapeless" : "");
        }
      }
    }
}

}  // namespace
}  // namespace sinter
