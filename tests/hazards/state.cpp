// State, leaks out of traces, errors inside functions, memory that is given up.
#include <algorithm>
#include <map>
#include <optional>

#include "hazards/hazards.h"
#include "support/thrown.h"

namespace sinter::tests {
namespace {

float value(const Array& a) { return a.item<float>(); }

TEST(hazard, hazard_18_values_kept_from_a_trace) {
  std::vector<Array> vector;
  std::map<std::string, Array> map;
  std::optional<Array> optional;
  Array plain;
  auto f = compile(
      [&](const Array& x) {
        Array z = exp(x);
        vector.push_back(z);
        map["z"] = z * 2;
        optional = x;
        plain = z + x;
        return z + 1;
      },
      {.name = "leaky"});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(value(f(0.0)), 2);
  ASSERT_EQ(vector.size(), 1u) << "the cached call does not run the function";
  for (const Array& leaked : {vector[0], map["z"], *optional, plain})
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { leaked.item<float>(); }, [&] { leaked.eval(); }, [&] { leaked.to_vector<float>(); }, [&] { (void)to_string(leaked); },
             [&] { sum(leaked + 1).eval(); }, [&] { f(leaked); }, [&] { concatenate({reshape(leaked, {1}), ones({1})}); }}) {
      const std::string text = thrown<TraceError>(use);
      EXPECT_TRUE(has(text, "'leaky'") && has(text, "escaped")) << text;
    }
  EXPECT_EQ(value(f(0.0)), 2) << "still usable";
}

struct Linear {
  Array w = zeros({3}), b{0.0};
  SINTER_FIELDS(w, b)
};
struct Adam {
  Array rate{0.1}, steps{0.0};
  Linear m, v;
  SINTER_FIELDS(rate, steps, m, v)
  void update(Array& p, Array& m, Array& v, const Array& g) {
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p = p - rate * (m / (1 - power(0.9, steps))) / (sqrt(v / (1 - power(0.999, steps))) + 1e-8);
  }
  void update(Linear& p, const Array& gw, const Array& gb) {
    steps = steps + 1;
    update(p.w, m.w, v.w, gw);
    update(p.b, m.b, v.b, gb);
  }
};
Array train(Linear& model, Adam& adam, const Array& x, const Array& y) {
  const Array error = sum(x * model.w, 1) + model.b - y;
  adam.update(model, mean(expand_dims(error, 1) * x, 0), mean(error));
  return mean(square(error));
}
Arrays leaves(Linear& m, Adam& a) { return {m.w, m.b, a.rate, a.steps, a.m.w, a.m.b, a.v.w, a.v.b}; }

TEST(hazard, hazard_19_optimizer_state_and_a_smaller_last_batch) {
  const auto batch = [](int i) {
    const int n = i == 3 ? 3 : 8;
    const Array x = sin(reshape(arange(3 * n, float32) + i, {n, 3}) * 1.7);
    return std::pair{x, sum(x * Array({1.f, -2.f, 3.f}), 1) + 0.5};
  };
  Linear regular_model, model, other_model;
  Adam regular_adam, adam, other_adam;
  auto step = compile(train);
  // The optimizer out of the state, as the model is too: an error that says so, and nothing is changed.
  auto forgotten = compile([&](Linear& m, const Array& x, const Array& y) { return train(m, other_adam, x, y); }, {.name = "forgotten"});
  auto by_reference =
      compile([&](const Array& x, const Array& y) { return train(other_model, other_adam, x, y); }, captured(other_model, other_adam));
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int i = 0; i < 4; ++i) {
      const auto [x, y] = batch(i);
      const Array expected = train(regular_model, regular_adam, x, y);
      EXPECT_EQ(difference(step(model, adam, x, y), expected), "") << i;
      EXPECT_EQ(graph::difference(read(leaves(model, adam)), read(leaves(regular_model, regular_adam))), "") << i;
      const std::string text = thrown<CaptureError>([&, x = x, y = y] { forgotten(other_model, x, y); });
      EXPECT_TRUE(has(text, "'forgotten'")) << text;
      EXPECT_EQ(difference(by_reference(x, y), expected), "") << i;
      EXPECT_EQ(graph::difference(read(leaves(other_model, other_adam)), read(leaves(regular_model, regular_adam))), "") << i;
    }
  EXPECT_EQ(step.stats().traces, 2);
}

