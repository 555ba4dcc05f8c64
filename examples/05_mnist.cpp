// Trains two networks on 8,000 handwritten digits and tests them on 2,000 others: one compiled step whose state is the model and its
// optimizer. Writes for each the loss and what it confuses as PNG, and a checkpoint, which is read back and verified.
#include <sinter/sinter.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "picture.h"

using namespace sinter;

namespace {

constexpr int kBatch = 128, kSide = 28, kPixels = kSide * kSide;

struct Mlp {
  nn::Linear first{kPixels, 512}, second{512, 512}, last{512, 10};
  nn::Dropout drop{0.3};
  Array operator()(const Array& x) const { return last(drop(relu(second(drop(relu(first(x))))))); }
  SINTER_FIELDS(first, second, last, drop)
};

struct ConvNet {
  nn::Conv2d first{1, 16, 3, 1, 1}, second{16, 32, 3, 1, 1};
  nn::MaxPool2d pool{2};
  nn::Linear third{7 * 7 * 32, 128}, last{128, 10};
  nn::Dropout drop{0.3};
  Array operator()(const Array& x) const {
    Array h = reshape(x, {x.shape(0), kSide, kSide, 1});
    h = pool(relu(second(pool(relu(first(h))))));
    return last(drop(relu(third(flatten(h, 1)))));
  }
  SINTER_FIELDS(first, second, pool, third, last, drop)
};

template <class Model>
Array loss(const Model& model, const Array& x, const Array& y) {
  return cross_entropy(model(x), y, Reduction::mean);
}

template <class Model>
Array train_step(Model& model, optim::AdamW& optimizer, const Array& x, const Array& y) {
  auto [value, gradients] = nn::value_and_grad(loss<Model>)(model, x, y);
  optimizer.update(model, gradients);
  return value;
}

struct Digits {
  Array images;  // (n, 784), 0 to 1
  Array labels;  // (n), uint8
};
Digits load(const std::string& name) {
  const std::string data = EXAMPLE_DATA;
  Array pixels = load_idx(data + "/" + name + "-images-idx3-ubyte.gz");
  return {reshape(astype(pixels, float32) / 255, {-1, kPixels}).eval(), load_idx(data + "/" + name + "-labels-idx1-ubyte.gz")};
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// On a terminal a bar that moves; else a line an epoch.
class Progress {
 public:
  explicit Progress(std::int64_t steps) : steps_(steps), start_(now()) {}
  void show(std::int64_t done, std::int64_t images, double value, int epoch, bool epoch_ends) {
    const double seconds = now() - start_, left = seconds / static_cast<double>(done) * static_cast<double>(steps_ - done);
    const int filled = static_cast<int>(30 * done / steps_);
    if (terminal_)
      std::printf("\r[%.*s%.*s] epoch %2d  loss %.4f  %6.0f images/s  %4.1f s left ", filled, "##############################", 30 - filled,
                  "..............................", epoch, value, static_cast<double>(images) / seconds, left);
    else if (epoch_ends)
      std::printf("epoch %2d  loss %.4f  %6.0f images/s  %4.1f s left\n", epoch, value, static_cast<double>(images) / seconds, left);
    if (terminal_ && done == steps_) std::printf("\n");
    std::fflush(stdout);
  }

 private:
  std::int64_t steps_;
  double start_;
  bool terminal_ = isatty(STDOUT_FILENO) == 1;
};

template <class Model>
std::vector<int> predict(Model model, const Array& images) {
  nn::eval(model);
  const Array predicted = compile([](const Model& m, const Array& x) { return argmax(m(x), 1); })(model, images);
  return predicted.to_vector<int>();
}
double accuracy(const std::vector<int>& predicted, const std::vector<int>& labels) {
  int right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += predicted[i] == labels[i];
  return right / static_cast<double>(labels.size());
}

// The median of milliseconds a step.
template <class Step, class Model>
double time_steps(Step step, Model model, optim::AdamW optimizer, const Array& x, const Array& y) {
  std::vector<double> times;
  for (int i = 0; i < 25; ++i) {
    const double start = now();
    const Array value = step(model, optimizer, x, y);
    eval(value, model, optimizer);
    times.push_back(1e3 * (now() - start));
  }
  std::ranges::nth_element(times, times.begin() + 12);
  return times[12];
}

template <class Model>
void train_and_test(const std::string& name, int epochs, double rate, const Digits& training, const Digits& test) {
  random::seed(3);
  const data::Batches batches({training.images, training.labels}, kBatch);
  Model model;
  std::printf("---- %s\n%s\n", name.c_str(), nn::summary(model).c_str());

  const std::int64_t steps = epochs * batches.count();
  optim::AdamW optimizer(optim::warm_up(20, optim::cosine_decay(rate, steps - 20, 1e-5)), 0.01);
  optimizer.init(model);
  auto step = compile(train_step<Model>, {.name = "train_step"});

  std::vector<double> losses;
  Progress progress(steps);
  const double start = now();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::int64_t in_epoch = 0;
    for (const std::vector<Array>& batch : batches.epoch(random::key(static_cast<std::uint64_t>(epoch)))) {
      const Array value = step(model, optimizer, batch[0], batch[1]);
      losses.push_back(value.item<double>());
      const auto done = static_cast<std::int64_t>(losses.size());
      progress.show(done, done * kBatch, losses.back(), epoch, ++in_epoch == batches.count());
    }
  }
  const auto stats = step.stats();
  std::printf("%lld steps in %.1f s; %lld traces (one for the smaller last batch), %lld kernels\n", static_cast<long long>(steps),
              now() - start, static_cast<long long>(stats.traces), static_cast<long long>(stats.kernels + stats.kernels_from_disk));

  const std::vector<int> labels = test.labels.to_vector<int>(), predicted = predict(model, test.images);
  std::printf("test accuracy: %.2f%% of %zu digits\n", 100 * accuracy(predicted, labels), labels.size());

  const std::string checkpoint = name + ".safetensors";
  nn::save(checkpoint, model, {{"accuracy", std::to_string(accuracy(predicted, labels))}});
  random::seed(2);
  Model loaded;
  nn::load(checkpoint, loaded);
  std::printf("%s: loaded into a new model; its predictions are %s\n", checkpoint.c_str(),
              predict(loaded, test.images) == predicted ? "the same" : "DIFFERENT");

  const Array x = slice(training.images, {0}, {kBatch}), y = slice(training.labels, {0}, {kBatch});
  const double regular = time_steps(train_step<Model>, model, optimizer, x, y), compiled = time_steps(step, model, optimizer, x, y);
  std::printf("a step of %d images: regular %.2f ms, compiled %.2f ms (%.2f times)\n", kBatch, regular, compiled, regular / compiled);

  std::vector<std::vector<int>> confusion(10, std::vector<int>(10));
  for (std::size_t i = 0; i < labels.size(); ++i) ++confusion[static_cast<std::size_t>(labels[i])][static_cast<std::size_t>(predicted[i])];
  write_curve(name + "_loss.png", losses, static_cast<std::size_t>(batches.count()));
  write_confusion(name + "_confusion.png", confusion);
  std::printf("%s_loss.png: the loss of each step and its mean; %s_confusion.png: true digits down, predicted ones across\n\n",
              name.c_str(), name.c_str());
}

}  // namespace

int main() {
  const Digits training = load("train"), test = load("test");
  train_and_test<Mlp>("mnist_mlp", 15, 2e-3, training, test);
  train_and_test<ConvNet>("mnist_conv", 10, 4e-3, training, test);
}
