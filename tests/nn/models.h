// Models for the tests of this folder, and what they share.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "sinter/sinter.h"
#include "support/thrown.h"

namespace sinter::tests {

struct Mlp {
  nn::Linear up{6, 5}, down{5, 3};
  Array operator()(const Array& x) const { return down(relu(up(x))); }
  SINTER_FIELDS(up, down)
};
inline Array mlp_loss(const Mlp& model, const Array& x, const Array& y) { return cross_entropy(model(x), y, Reduction::mean); }

inline std::vector<double> values(const Array& a) { return a.to_vector<double>(); }
inline bool same(const Array& a, const Array& b) {
  if (!a.valid() || !b.valid()) return a.valid() == b.valid();
  return array_equal(a, b, true).item<bool>();
}
inline void expect_near(const Array& a, const std::vector<double>& b, double tolerance, const std::string& what = "") {
  const std::vector<double> v = values(a);
  ASSERT_EQ(v.size(), b.size()) << what;
  for (std::size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(v[i], b[i], tolerance * (1 + std::abs(b[i]))) << what << ' ' << i;
}
inline std::string file_in_temp(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + name)).string();
}

}  // namespace sinter::tests