TEST(hazard, hazard_19_an_array_in_the_state_and_in_the_arguments) {
  const auto f = [](std::vector<Array>& state, const Array& x) {
    state[0] = state[0] + x;
    state[1] = state[1] * x;
    return state[0] - x;
  };
  auto compiled = compile(f);
  const Array shared({1.f, 2.f});
  Arrays a{shared, shared}, b{shared, shared};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(difference(compiled(a, shared), f(b, shared)), "") << i;
    EXPECT_EQ(graph::difference(read(a), read(b)), "") << i;
    EXPECT_EQ(shared.to_vector<float>(), (std::vector<float>{1, 2}));
  }
  a = b = {shared, shared};
  EXPECT_EQ(difference(compiled(a, Array(a[1])), f(b, Array(b[1]))), "");
  EXPECT_EQ(graph::difference(read(a), read(b)), "");
}

TEST(hazard, hazard_20_frozen_growing_and_shrinking_state) {
  struct Case {
    const char* name;
    void (*f)(Arrays& s, const Array& x);
    std::size_t frozen;  // the first so many stay the same objects
  };
  const Case cases[] = {
      {"frozen and trained", [](Arrays& s, const Array& x) { s.back() = s.back() - 0.1 * (s[0] * x); }, 2},
      {"nothing changed", [](Arrays&, const Array&) {}, 3},
      {"pushed at first",
       [](Arrays& s, const Array& x) {
         if (s.size() == 3) s.push_back(x);
       },
       3},
      {"pushed each time", [](Arrays& s, const Array& x) { s.push_back(x + static_cast<int>(s.size())); }, 3},
      {"popped",
       [](Arrays& s, const Array&) {
         if (!s.empty()) s.pop_back();
       },
       0},
      {"emptied", [](Arrays& s, const Array&) { s.clear(); }, 0},
      {"popped and pushed",
       [](Arrays& s, const Array& x) {
         s.pop_back();
         s.push_back(x * 2);
       },
       2},
      {"reordered", [](Arrays& s, const Array&) { std::rotate(s.begin(), s.begin() + 1, s.end()); }, 0},
      {"one object twice", [](Arrays& s, const Array& x) { s[2] = s[1] = s[1] + x; }, 1},
      {"the argument itself", [](Arrays& s, const Array& x) { s[2] = x; }, 2},
      {"growing array", [](Arrays& s, const Array& x) { s[2] = concatenate({reshape(s[2], {-1}), reshape(x, {-1})}); }, 2},
      {"unset in between",
       [](Arrays& s, const Array& x) {
         s.resize(s.size() + 1);
         s.push_back(x + 1);
       },
       3},
  };
  for (const Case& c : cases)
    for (bool in_captures : {false, true}) {
      Arrays regular{Array({1.f, 2.f}), Array({3.f, 4.f}), Array({5.f, 6.f})}, state = regular;
      const Arrays first = state;
      auto f = compile([c](Arrays& s, const Array& x) {
        c.f(s, x);
        return x + 1;
      });
      auto g = compile(
          [&state, c](const Array& x) {
            c.f(state, x);
            return x + 1;
          },
          captured(state));
      for (int i = 0; i < 5; ++i) {
        const Array x({static_cast<float>(i), 1.f});
        c.f(regular, x);
        EXPECT_EQ(difference(in_captures ? g(x) : f(state, x), x + 1), "");
        ASSERT_EQ(state.size(), regular.size()) << c.name << " call " << i;
        for (std::size_t k = 0; k < state.size(); ++k) {
          ASSERT_EQ(state[k].valid(), regular[k].valid()) << c.name << " call " << i << " " << k;
          const std::string d = state[k].valid() ? difference(state[k], regular[k]) : "";
          EXPECT_EQ(d, "") << c.name << " call " << i << " " << k;
        }
        for (std::size_t k = 0; k < c.frozen; ++k) EXPECT_EQ(state[k].get(), first[k].get()) << c.name << ": array " << k << " was copied";
      }
    }
}

