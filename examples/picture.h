// A small raster picture for the examples: lines, rectangles, digits, PNG.
#pragma once
#include <png.h>
#include <sinter/error.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

struct Colour {
  std::uint8_t r, g, b;
};

class Picture {
 public:
  Picture(int width, int height)
      : width_(width), height_(height), pixels_(static_cast<std::size_t>(width * height), Colour{255, 255, 255}) {}

  void dot(int x, int y, Colour c) {
    if (x >= 0 && x < width_ && y >= 0 && y < height_) pixels_[static_cast<std::size_t>(y * width_ + x)] = c;
  }
  void rectangle(int x, int y, int width, int height, Colour c) {
    for (int j = y; j < y + height; ++j)
      for (int i = x; i < x + width; ++i) dot(i, j, c);
  }
  void line(double x0, double y0, double x1, double y1, Colour c) {
    const int steps = static_cast<int>(std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1.0})) * 2;
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      const int x = static_cast<int>(std::lround(x0 + (x1 - x0) * t)), y = static_cast<int>(std::lround(y0 + (y1 - y0) * t));
      dot(x, y, c), dot(x, y + 1, c);
    }
  }
  // Digits and points of 3 x 5 squares; (x, y) is the upper left corner.
  void text(const std::string& digits, int x, int y, int zoom, Colour c) {
    static constexpr std::uint16_t kRows[11] = {075557, 026227, 071747, 071717, 055711, 074717, 074757, 071111, 075757, 075717, 000002};
    for (char d : digits) {
      const std::uint16_t rows = kRows[d == '.' ? 10 : d - '0'];
      for (int i = 0; i < 15; ++i)
        if (rows >> (14 - i) & 1) rectangle(x + i % 3 * zoom, y + i / 3 * zoom, zoom, zoom, c);
      x += 4 * zoom;
    }
  }
  static int text_width(const std::string& digits, int zoom) { return (4 * static_cast<int>(digits.size()) - 1) * zoom; }

  void write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_), image.height = static_cast<png_uint_32>(height_), image.format = PNG_FORMAT_RGB;
    if (!png_image_write_to_file(&image, path.c_str(), 0, pixels_.data(), 0, nullptr)) throw sinter::IoError(path + ": " + image.message);
  }

 private:
  int width_, height_;
  std::vector<Colour> pixels_;
};

/// A curve of numbers, and its running mean over `window` of them.
inline void write_curve(const std::string& path, const std::vector<double>& values, std::size_t window) {
  constexpr int kWidth = 720, kHeight = 360, kLeft = 56, kEdge = 16;
  Picture picture(kWidth, kHeight);
  const double top = *std::ranges::max_element(values),
               x_scale = (kWidth - kLeft - kEdge) / std::max(1.0, static_cast<double>(values.size() - 1));
  auto x_of = [&](std::size_t i) { return kLeft + static_cast<double>(i) * x_scale; };
  auto y_of = [&](double v) { return kHeight - kEdge - v / top * (kHeight - 2 * kEdge); };
  for (double level = 0; level <= top; level += std::pow(10, std::floor(std::log10(top))) / 2) {
    picture.rectangle(kLeft, static_cast<int>(y_of(level)), kWidth - kLeft - kEdge, 1, {220, 220, 220});
    const std::string label = std::to_string(level).substr(0, 4);
    picture.text(label, kLeft - 6 - Picture::text_width(label, 2), static_cast<int>(y_of(level)) - 5, 2, {90, 90, 90});
  }
  double sum = 0, before = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) picture.line(x_of(i - 1), y_of(values[i - 1]), x_of(i), y_of(values[i]), {180, 205, 235});
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i] - (i >= window ? values[i - window] : 0);
    const double now = sum / static_cast<double>(std::min(i + 1, window));
    if (i > 0) picture.line(x_of(i - 1), y_of(before), x_of(i), y_of(now), {20, 70, 150});
    before = now;
  }
  picture.write(path);
}

/// Counts as a table of squares, the darker the more: rows are true classes, columns predicted ones.
inline void write_confusion(const std::string& path, const std::vector<std::vector<int>>& counts) {
  constexpr int kCell = 44, kLeft = 32;
  const int n = static_cast<int>(counts.size());
  Picture picture(kLeft + n * kCell, kLeft + n * kCell);
  for (int i = 0; i < n; ++i) {
    const auto& row = counts[static_cast<std::size_t>(i)];
    int total = 0;
    for (int c : row) total += c;
    for (const bool across : {false, true})
      picture.text(std::to_string(i), across ? kLeft + i * kCell + 18 : 12, across ? 10 : kLeft + i * kCell + 14, 3, {90, 90, 90});
    for (int k = 0; k < n; ++k) {
      const int c = row[static_cast<std::size_t>(k)];
      // Few errors beside many right ones: the square root shows both.
      const double share = std::sqrt(static_cast<double>(c) / std::max(total, 1));
      auto mix = [share](int to) { return static_cast<std::uint8_t>(255 + (to - 255) * share); };
      picture.rectangle(kLeft + k * kCell, kLeft + i * kCell, kCell - 1, kCell - 1,
                        i == k ? Colour{mix(20), mix(90), mix(160)} : Colour{mix(190), mix(40), mix(30)});
      if (c > 0) {
        const std::string text = std::to_string(c);
        picture.text(text, kLeft + k * kCell + (kCell - Picture::text_width(text, 2)) / 2, kLeft + i * kCell + 17, 2,
                     share > 0.6 ? Colour{255, 255, 255} : Colour{60, 60, 60});
      }
    }
  }
  picture.write(path);
}
