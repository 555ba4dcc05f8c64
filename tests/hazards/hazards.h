// Faults that users of array compilers have met, each as the kind that it stands for: over the dtypes, lengths and operations it can touch.
// Test N of suite `hazard` is line N of that list; lines 34 to 37, which are about files, are in tests/disk_cache.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sinter/compile.h"
#include "sinter/sinter.h"
#include "support/graphs.h"

namespace sinter::tests {

using Arrays = std::vector<Array>;

inline const std::vector<Dtype> kUnsigned{uint8, uint16, uint32, uint64}, kSigned{int8, int16, int32, int64},
    kIntegers{uint8, uint16, uint32, uint64, int8, int16, int32, int64}, kFloats{float16, bfloat16, float32, float64};

inline int bits_of(Dtype t) { return 8 * size_of(t); }

/// Elements of dtype t.
inline Array make(const std::vector<double>& v, Dtype t) { return Array(v, t); }
/// n elements: v over and over.
inline std::vector<double> repeat(const std::vector<double>& v, std::size_t n) {
  std::vector<double> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(v[i % v.size()]);
  return out;
}

/// The elements. Of bool, any byte but 0 is true.
inline std::vector<Tensor> elements_of(std::span<const Array> arrays) {
  std::vector<Tensor> tensors = read(arrays);
  for (Tensor& t : tensors) {
    if (t.dtype != bool_) continue;
    for (std::byte& b : t.bytes) b = std::byte{b != std::byte{0}};
  }
  return tensors;
}

/// Equal dtypes, shapes and bits; NaNs are equal.
inline std::string difference(const Array& a, const Array& b) { return graph::difference(elements_of({&a, 1}), elements_of({&b, 1})); }

/// The regular result; a failure where the compiled call, the first or the second, differs in a bit.
inline Arrays both(const std::function<Arrays(const Arrays&)>& f, const Arrays& in, const std::string& what = "") {
  const Arrays regular = f(in);
  const std::vector<Tensor> expected = elements_of(regular);
  auto compiled = compile(f);
  for (int n = 0; n < 2; ++n) EXPECT_EQ(graph::difference(elements_of(compiled(in)), expected), "") << what << ", compiled call " << n;
  return regular;
}
inline Array both(const std::function<Array(const Arrays&)>& f, const Arrays& in, const std::string& what = "") {
  return both([f](const Arrays& a) { return Arrays{f(a)}; }, in, what)[0];
}

/// The elements as numbers, NaNs being equal.
inline void expect_values(const Array& a, const std::vector<double>& expected, const std::string& what) {
  const std::vector<double> got = a.to_vector<double>();
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], e = expected[i];
    const bool equal = std::isnan(e) ? std::isnan(g) : g == e && std::signbit(g) == std::signbit(e);
    ASSERT_TRUE(equal) << what << ", element " << i << ": " << g << ", not " << e;
  }
}

}  // namespace sinter::tests