TEST(hazard, hazard_21_errors_inside_the_function) {
  struct Case {
    const char* name;
    std::function<Array(const Array&, const Array&)> f;
    Array bad_x, bad_y, good_x, good_y;
  };
  const Case cases[] = {
      {"add", [](const Array& x, const Array& y) { return x + y; }, ones({2}), ones({3}), ones({2}), ones({2})},
      {"dtype", [](const Array& x, const Array& y) { return x << y; }, ones({2}), ones({2}), ones({2}, int32), ones({2}, int32)},
      {"matmul", [](const Array& x, const Array& y) { return matmul(x, y); }, ones({2, 3}), ones({2, 3}), ones({2, 3}), ones({3, 2})},
      {"axis", [](const Array& x, const Array&) { return sum(x, 1); }, ones({2}), ones({2}), ones({2, 2}), ones({2})},
      {"empty max", [](const Array& x, const Array&) { return max(x); }, ones({0}), ones({2}), ones({2}), ones({2})},
      {"index", [](const Array& x, const Array&) { return take(x, 5); }, ones({2}), ones({2}), ones({7}), ones({2})},
      {"reshape", [](const Array& x, const Array&) { return reshape(x, {3, -1}); }, ones({4}), ones({2}), ones({6}), ones({2})},
      {"own",
       [](const Array& x, const Array& y) -> Array {
         if (x.size() == 2) throw Error("mine");
         return x + y;
       },
       ones({2}), ones({2}), ones({3}), ones({3})},
  };
  for (const Case& c : cases) {
    const std::string regular = thrown<Error>([&] { c.f(c.bad_x, c.bad_y).eval(); });
    ASSERT_NE(regular, "") << c.name;
    auto f = compile([c](std::vector<Array>& s, const Array& x, const Array& y) {
      s.push_back(x * 2);
      s[0] = s[0] + 1;
      return c.f(x, y);
    });
    Arrays state{Array(1.f)};
    for (int i = 0; i < 3; ++i) {
      const Arrays before = state;
      EXPECT_EQ(thrown<Error>([&] { f(state, c.bad_x, c.bad_y); }), regular) << c.name;
      ASSERT_EQ(state.size(), before.size()) << c.name;
      for (std::size_t k = 0; k < state.size(); ++k) EXPECT_EQ(state[k].get(), before[k].get()) << c.name;
      EXPECT_EQ(difference(f(state, c.good_x, c.good_y), c.f(c.good_x, c.good_y)), "") << c.name;
      EXPECT_EQ(state.size(), before.size() + 1) << c.name;
      EXPECT_EQ(value(state[0]), static_cast<float>(i + 2)) << c.name;
    }
  }
}

TEST(hazard, hazard_29_memory_of_arguments) {
  for (Dtype t : {float32, float64, float16, int32, uint8, bool_, complex64})
    for (int n : {1, 17, 4096}) {
      const std::string what = str(t, " ", n);
      const auto f = [](Array x) { return Arrays{x + x, x * x, flip(x), x}; };
      auto cf = compile(f);
      const auto make_x = [&] {
        Array x = astype(arange(n) % 2, t);
        x.eval();
        return x;
      };
      Array x = make_x();
      const Array same = make_x();
      const std::vector<Tensor> expected = read(f(same));
      for (int i = 0; i < 3; ++i) {
        Arrays y = cf(x);
        EXPECT_EQ(graph::difference(read(y), expected), "") << what;
        EXPECT_EQ(y[3].get(), x.get()) << "an input returned is that array";
        for (int k = 0; k < 3; ++k) y = cf(y[1]);  // chains give up their own memory only
        EXPECT_EQ(difference(x, same), "") << what << ": the caller's array changed";
      }
      // A view of what is given up keeps its values; so does a lazy user.
      Array view = reshape(x, {1, n}), lazy = x + x;
      view.eval();
      EXPECT_EQ(graph::difference(read(cf(std::move(x))), expected), "") << what;
      EXPECT_EQ(difference(reshape(view, {n}), same), "") << what;
      EXPECT_EQ(difference(lazy, same + same), "") << what;
    }
  // Nobody else's: the result may lie in its memory.
  auto f = compile([](Array x) { return x * 2 + 1; });
  f(ones({1 << 18}));
  Array x = ones({1 << 18});
  x.eval();
  const std::size_t before = active_memory();
  reset_peak_memory();
  const Array y = f(std::move(x));
  EXPECT_LT(peak_memory(), before + (1 << 19));
  EXPECT_EQ(y.to_vector<float>()[77], 3);
}

}  // namespace
}  // namespace sinter::tests
