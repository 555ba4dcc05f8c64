// SPEC 2: what can be compiled.
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>

#include "spec/helpers.h"

namespace spec {
namespace {

Array add_exp(const Array& x, const Array& y) { return exp(-x) + y; }
Array twice(const Array& x) noexcept { return x * 2; }

struct Scale {
  Array k{3.0};
  Array operator()(const Array& x) const { return x * k; }
};
struct Overloaded {
  Array operator()(const Array& x) const { return x; }
  Array operator()(const Array& x, const Array& y) const { return x + y; }
};
struct Model {
  Array w{2.0};
  Array forward(const Array& x) const { return x * w; }
  Array learn(const Array& x) {
    w = w + x;
    return w;
  }
  SINTER_FIELDS(w)
};
enum class Kind { plain, doubled };
struct Linear {
  Array weight{1.0}, bias{0.5};
  SINTER_FIELDS(weight, bias)
};
struct Deep : Linear {
  std::vector<Linear> layers;
  Kind kind = Kind::plain;
  std::string name = "deep";
  SINTER_FIELDS_AND_BASE(Linear, layers, kind, name)
};
class Hidden {
  Array secret_{7.0};
  int step_ = 3;
  SINTER_FIELDS(secret_, step_)

 public:
  Array get() const { return secret_ * step_; }
};
struct NoDefault {
  explicit NoDefault(int k) : a(k) {}
  Array a;
  SINTER_FIELDS(a)
};
struct Node {
  Array v{1.0};
  std::vector<Node> kids;
  SINTER_FIELDS(v, kids)
};

float value(const Array& a) { return a.item<float>(); }

TEST(spec_2_1, every_kind_of_callable) {
  Array x(1.0), y(2.0), k(5.0);
  auto lambda = [](const Array& a, const Array& b) { return a - b; };
  EXPECT_EQ(value(compile(twice)(x)), 2);
  EXPECT_EQ(value(compile(&twice)(x)), 2);
  EXPECT_NEAR(value(compile(add_exp)(x, y)), 2.36788, 1e-5);
  EXPECT_EQ(value(compile(lambda)(x, y)), -1);
  EXPECT_EQ(value(compile([k](const Array& a) { return a * k; })(y)), 10);
  EXPECT_EQ(value(compile(Scale{})(x)), 3);
  EXPECT_EQ(value(compile(std::function<Array(const Array&)>(twice))(x)), 2);
  EXPECT_EQ(value(compile(std::function(lambda))(x, y)), -1);
  EXPECT_EQ(value(compile(Overloaded{})(x)), 1);
  EXPECT_EQ(value(compile(Overloaded{})(x, y)), 3);
  EXPECT_EQ(value(compile([](const auto& a, const auto& b) { return a + b; })(x, y)), 3);
  EXPECT_EQ(value(compile([](auto... a) { return (a + ...); })(x, y, x)), 4);
  EXPECT_EQ(value(compile(std::bind_front(lambda, k))(x)), 4);
  EXPECT_EQ(value(compile(compile(lambda))(x, y)), -1);
}

TEST(spec_2_1, member_functions) {
  Array x(1.0);
  Model model;
  EXPECT_EQ(value(compile(&Model::forward)(model, x)), 2);
  auto learn = compile(&Model::learn);  // not const: the object is state
  EXPECT_EQ(value(learn(model, x)), 3);
  EXPECT_EQ(value(learn(model, x)), 4);
  EXPECT_EQ(value(model.w), 4);
  EXPECT_EQ(learn.stats().traces, 1);
  EXPECT_EQ(value(compile(std::bind_front(&Model::forward, model))(x)), 4) << "bound by value: a copy";
  auto bound = compile(std::bind_front(&Model::forward, &model));
  EXPECT_NE(thrown<CaptureError>([&] { bound(x); }), "") << "bound by pointer";
}

TEST(spec_2_1, empty_callables_throw_at_compile) {
  EnabledScope scope;
  for (CompileMode mode : {CompileMode::enabled, CompileMode::disabled}) {
    set_compile_mode(mode);
    Array (*null)(const Array&) = nullptr;
    Array (Model::*member)(const Array&) const = nullptr;
    EXPECT_TRUE(has(thrown<Error>([&] { compile(null); }), "compile: the function is empty"));
    EXPECT_NE(thrown<Error>([&] { compile(member); }), "");
    EXPECT_NE(thrown<Error>([] { compile(std::function<Array()>()); }), "");
  }
}

TEST(spec_2_2, parameters_are_trees) {
  Array x(1.0), y(2.0);
  auto many = compile([](std::span<const Array> xs, const std::map<std::string, Array>& m, const std::optional<Array>& o,
                         const std::array<Array, 2>& pair, const std::tuple<Array, std::pair<Array, int>>& t,
                         const std::unordered_map<int, Array>& u) {
    Array r = m.at("b") + pair[0] - pair[1] + std::get<0>(t) + std::get<1>(t).first * std::get<1>(t).second;
    for (const Array& a : xs) r = r + a;
    if (o) r = r + *o;
    for (int key : {1, 9}) r = r + u.at(key) * key;
    return r;
  });
  std::vector<Array> xs{x, y, x};
  EXPECT_EQ(value(many(xs, {{"a", x}, {"b", y}}, x, {y, x}, {x, {y, 3}}, {{1, x}, {9, y}})), 2 + 2 - 1 + 1 + 6 + 4 + 1 + 1 + 18);
  EXPECT_EQ(value(many(xs, {{"a", x}, {"b", y}}, x, {y, x}, {x, {y, 3}}, {{9, y}, {1, x}})), 34) << "hash maps go by key";
  EXPECT_EQ(many.stats().traces, 1);
  EXPECT_EQ(value(many(xs, {{"a", x}, {"b", y}}, {}, {y, x}, {x, {y, 3}}, {{9, y}, {1, x}})), 33);
  EXPECT_EQ(many.stats().traces, 2);
}

TEST(spec_2_2, structs_with_fields) {
  Deep deep;
  deep.layers.resize(2);
  auto f = compile([](const Deep& d, const Array& x) {
    Array r = x * d.weight + d.bias;
    for (const Linear& l : d.layers) r = r * l.weight + l.bias;
    return d.kind == Kind::doubled ? r * 2 : r;
  });
  EXPECT_EQ(value(f(deep, 2.0)), 3.5);
  deep.bias = Array(1.5);  // of the base
  EXPECT_EQ(value(f(deep, 2.0)), 4.5);
  EXPECT_EQ(f.stats().traces, 1);
  deep.kind = Kind::doubled;
  EXPECT_EQ(value(f(deep, 2.0)), 9);
  deep.name = "other";
  EXPECT_EQ(value(f(deep, 2.0)), 9);
  EXPECT_EQ(f.stats().traces, 3) << "enums and strings are static";
  EXPECT_EQ(value(compile([](const Hidden& h) { return h.get(); })(Hidden())), 21);
  Node tree{1.0, {Node{2.0, {}}, Node{3.0, {Node{4.0, {}}}}}};
  auto total = compile([](const Node& n) { return n.v + n.kids[0].v + n.kids[1].v + n.kids[1].kids[0].v; });
  EXPECT_EQ(value(total(tree)), 10);
}

TEST(spec_2_2, static_values_are_part_of_the_key) {
  auto f = compile(
      [](const Array& x, int k, const std::string& s, bool b, Dtype t, const Shape& shape, double d, const std::vector<bool>& mask) {
        Array r = (b ? x * k : x + static_cast<int>(s.size())) * d;
        if (mask[0]) r = r + 100;
        return broadcast_to(astype(r, t), shape);
      });
  auto call = [&](int k, const char* s, bool b, Dtype t, const Shape& shape, double d, bool m) {
    return text(f(1.0, k, s, b, t, shape, d, {m, true}));
  };
  EXPECT_EQ(call(4, "abc", true, float32, {}, 1, false), "array(4, dtype=float32)");
  EXPECT_EQ(call(4, "abc", false, float32, {}, 1, false), "array(4, dtype=float32)");
  EXPECT_EQ(call(4, "abcd", false, float32, {}, 1, false), "array(5, dtype=float32)");
  EXPECT_EQ(call(4, "abcd", false, int32, {}, 1, false), "array(5, dtype=int32)");
  EXPECT_EQ(call(4, "abcd", false, int32, {2}, 1, false), "array([5, 5], dtype=int32)");
  EXPECT_EQ(call(4, "abcd", false, int32, {2}, 2, false), "array([10, 10], dtype=int32)");
  EXPECT_EQ(call(4, "abcd", false, int32, {2}, 2, true), "array([110, 110], dtype=int32)");
  EXPECT_EQ(f.stats().traces, 7);
  EXPECT_EQ(call(4, "abc", true, float32, {}, 1, false), "array(4, dtype=float32)");
  EXPECT_EQ(f.stats().traces, 7);
  double nan = std::numeric_limits<double>::quiet_NaN();
  call(4, "abc", true, float32, {}, nan, false);
  call(4, "abc", true, float32, {}, nan, false);
  EXPECT_EQ(f.stats().traces, 8) << "floating values compare by bits";
}

TEST(spec_2_2, unset_arrays_are_structure) {
  auto f = compile([](const Array& x, const std::vector<Array>& v) { return v[0].valid() ? x + v[0] : x; });
  EXPECT_EQ(value(f(1.0, {Array()})), 1);
  EXPECT_EQ(value(f(1.0, {Array(2.0)})), 3);
  EXPECT_EQ(f.stats().traces, 2);
  auto uses = compile([](const Array& x) { return x + 1; });
  EXPECT_EQ(thrown<Error>([&] { uses(Array()); }), thrown<Error>([] { (void)(Array() + 1); }));
  auto makes = compile([](const Array& x) { return std::vector<Array>{x, Array(), x + 1}; });
  for (int i = 0; i < 2; ++i) {
    std::vector<Array> r = makes(1.0);
    EXPECT_TRUE(r[0].valid() && !r[1].valid() && value(r[2]) == 2);
  }
}

TEST(spec_2_2, results_have_the_type_that_the_function_returned) {
  Array y(2.0);
  auto tuple = compile([](const Array& a) { return std::tuple{a + 1, 5, std::optional<Array>(a), Model{a * 2}, std::string("s")}; });
  static_assert(std::same_as<decltype(tuple(y)), std::tuple<Array, int, std::optional<Array>, Model, std::string>>);
  for (int i = 0; i < 2; ++i) {
    auto [a, b, c, d, e] = tuple(y);
    EXPECT_TRUE(value(a) == 3 && b == 5 && c->get() == y.get() && value(d.w) == 4 && e == "s");
  }
  auto no_default = compile([](const Array& a) {
    NoDefault r(1);
    r.a = a * 2;
    return r;
  });
  EXPECT_EQ(value(no_default(1.0).a), 2);
  EXPECT_EQ(value(no_default(3.0).a), 6);
  auto map = compile([](const Array& a) { return std::map<std::string, std::vector<Array>>{{"all", {a, a * 2}}, {"none", {}}}; });
  for (int i = 0; i < 2; ++i) {
    auto r = map(y);
    EXPECT_TRUE(r.size() == 2 && r["none"].empty() && value(r["all"].at(1)) == 4);
  }
  const Array& (*reference)(const Array&) = [](const Array& a) -> const Array& { return a; };
  static_assert(std::same_as<decltype(compile(reference)(y)), Array>);
  EXPECT_EQ(value(compile(reference)(y)), 2);
}

TEST(spec_2_2, none_empty_and_many) {
  auto nothing = compile([](const Array&) {});
  static_assert(std::is_void_v<decltype(nothing(1.0))>);
  nothing(1.0);
  nothing(1.0);
  EXPECT_EQ(value(compile([] { return Array(4.0); })()), 4);
  EXPECT_TRUE(compile([] { return std::vector<Array>{}; })().empty());
  EXPECT_TRUE(compile([](const std::vector<Array>& v) { return v; })({}).empty());
  auto nested = compile([](const std::vector<std::vector<Array>>& v) { return v; });
  EXPECT_EQ(nested({{}, {1.0}, {}}).size(), 3u);
  auto eight = compile([](Array a, const Array& b, const Array& c, const Array& d, const Array& e, const Array& f, const Array& g,
                          Array&& h) { return a + b + c + d + e + f + g + h; });
  EXPECT_EQ(value(eight(1, 2.0, 3, 4, 5, 6, 7, 8)), 36);
}

TEST(spec_2_2, scalars_become_inputs) {
  auto f = compile([](const Array& x, const Array& y) { return x * y; });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(value(f(1.5, 0.5 * i)), 0.75f * static_cast<float>(i));
  EXPECT_EQ(f.stats().traces, 1);
  EXPECT_EQ(f(2, 3).item<int>(), 6);
  EXPECT_EQ(f.stats().traces, 2);
}

TEST(spec_2_3, references_are_state) {
  auto swap_and_add = compile([](Model& a, Model& b, const Array& x) {
    std::swap(a.w, b.w);
    a.w = a.w + x;
  });
  Model a, b;
  b.w = Array(10.0);
  const void* was = a.w.get();
  swap_and_add(a, b, 1.0);
  EXPECT_EQ(value(a.w), 11);
  EXPECT_EQ(b.w.get(), was);
  auto generic = compile_with_state([](auto& s, const auto& x) { s.push_back(x * 2); });
  std::vector<Array> list;
  generic(list, Array(1.0));
  generic(list, Array(2.0));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(value(list[1]), 4);
}

TEST(spec_2_3, numbers_are_static_in_generic_callables) {
  auto f = compile([](const auto& a, const auto& b) { return a + b; });
  Array x(1.0);
  EXPECT_EQ(value(f(x, 2.0)), 3);
  EXPECT_EQ(value(f(x, 2.0)), 3);
  EXPECT_EQ(value(f(x, 3.0)), 4);
  EXPECT_EQ(value(f(x, 3)), 4);
  EXPECT_EQ(f.stats().traces, 3);
}

TEST(spec_2_4, exceptions_pass_unchanged) {
  int runs = 0;
  auto odd = compile([&runs](const Array& a) {
    ++runs;
    throw 42;
    return a;
  });
  try {
    odd(1.0);
    FAIL();
  } catch (int k) {
    EXPECT_EQ(k, 42);
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(odd.stats().entries, 0);
  EXPECT_EQ(odd.stats().traces, 1) << "failed traces count";
  auto bad = compile([](const Array& a) { return a + ones({7}); });
  std::string regular = thrown<ShapeError>([] { (void)(ones({3}) + ones({7})); });
  EXPECT_NE(regular, "");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(thrown<ShapeError>([&] { bad(ones({3})); }), regular);
  EXPECT_TRUE(same(bad(ones({7})), full({7}, 2.0)));
  EXPECT_EQ(bad.stats().entries, 1);
}

Result<Array> root(const Array& x, bool allowed) {
  if (!allowed) return IoError("root: not allowed; got false; pass true");
  return sqrt(x);
}

TEST(spec_2_4, functions_that_return_results) {
  EnabledScope scope;
  auto f = compile(root, {.max_entries = 7});  // an identity of its own
  for (int round = 0; round < 3; ++round) {
    Result<Array> good = f(Array(9.0), true);
    ASSERT_TRUE(good && good.has_value());
    EXPECT_EQ((*good).item<double>(), 3.0);
    EXPECT_EQ(good->item<double>(), 3.0);
    Result<Array> bad = f(Array(9.0), false);
    ASSERT_FALSE(bad);
    EXPECT_STREQ(bad.error().what(), "root: not allowed; got false; pass true");
    EXPECT_THROW(bad.value(), IoError);
    EXPECT_THROW(*bad, IoError);
    EXPECT_THROW(f.graph(Array(9.0), false), IoError);
    const Stats stats = f.stats();
    EXPECT_EQ(stats.entries, 1);
    EXPECT_EQ(stats.traces, 3 + 2 * round);  // an error leaves no entry, so it is found again
    EXPECT_EQ(stats.hits, round);
  }
  EXPECT_THROW(Result<Array>(Array(1.0)).error(), Error);
  disable_compile();
  EXPECT_TRUE(f(Array(9.0), true));
  EXPECT_THROW(f(Array(9.0), false).value(), IoError);
}

TEST(spec_2_4, results_and_state) {
  EnabledScope scope;
  auto step = compile([](Linear& state, const Array& x, int limit) -> Result<void> {
    state.weight = state.weight + x;
    state.bias = random::uniform(0.0, 1.0, {});
    if (limit > 2) return ShapeError("step: beyond the limit");
    return {};
  });
  Linear state;
  random::seed(3);
  EXPECT_TRUE(step(state, Array(2.0), 1));
  EXPECT_EQ(state.weight.item<double>(), 3.0);
  const Array weight = state.weight, bias = state.bias;
  Result<void> failed = step(state, Array(2.0), 3);
  EXPECT_THROW(failed.value(), ShapeError);
  EXPECT_EQ(state.weight.data<float>(), weight.data<float>());
  EXPECT_EQ(state.bias.data<float>(), bias.data<float>());
  EXPECT_TRUE(step(state, Array(2.0), 1));
  random::seed(3);
  random::uniform(0.0, 1.0, {}).eval();
  EXPECT_EQ(state.bias.item<float>(), random::uniform(0.0, 1.0, {}).item<float>()) << "a failed call drew";
}

TEST(spec_2_4, results_in_other_functions) {
  EnabledScope scope;
  auto inner = compile([](const auto& x, const auto& flag) -> Result<std::vector<Array>> {
    if (!flag) return DtypeError("inner: no");
    return std::vector<Array>{x, x * 2};
  });
  auto outer = compile([inner](const Array& x, bool flag) {
    auto parts = inner(x, flag);
    return parts ? (*std::move(parts))[1] : Array(-1.0);
  });
  EXPECT_EQ(outer(Array(4.0), true).item<double>(), 8.0);
  EXPECT_EQ(outer(Array(4.0), false).item<double>(), -1.0);
  EXPECT_EQ(inner(Array(4.0), true).value().size(), 2u);
  EXPECT_STREQ(inner(Array(4.0), false).error().what(), "inner: no");
}

TEST(spec_2_4, try_call) {
  EnabledScope scope;
  auto f = compile([](const Array& x, const Array& y) { return x + y; });
  EXPECT_EQ(f.try_call(1.0, 2.0)->item<double>(), 3.0);
  Result<Array> bad = f.try_call(ones({2}), ones({3}));
  ASSERT_FALSE(bad);
  EXPECT_THROW(bad.value(), ShapeError);
  EXPECT_EQ(std::string(bad.error().what()), thrown<ShapeError>([] { ones({2}) + ones({3}); }));
  EXPECT_EQ(f.stats().entries, 1);

  auto generic = compile([](const auto& x) { return reshape(x, {7}); });
  EXPECT_THROW(generic.try_call(ones({2})).value(), ShapeError);
  EXPECT_EQ(generic.try_call(ones({7})).value().size(), 7);

  static_assert(std::is_same_v<decltype(compile(root).try_call(Array(), true)), Result<Array>>);  // not of a Result
  EXPECT_THROW(compile(root).try_call(Array(4.0), false).value(), IoError);
  auto nothing = compile([](Array& state) { state = reshape(state, {3}); });
  Array state = ones({3, 1}), wrong = ones({2});
  EXPECT_TRUE(nothing.try_call(state));
  EXPECT_FALSE(nothing.try_call(wrong));
  EXPECT_EQ(wrong.shape(), Shape({2}));

  auto other = compile([](const Array&) -> Array { throw std::out_of_range("mine"); });
  EXPECT_THROW(other.try_call(Array(1.0)), std::out_of_range);
}

TEST(spec_2_5, printable_and_named) {
  auto f = compile([](const Array& x) { return x + 1; }, {.name = "step"});
  f(1.0);
  f(ones({2}));
  f(1.0);
  EXPECT_TRUE(text(f).starts_with("compiled step: 2 entries, 2 traces")) << text(f);
  auto unnamed = compile([](const Array& x) { return x + 1; });
  EXPECT_TRUE(text(unnamed).starts_with("compiled section_2.cpp:" + std::to_string(__LINE__ - 1))) << text(unnamed);
  auto with_state = compile_with_state([](Array& s, const Array& x) { s = x; });
  EXPECT_EQ(with_state.name(), "section_2.cpp:" + std::to_string(__LINE__ - 1));
}

TEST(spec_2_5, copies_share_everything) {
  Array k(2.0);
  auto f = compile([k](const Array& x) { return x * k; });
  auto copy = f;
  copy(1.0);
  f(1.0);
  EXPECT_EQ(f.stats().traces, 1);
  EXPECT_EQ(copy.stats().hits, 1);
  auto moved = std::move(copy);
  EXPECT_EQ(value(moved(4.0)), 8);
  EXPECT_EQ(f.stats().calls, 3);
}

TEST(spec_2_5, stats) {
  EnabledScope scope;
  auto f = compile([](const Array& x) { return exp(x) * 12.5 + 3; });
  f(ones({3}));
  f(ones({3}));
  f(ones({4}));
  auto outer = compile([&f](const Array& x) { return f(x); });
  outer(ones({3}));
  disable_compile();
  f(ones({3}));
  enable_compile();
  Stats s = f.stats();
  EXPECT_EQ(s.calls, 5) << "inlined and disabled calls count here";
  EXPECT_EQ(s.hits, 1);
  EXPECT_EQ(s.traces, 2);
  EXPECT_EQ(s.entries, 2);
  EXPECT_EQ(s.kernels, 1);
  EXPECT_EQ(s.kernels_from_disk, 0);
  EXPECT_GT(s.trace_ms, 0);
  EXPECT_GT(s.codegen_ms, 0);
  EXPECT_EQ(outer.stats().kernels, 0) << "found in memory";
  f.clear();
  Stats t = f.stats();
  EXPECT_EQ(t.entries, 0);
  EXPECT_EQ(t.traces, 2);
  EXPECT_EQ(t.kernels, 1) << "totals outlive their entries";
}

TEST(spec_2_5, graph_and_kernels_as_text) {
  auto f = compile([](const Array& x, const Array& y) { return exp(-x) + y; });
  EXPECT_TRUE(has(f.graph(1.0, 2.0), "exp"));
  EXPECT_TRUE(has(f.kernels(1.0, 2.0), "kernel"));
  EXPECT_EQ(f.stats().traces, 1);
  EXPECT_EQ(f.stats().calls, 0);
  auto generic = compile([](const auto& x) { return exp(x); });
  EXPECT_TRUE(has(generic.graph(Array(1.0)), "exp"));
  EXPECT_TRUE(has(f.explain(), "exp")) << f.explain();
  auto state = compile([](Array& s, const Array& x) { s = s + x; });
  Array s(1.0);
  EXPECT_TRUE(has(state.graph(s, 1.0), "add"));
  EXPECT_EQ(value(s), 1) << "looking runs nothing";
}

TEST(spec_2_6, captured_trees_are_state) {
  Model model;
  std::vector<Array> log;
  auto step = compile(
      [&](const Array& x) {
        model.w = model.w + x;
        log.push_back(model.w);
        return model.forward(x);
      },
      captured(model, log));
  Model reference;
  for (int i = 1; i < 6; ++i) {
    EXPECT_EQ(value(step(i)), value(Array(i) * (reference.w = reference.w + i)));
    EXPECT_EQ(value(model.w), value(reference.w));
    ASSERT_EQ(log.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(log.back().get(), model.w.get());
  }
}

TEST(spec_2_6, captured_with_options_hits_and_restores) {
  Model model;
  int runs = 0;
  bool fail = false;
  auto step = compile(
      [&](const Array& x) {
        ++runs;
        model.w = model.w * x;
        if (fail) throw std::runtime_error("no");
        return model.w + 1;
      },
      {.name = "step"}, captured(model));
  EXPECT_EQ(value(step(3.0)), 7);
  EXPECT_EQ(value(step(3.0)), 19);
  EXPECT_EQ(runs, 1);
  const void* before = model.w.get();
  fail = true;
  EXPECT_THROW(step(Array({1.f, 2.f})), std::runtime_error);
  EXPECT_EQ(model.w.get(), before) << "as it was before the call";
  EXPECT_EQ(value(step(1.0)), 19);
  EXPECT_EQ(step.name(), "step");
}

TEST(spec_2_6, captured_containers_keep_their_place) {
  std::vector<Linear> layers(3);
  Linear* second = &layers[1];
  auto step = compile(
      [&](const Array& x) {
        for (Linear& l : layers) l.bias = l.bias + x;
        return second->bias;
      },
      captured(layers));
  EXPECT_EQ(value(step(1.0)), 1.5);
  EXPECT_EQ(value(step(1.0)), 2.5);
  EXPECT_EQ(&layers[1], second);
  EXPECT_EQ(value(second->bias), 2.5);
  EXPECT_EQ(step.stats().traces, 1);
}

TEST(spec_2_7, containers_of_other_kinds) {
  auto f = compile([](const std::list<Array>& l) {
    Array r(0.0);
    for (const Array& a : l) r = r * 2 + a;
    return r;
  });
  EXPECT_EQ(value(f({1.0, 2.0, 3.0})), 11);
}

TEST(spec_2_7, tree_functions) {
  Deep deep;
  deep.layers.resize(2);
  EXPECT_EQ(tree_flatten(deep).size(), 6u);
  EXPECT_EQ(tree_paths(deep, "model"),
            (std::vector<std::string>{"model.weight", "model.bias", "model.layers[0].weight", "model.layers[0].bias",
                                      "model.layers[1].weight", "model.layers[1].bias"}));
  Deep doubled = tree_map([](const Array& a) { return a * 2; }, deep);
  EXPECT_EQ(value(doubled.layers[1].weight), 2);
  EXPECT_EQ(doubled.name, "deep");
  Deep sum = tree_map([](const Array& a, const Array& b) { return a + b; }, deep, doubled);
  EXPECT_EQ(value(sum.bias), 1.5);
  EXPECT_NE(thrown<Error>([&] { tree_unflatten(deep, std::vector<Array>{1.0}); }), "");
  static_assert(Tree<Deep> && Tree<Node> && Tree<std::map<std::string, std::optional<Array>>> && Tree<std::vector<bool>> && Tree<Shape>);
  static_assert(!Tree<int*> && !Tree<std::unique_ptr<int>> && !Tree<const char*> && !Tree<std::tuple<Array, int*>>);
  static_assert(std::is_aggregate_v<Linear>);
}

}  // namespace
}  // namespace spec
