// Logistic regression by Newton's method on the UCI handwritten digits: softmax over ten classes with an L2 penalty, the whole Hessian by
// automatic differentiation, and a linear system a step. All of a step is one compiled function.
#include <sinter/sinter.h>

#include <chrono>
#include <cstdio>
#include <string>

using namespace sinter;

namespace {

constexpr int kClasses = 10, kPixels = 64, kFeatures = kPixels + 1, kTrain = 1437, kSteps = 20;
constexpr double kPenalty = 1e-3, kTolerance = 1e-10;

// Mean cross entropy and penalty. weights (classes, features), x (n, features), labels (n).
Array loss(const Array& weights, const Array& x, const Array& labels) {
  const Array logits = matmul(x, transpose(weights)), chosen = take_along_axis(logits, expand_dims(labels, 1), 1);
  return mean(logsumexp(logits, 1, true) - chosen) + 0.5 * kPenalty * sum(square(weights));
}

struct Step {
  Array loss, slope;  // where the step began: the loss, and the norm of its gradient
  Array weights;      // where it ends
  SINTER_FIELDS(loss, slope, weights)
};

// weights - H^-1 g, with gradient and Hessian over all weights.
Step newton(const Array& weights, const Array& x, const Array& labels) {
  const auto [value, gradient] = value_and_grad(loss)(weights, x, labels);
  const Dim n = weights.size();
  const Array h = hessian(loss)(weights, x, labels).reshape({n, n}), g = gradient.reshape({n});
  return {value, norm(g), weights - linalg::solve(h, g).reshape(weights.shape())};
}

Array accuracy(const Array& weights, const Array& x, const Array& labels) {
  return mean(astype(argmax(matmul(x, transpose(weights)), 1) == labels, float64));
}

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main() {
  const std::string data = EXAMPLE_DATA;
  const Array pixels = astype(load_idx(data + "/uci-digits-images-idx3-ubyte.gz"), float64).reshape({-1, kPixels}) / 16;
  const Array x = concatenate({pixels, ones({pixels.shape(0), 1}, float64)}, 1);  // the last feature is the bias
  const Array labels = astype(load_idx(data + "/uci-digits-labels-idx1-ubyte.gz"), int32);
  const std::vector<Array> images = split(x, {kTrain}), digits = split(labels, {kTrain});
  std::printf("logistic regression: %d digits of %d pixels to learn from, %lld to test, %d weights\n", kTrain, kPixels,
              static_cast<long long>(static_cast<std::int64_t>(images[1].shape(0))), kClasses * kFeatures);

  const auto step = compile(newton);
  const auto score = compile(accuracy);
  Array weights = zeros({kClasses, kFeatures}, float64);
  for (int i = 0; i < kSteps; ++i) {
    const double start = now_ms(), correct = score(weights, images[1], digits[1]).item<double>();
    Step s = step(weights, images[0], digits[0]);
    s.weights.eval();
    std::printf("step %2d  loss %.12f  gradient %.1e  test accuracy %5.1f%%  %7.1f ms\n", i, s.loss.item<double>(), s.slope.item<double>(),
                100 * correct, now_ms() - start);
    if (s.slope.item<double>() < kTolerance) break;
    weights = s.weights;
  }
  const double start = now_ms();
  Step regular = newton(zeros({kClasses, kFeatures}, float64), images[0], digits[0]);
  regular.weights.eval();
  std::printf("a step without compile: %.1f ms\n", now_ms() - start);
}
