// k-means on 8,000 handwritten digits: one compiled step, whose state is the centroids. Writes them as kmeans.png.
#include <png.h>
#include <sinter/sinter.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace sinter;

namespace {

constexpr int kClusters = 10, kSide = 28, kIterations = 25;

struct Step {
  Array inertia;  // sum of squared distances to the nearest centroid
  Array labels;   // (n), the nearest centroid of each point
  SINTER_FIELDS(inertia, labels)
};

// One iteration of Lloyd's algorithm. points (n, d), centroids (k, d).
Step kmeans_step(Array& centroids, const Array& points) {
  Array distances = sum(square(points), 1, true) - 2 * matmul(points, transpose(centroids)) + sum(square(centroids), 1);  // (n, k)
  Array labels = argmin(distances, 1);
  Array members = one_hot(labels, kClusters);  // (n, k)
  Array counts = sum(members, 0);
  Array sums = matmul(transpose(members), points);  // (k, d)
  centroids = where(expand_dims(counts > 0, 1), sums / expand_dims(maximum(counts, 1), 1), centroids);
  return {sum(min(distances, 1)), labels};
}

// The share of points that carry the most frequent label of their cluster.
double purity(const std::vector<int>& clusters, const std::vector<std::uint8_t>& labels) {
  std::array<std::array<int, 10>, kClusters> count{};
  for (std::size_t i = 0; i < labels.size(); ++i) ++count[static_cast<std::size_t>(clusters[i])][labels[i]];
  int right = 0;
  for (const auto& cluster : count) right += *std::max_element(cluster.begin(), cluster.end());
  return right / static_cast<double>(labels.size());
}

// The centroids side by side, magnified four times.
void write_png(const char* path, const std::vector<float>& centroids) {
  constexpr int kZoom = 4, kWidth = kClusters * kSide * kZoom, kHeight = kSide * kZoom;
  std::vector<png_byte> pixels(static_cast<std::size_t>(kWidth * kHeight));
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      int cluster = x / (kSide * kZoom), column = x / kZoom % kSide, row = y / kZoom;
      float value = centroids[static_cast<std::size_t>((cluster * kSide + row) * kSide + column)];
      pixels[static_cast<std::size_t>(y * kWidth + x)] = static_cast<png_byte>(value * 255);
    }
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = kWidth, image.height = kHeight, image.format = PNG_FORMAT_GRAY;
  if (!png_image_write_to_file(&image, path, 0, pixels.data(), 0, nullptr)) throw IoError(std::string("write_png: ") + image.message);
}

// Ten points far apart from each other: each next one is the farthest from those chosen so far.
Array spread_out(const Array& points) {
  std::vector<int> chosen{0};
  Array nearest = sum(square(points - take(points, 0, 0)), 1);
  while (static_cast<int>(chosen.size()) < kClusters) {
    chosen.push_back(argmax(nearest).item<int>());
    nearest = minimum(nearest, sum(square(points - take(points, chosen.back(), 0)), 1));
  }
  return take(points, Array(chosen), 0);
}

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Runs all iterations; prints each one's inertia and purity. Returns the median of milliseconds a step.
template <class F>
double run(const char* what, F step, Array& centroids, const Array& points, const std::vector<std::uint8_t>& digits, bool print) {
  std::vector<double> times;
  for (int i = 1; i <= kIterations; ++i) {
    double start = now_ms();
    Step result = step(centroids, points);
    float inertia = result.inertia.template item<float>();
    centroids.eval();
    double ms = now_ms() - start;
    times.push_back(ms);
    if (print) {
      std::printf("iteration %2d  inertia %9.1f  purity %4.1f%%  %6.2f ms\n", i, inertia,
                  100 * purity(result.labels.template to_vector<int>(), digits), ms);
    }
  }
  double first = times[0];
  std::ranges::nth_element(times, times.begin() + kIterations / 2);
  double median = times[kIterations / 2];
  std::printf("%-9s first step %6.1f ms, then %6.2f ms a step\n", what, first, median);
  return median;
}

}  // namespace

int main() {
  const std::string data = EXAMPLE_DATA;
  std::vector<std::uint8_t> digits = load_idx(data + "/train-labels-idx1-ubyte.gz").to_vector<std::uint8_t>();
  Array points = reshape(astype(load_idx(data + "/train-images-idx3-ubyte.gz"), float32) / 255, {-1, kSide * kSide});
  points.eval();
  std::printf("k-means: %lld digits of %d pixels, %d clusters\n", static_cast<long long>(static_cast<std::int64_t>(points.shape(0))),
              kSide * kSide, kClusters);

  const Array start = spread_out(points);
  Array centroids = start, regular_centroids = start;
  double compiled_ms = run("compiled", compile(kmeans_step), centroids, points, digits, true);
  double regular_ms = run("regular", kmeans_step, regular_centroids, points, digits, false);
  std::printf("regular time / compiled time: %.1f; the centroids are %s\n", regular_ms / compiled_ms,
              array_equal(centroids, regular_centroids).item<bool>() ? "equal bit for bit" : "DIFFERENT");
  write_png("kmeans.png", centroids.to_vector<float>());
  std::printf("kmeans.png: the ten centroids\n");
}
