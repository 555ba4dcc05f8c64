// Modules: names, roles, modes, tables, files, gradients by a model.
#include "nn/models.h"

namespace sinter::tests {
namespace {

struct Mixed {
  nn::Linear first{2, 3};
  nn::BatchNorm norm{3};
  nn::Dropout drop{0.25};
  Array scale{2.0};
  Array count{7};
  std::vector<nn::Linear> rest{nn::Linear(3, 1, false)};
  Array operator()(const Array& x) { return rest[0](drop(norm(first(x)))) * scale; }
  SINTER_FIELDS(first, norm, drop, scale, count, rest)
};

std::vector<std::string> names_of(const Mixed& m) {
  std::vector<std::string> names;
  for (const auto& [name, array] : nn::parameters(m)) names.push_back(name);
  return names;
}

TEST(Modules, names_and_counts) {
  const Mixed m;
  EXPECT_EQ(names_of(m), (std::vector<std::string>{"first.weight", "first.bias", "norm.weight", "norm.bias", "norm.running_mean",
                                                   "norm.running_var", "scale", "count", "rest[0].weight"}));
  EXPECT_EQ(nn::parameter_count(m), 6 + 3 + 3 + 3 + 3 + 3 + 1 + 1 + 3);
  EXPECT_EQ(nn::parameter_count(m, true), 6 + 3 + 3 + 3 + 1 + 3);
  EXPECT_EQ(nn::parameter_count(Mlp()), 6 * 5 + 5 + 5 * 3 + 3);
  const nn::Sequential net(nn::Linear(4, 2), nn::ReLU(), nn::Linear(2, 1));
  EXPECT_EQ(nn::parameters(net)[2].first, "layers[2].weight");
  EXPECT_EQ(nn::parameters(nn::Parameter(ones({2})))[0].first, "");
}

TEST(Modules, summary) {
  Mixed m;
  nn::freeze(m, "first.*");
  EXPECT_EQ(nn::summary(m),
            "parameter          shape  dtype    count  role\n"
            "---------------------------------------------------\n"
            "first.weight       (3,2)  float32      6  frozen\n"
            "first.bias         (3)    float32      3  frozen\n"
            "norm.weight        (3)    float32      3  trainable\n"
            "norm.bias          (3)    float32      3  trainable\n"
            "norm.running_mean  (3)    float32      3  buffer\n"
            "norm.running_var   (3)    float32      3  buffer\n"
            "scale              ()     float32      1  trainable\n"
            "count              ()     int32        1  buffer\n"
            "rest[0].weight     (1,3)  float32      3  trainable\n"
            "---------------------------------------------------\n"
            "26 elements, 10 trainable, 104 bytes\n");
  EXPECT_TRUE(has(nn::summary(nn::Linear(784, 512)), "401,408"));
}

TEST(Modules, freeze_by_pattern) {
  Mixed m;
  auto trained = [&] { return nn::parameter_count(m, true); };
  nn::freeze(m, "*.bias");
  EXPECT_EQ(trained(), 19 - 6);
  nn::unfreeze(m, "first.b?as");
  EXPECT_EQ(trained(), 19 - 3);
  nn::freeze(m, "rest[?].weight");
  EXPECT_EQ(trained(), 19 - 6);
  nn::unfreeze(m, "*t");  // buffers stay what they are
  EXPECT_EQ(m.norm.running_var.role, nn::Role::buffer);
  EXPECT_EQ(
      thrown<Error>([&] { nn::freeze(m, "up.*"); }),
      "freeze: no parameter matches; got \"up.*\"; the names are first.weight, first.bias, norm.weight, norm.bias, norm.running_mean, "
      "norm.running_var, scale, count, rest[0].weight, rest[0].bias");
  EXPECT_EQ(thrown<Error>([&] { nn::freeze(m); }), "freeze: a plain Array has no role; got scale; declare it as nn::Parameter");
  EXPECT_EQ(trained(), 19 - 3);  // nothing was changed
  // A role follows its own array alone.
  struct Decoy {
    nn::Linear layer{1, 1};
    nn::Role role = nn::Role::frozen;
    SINTER_FIELDS(layer, role)
  };
  EXPECT_EQ(nn::parameter_count(Decoy(), true), 2);
}

TEST(Modules, modes) {
  struct Outer {
    Mixed inner;
    bool training = true, other = true;
    SINTER_FIELDS(inner, training, other)
  };
  Outer m;
  nn::eval(m);
  EXPECT_FALSE(m.training || m.inner.norm.training || m.inner.drop.training);
  EXPECT_TRUE(m.other);
  nn::train(m);
  eval(m.inner.norm);  // sinter::eval
  EXPECT_TRUE(m.training && m.inner.norm.training && m.inner.drop.training);
}

TEST(Modules, roles_are_part_of_the_signature) {
  auto trained = compile([](Mlp& m) { return Array(nn::parameter_count(m, true)); });
  Mlp m;
  EXPECT_EQ(trained(m).item<int>(), 53);
  nn::freeze(m, "up.*");
  EXPECT_EQ(trained(m).item<int>(), 18);
  EXPECT_EQ(trained.stats().traces, 2);
}

// ---- files
// -------------------------------------------------------------------------------------------------------------------------------

TEST(Files, safetensors_of_every_dtype) {
  const std::string path = file_in_temp("all.safetensors");
  std::map<std::string, Array> arrays{
      {"empty", zeros({0, 3})}, {"transposed", transpose(reshape(arange(6), {2, 3}))}, {"part", slice(arange(9), {2}, {9}, {3})}};
  for (int i = 0; i < kDtypeCount; ++i) {
    const Dtype t = static_cast<Dtype>(i);
    arrays.emplace(to_string(Array(i)), astype(Array({{0, 1, 2}, {3, 100, 5}}), t));
  }
  arrays["nan"] = Array({NAN, INFINITY, -0.f});
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"a \"quote\"", "\xc3\xa4\n"}};
  save_safetensors(path, arrays, metadata);
  const Safetensors back = load_safetensors(path);
  EXPECT_EQ(back.metadata, metadata);
  ASSERT_EQ(back.arrays.size(), arrays.size());
  for (const auto& [name, a] : arrays) {
    EXPECT_EQ(back.arrays.at(name).dtype(), a.dtype()) << name;
    EXPECT_EQ(back.arrays.at(name).shape(), a.shape()) << name;
    EXPECT_TRUE(same(back.arrays.at(name), a)) << name;
  }
  EXPECT_TRUE(std::signbit(back.arrays.at("nan").to_vector<float>()[2]));
  std::filesystem::remove(path);
}

