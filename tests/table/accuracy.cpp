// Accuracy in float32 of the code that is generated for the floating functions, alone and fused, against the C library in long double.
#include "support/accuracy.h"

#include <algorithm>

#include "table/table.h"

namespace sinter::tests {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();

Array to_array(const std::vector<double>& x) { return Array(std::vector<float>(x.begin(), x.end())); }

// Element by element within `bound` of want(i); and the same bits fused between two negations.
std::string check(const char* function, const std::vector<Array>& in, double bound, const std::function<long double(std::size_t)>& want) {
  const Op op = ops::find_op(function);
  const Array regular = call(op, in);
  const std::vector<float> got = regular.to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (const double error = ulp(Dtype::float32, got[i], want(i)); error > bound)
      return str(function, ": element ", i, " is ", got[i], ", off by ", error, " ulp");
  auto fused = compile([op](const std::vector<Array>& x) {
    std::vector<Array> negated;
    for (const Array& a : x) negated.push_back(-a);
    return -call(op, negated);
  });
  std::vector<Array> negated;
  for (const Array& a : in) negated.push_back(-a);
  return graph::difference({{read(fused(negated))}}, {{read(-regular)}});
}

TEST(Table, AccuracyOfUnaryFunctions) {
  std::vector<std::function<std::string()>> jobs;
  for (const UnaryCase& c : kUnary)
    jobs.push_back([&c] {
      const auto x = samples(Dtype::float32, std::max(c.low, -kLargest), std::min(c.high, kLargest), 1000, 5);
      return check(c.function, {to_array(x)}, c.single, [&](std::size_t i) { return c.reference(x[i]); });
    });
  run_jobs(std::move(jobs));
}

TEST(Table, AccuracyOfBinaryFunctions) {
  std::vector<std::function<std::string()>> jobs;
  for (const BinaryCase& c : kBinary)
    jobs.push_back([&c] {
      auto x = samples(Dtype::float32, std::max(c.low, -kLargest), std::min(c.high, kLargest), 1000, 5);
      auto y = samples(Dtype::float32, std::max(c.low2, -kLargest), std::min(c.high2, kLargest), 1000, 6);
      x.resize(std::min(x.size(), y.size()));
      y.resize(x.size());
      std::shuffle(y.begin(), y.end(), std::mt19937(3));
      return check(c.function, {to_array(x), to_array(y)}, c.single, [&](std::size_t i) { return c.reference(x[i], y[i]); });
    });
  run_jobs(std::move(jobs));
}

}  // namespace
}  // namespace sinter::tests
