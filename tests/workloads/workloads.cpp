// Kernels, library calls and memory traffic of each workload of the benchmark: a lost fusion fails here rather than in a measurement.
// `bytes` is what the kernels move at least, an array's memory once a kernel that reads or writes it; library calls are not in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "bench.h"

namespace {

struct Cost {
  std::int64_t kernels = 0, calls = 0, bytes = 0;
  bool operator==(const Cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Cost& c) { return out << c.kernels << ", " << c.calls << ", " << c.bytes; }
};

struct Expected {
  const char* name;
  Cost cost;
};
const Expected kExpected[] = {
    {"expneg_add", {1, 0, 120000000}},     {"gelu_erf", {1, 0, 131072000}},      {"gelu_tanh", {1, 0, 131072000}},
    {"black_scholes", {1, 0, 64000000}},   {"adam", {1, 0, 280000000}},          {"bcast_t", {1, 0, 201342976}},
    {"softmax", {1, 0, 134217728}},        {"softmax_vocab", {1, 0, 102926336}}, {"layernorm", {1, 0, 134250496}},
    {"layernorm_vmap", {1, 0, 134250496}}, {"rmsnorm", {1, 0, 134234112}},       {"colsum_var", {4, 0, 68534272}},
    {"chain200", {1, 0, 8000000}},         {"mlp_train", {12, 8, 24028632}},     {"mlp_forward", {4, 3, 2116140}},
    {"mlp_gradient", {7, 8, 5296724}},     {"block_fwd", {11, 19, 96826880}},    {"block_train", {54, 56, 345304480}},
    {"decode", {109, 0, 76498736}},        {"decode_places", {97, 0, 83906072}}, {"tiny_call", {1, 0, 128}},
    {"small_call", {1, 0, 12288}},         {"compile_1k", {2, 0, 32768}},        {"compile_10k", {20, 0, 327680}},
    {"grad_1k", {5, 0, 1601536}},          {"grad_10k", {47, 0, 20525056}},      {"random_1k", {2, 0, 581632}},
    {"random_10k", {15, 0, 5861376}},
};

// Steps are lines that begin with a name and hold buffers in parentheses; what follows a launch is its kernel.
Cost cost_of(const std::string& text) {
  Cost cost;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == ' ' || line[0] == '}' || line.starts_with("kernel ")) continue;
    if (!line.starts_with("launch ")) {
      ++cost.calls;
      continue;
    }
    ++cost.kernels;
    const std::string word = " bytes ";
    cost.bytes += std::stoll(line.substr(line.find(word) + word.size()));
  }
  return cost;
}

Cost cost_of(const bench::Row& row) {
  bench::Arrays in;
  for (const sinter::Shape& shape : row.inputs) in.push_back(sinter::zeros(shape));
  return cost_of(row.make(in).kernels());
}

TEST(Workloads, KernelsAndBytes) {
  std::size_t known = 0;
  for (const bench::Row& row : bench::rows()) {
    const Cost cost = cost_of(row);
    const auto* expected =
        std::find_if(std::begin(kExpected), std::end(kExpected), [&](const Expected& e) { return std::string_view(row.name) == e.name; });
    if (expected == std::end(kExpected)) {
      ADD_FAILURE() << row.name << " has no line here: {\"" << row.name << "\", {" << cost << "}},";
      continue;
    }
    ++known;
    EXPECT_EQ(cost, expected->cost) << row.name;
  }
  EXPECT_EQ(known, std::size(kExpected)) << "a line is no row of the benchmark";
}

}  // namespace