std::string bytes_of(std::uint64_t length, const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(length >> (8 * i));
  return text + header + data;
}
std::string file_of(const std::string& header, const std::string& data = "") { return bytes_of(header.size(), header, data); }

// As the format's page describes it, written by hand.
TEST(Files, a_file_of_another_writer) {
  const std::string path = file_in_temp("other.safetensors");
  const std::string header =
      R"({"b":{"dtype":"I16","shape":[2],"data_offsets":[4,8]},"a":{"shape":[],"data_offsets":[0,4],"dtype":"F32"},"__metadata__":{"k":"v"}}   )";
  std::ofstream(path) << file_of(header, std::string("\x00\x00\x80\x3f\x01\x00\xff\xff", 8));
  const Safetensors f = load_safetensors(path);
  EXPECT_EQ(f.arrays.at("a").item<float>(), 1.f);
  EXPECT_EQ(values(f.arrays.at("b")), (std::vector<double>{1, -1}));
  EXPECT_EQ(f.metadata.at("k"), "v");
  std::filesystem::remove(path);
}

TEST(Files, damaged_files_are_named) {
  const std::string path = file_in_temp("bad.safetensors");
  const std::string good = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  struct Bad {
    std::string bytes, got;
  };
  const Bad cases[] = {
      {"", "0 bytes"},
      {"abc", "3 bytes"},
      {bytes_of(1000, good, "xy"), "a header of 1000 bytes and 63 bytes in all"},
      {bytes_of(~0ull, good, "xy"), "a header of 18446744073709551615 bytes and 63 bytes in all"},
      {file_of("[1]"), "a header that is no JSON object"},
      {file_of("{\"a\":"), "a header that is no JSON object"},
      {file_of(std::string(10000, '[')), "a header that is no JSON object"},
      {file_of(good, "x"), "1 bytes of elements for 2"},
      {file_of(good, "xyz"), "3 bytes of elements for 2"},
      {file_of(R"({"a":1})"), "a wrong entry of array \"a\""},
      {file_of(R"({"a":{"shape":[2],"data_offsets":[0,2]}})", "xy"), "a wrong dtype of array \"a\""},
      {file_of(R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", "xy"), "a wrong shape of array \"a\""},
      {file_of(R"({"a":{"dtype":"U8","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,2]}})", "xy"),
       "a wrong shape of array \"a\""},
      {file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", "xy"), "a wrong place of array \"a\""},
      {file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", "xy"), "a wrong place of array \"a\""},
      {file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "xyz"), "a wrong place of array \"a\""},
      {file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "xyz"),
       "a wrong place of array \"b\""},
      {file_of(R"({"__metadata__":{"k":1}})"), "wrong metadata"},
  };
  for (const Bad& bad : cases) {
    std::ofstream(path, std::ios::trunc) << bad.bytes;
    EXPECT_EQ(thrown<IoError>([&] { load_safetensors(path); }),
              "load_safetensors: not a .safetensors file, or a damaged one; got " + bad.got + " in \"" + path + "\"; get the file again");
  }
  std::ofstream(path, std::ios::trunc) << file_of(R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})", "xy");
  EXPECT_TRUE(has(thrown<IoError>([&] { load_safetensors(path); }), "an array has an unknown dtype; got F8_E4M3 of array \"a\""));
  std::filesystem::remove(path);
  EXPECT_TRUE(has(thrown<IoError>([&] { load_safetensors(path); }), "cannot open the file; got No such file or directory"));
  EXPECT_TRUE(has(thrown<IoError>([&] { save_safetensors("/nowhere/x", {}); }), "cannot open the file; got No such file or directory"));
  EXPECT_TRUE(has(thrown<IoError>([&] { save_safetensors(path, {{"__metadata__", ones({1})}}); }), "a name is reserved"));
  struct NotUtf8 {
    const char* got;
    std::map<std::string, Array> arrays;
    std::map<std::string, std::string> metadata;
  };
  const Array s = ones({1});
  const NotUtf8 texts[] = {
      {"a name is not UTF-8; got \"a\\ufffd\"", {{"a\xff", s}}, {}},
      {"a name is not UTF-8; got \"a\\ufffd\"", {{"a\xfe", s}, {"a\xff", s}}, {}},
      {"a key of the metadata is not UTF-8; got \"\\ufffd\"", {{"a", s}}, {{"\xc3", "v"}}},
      {"a value of the metadata is not UTF-8; got \"v\\ufffd\"", {{"a", s}}, {{"k", "v\xff"}}},
  };
  for (const NotUtf8& t : texts)
    EXPECT_EQ(thrown<IoError>([&] { save_safetensors(path, t.arrays, t.metadata); }),
              std::string("save_safetensors: ").append(t.got) + "; use UTF-8");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Files, models_round_trip) {
  const std::string path = file_in_temp("model.safetensors");
  Mixed a, b;
  nn::freeze(b, "first.*");
  nn::save(path, a, {{"epoch", "3"}});
  EXPECT_EQ(nn::load(path, b).at("epoch"), "3");
  const auto pa = nn::parameters(a), pb = nn::parameters(b);
  for (std::size_t i = 0; i < pa.size(); ++i) EXPECT_TRUE(same(pa[i].second, pb[i].second)) << pa[i].first;
  EXPECT_EQ(b.first.weight.role, nn::Role::frozen);
  std::filesystem::remove(path);
}

TEST(Files, a_file_that_does_not_fit_changes_nothing) {
  const std::string path = file_in_temp("misfit.safetensors");
  Mlp m;
  std::map<std::string, Array> arrays;
  for (const auto& [name, array] : nn::parameters(m)) arrays[name] = array + 1;
  arrays.erase("up.bias");
  arrays["other"] = arrays["more"] = Array(1.0);
  arrays["down.weight"] = ones({2, 2});
  arrays["down.bias"] = astype(arrays["down.bias"], float16);
  save_safetensors(path, arrays);
  const std::vector<Array> before = tree_flatten(m);
  EXPECT_EQ(
      thrown<IoError>([&] { nn::load(path, m); }),
      "load: the file does not fit the model; got \"" + path +
          "\"; missing: up.bias; unexpected: more, other; of another kind: down.weight is float32 (2,2) for float32 (3,5), down.bias is "
          "float16 (3) for float32 (3)");
  const std::vector<Array> after = tree_flatten(m);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].get(), after[i].get());
  std::filesystem::remove(path);
}

// ---- gradients
// ---------------------------------------------------------------------------------------------------------------------------

TEST(ModelGradient, equals_the_ordinary_one) {
  Mlp m;
  const Array x = random::normal({4, 6}), y({0, 2, 1, 1});
  auto [l, g] = nn::value_and_grad(mlp_loss)(m, x, y);
  auto [l2, g2] = value_and_grad(mlp_loss)(m, x, y);
  EXPECT_TRUE(same(l, l2));
  const auto a = tree_flatten(g), b = tree_flatten(g2);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same(a[i], b[i])) << i;
}

TEST(ModelGradient, frozen_parameters_have_none) {
  Mlp m;
  nn::freeze(m, "up.*");
  const Array before = m.up.weight;
  auto [l, g] = nn::value_and_grad(mlp_loss)(m, ones({4, 6}), Array({0, 2, 1, 1}));
  EXPECT_FALSE(g.up.weight.valid() || g.up.bias.valid());
  EXPECT_TRUE(g.down.weight.valid() && g.down.bias.valid());
  EXPECT_EQ(g.up.weight.role, nn::Role::frozen);
  EXPECT_EQ(m.up.weight.get(), before.get());
  nn::freeze(m);
  EXPECT_EQ(thrown<Error>([&] { nn::value_and_grad(mlp_loss)(m, ones({4, 6}), Array({0, 2, 1, 1})); }),
            "value_and_grad: the model has nothing to train; got 4 arrays; unfreeze some");
}

struct Counted {
  nn::Linear layer{3, 2};
  nn::BatchNorm norm{2};
  Array calls{0};
  std::vector<Array> seen;
  int runs = 0;
  SINTER_FIELDS(layer, norm, calls, seen, runs)
};
Array counted_loss(Counted& m, const Array& x) {
  const Array h = m.layer(x);
  m.calls = m.calls + 1;
  m.seen.push_back(sum(h));  // depends on a variable
  ++m.runs;
  return mean(square(m.norm(h)) + h);
}

TEST(ModelGradient, keeps_what_the_loss_changes) {
  Counted regular, compiled_one = regular;
  auto step = compile([](Counted& m, const Array& x) { return nn::value_and_grad(counted_loss)(m, x); });
  for (int i = 0; i < 3; ++i) {
    const Array x = random::normal({5, 3}, float32, i, 1, random::key(static_cast<std::uint64_t>(i)));
    const Array weight = regular.layer.weight;
    const Array h = regular.layer(x);
    const Array expected = 0.9 * regular.norm.running_mean + 0.1 * mean(h, 0);
    auto [l, g] = nn::value_and_grad(counted_loss)(regular, x);
    EXPECT_EQ(regular.layer.weight.get(), weight.get());
    EXPECT_TRUE(same(regular.norm.running_mean, expected));
    EXPECT_EQ(regular.calls.item<int>(), i + 1);
    EXPECT_EQ(regular.runs, i + 1);
    ASSERT_EQ(regular.seen.size(), static_cast<std::size_t>(i + 1));
    EXPECT_TRUE(same(regular.seen.back(), sum(h)));
    auto [lc, gc] = step(compiled_one, x);
    EXPECT_TRUE(same(l, lc));
    const auto a = tree_flatten(regular), b = tree_flatten(compiled_one), ga = tree_flatten(g), gb = tree_flatten(gc);
    ASSERT_EQ(a.size(), b.size());
    ASSERT_EQ(ga.size(), gb.size());
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(same(a[k], b[k])) << k;
    for (std::size_t k = 0; k < ga.size(); ++k) EXPECT_TRUE(same(ga[k], gb[k])) << k;
  }
  EXPECT_FALSE(same(regular.norm.running_mean, zeros({2})));
}

TEST(ModelGradient, an_exception_leaves_the_model) {
  Counted m;
  const Array mean_before = m.norm.running_mean;
  auto failing = [](Counted& model, const Array& x) {
    Array l = counted_loss(model, x);
    if (model.runs == 1) throw std::runtime_error("no");
    return l;
  };
  EXPECT_EQ(thrown<std::runtime_error>([&] { nn::value_and_grad(failing)(m, ones({5, 3})); }), "no");
  EXPECT_EQ(m.runs, 0);
  EXPECT_EQ(m.norm.running_mean.get(), mean_before.get());
}

}  // namespace
}  // namespace sinter::tests
