// What compiling is worth: gelu written from primitives, as it is and compiled, beside a copy of the same bytes.
#include <sinter/sinter.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace sinter;

namespace {

Array gelu_erf(const Array& x) { return x * (1 + erf(x / std::sqrt(2.0))) / 2; }
Array gelu_tanh(const Array& x) { return 0.5 * x * (1 + tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class F>
double time_ms(F&& f) {
  double start = now_ms();
  f();
  return now_ms() - start;
}

double median(std::vector<double> v) {
  std::ranges::nth_element(v, v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2));
  return v[v.size() / 2];
}

// Megabytes held at most during f, beyond what was held before.
template <class F>
double peak_mb(F&& f) {
  auto before = active_memory();
  reset_peak_memory();
  f();
  return static_cast<double>(peak_memory() - before) / 1e6;
}

void row(const char* name, Array (*f)(const Array&), const Array& x) {
  auto compiled = compile(f, {.name = name});
  double first = time_ms([&] { compiled(x).eval(); });
  double regular_mb = peak_mb([&] { f(x).eval(); });
  double compiled_mb = peak_mb([&] { compiled(x).eval(); });

  // The three are timed in turn, so that whatever else the machine does falls on all of them.
  std::vector<float> copy(static_cast<std::size_t>(x.size()));
  std::vector<double> regular_ms, compiled_ms, copy_ms;
  for (int i = 0; i < 15; ++i) {
    regular_ms.push_back(time_ms([&] { f(x).eval(); }));
    compiled_ms.push_back(time_ms([&] { compiled(x).eval(); }));
    copy_ms.push_back(time_ms([&] { std::memcpy(copy.data(), x.data<float>(), static_cast<std::size_t>(x.nbytes())); }));
  }
  double regular = median(regular_ms), fast = median(compiled_ms);
  std::printf("%-10s %9.1f ms %9.1f ms %8.1fx %9.1f ms %9.1f ms %8.0f MB %8.0f MB\n", name, regular, fast, regular / fast, median(copy_ms),
              first, regular_mb, compiled_mb);
}

}  // namespace

int main() {
  random::seed(0);
  Array x = random::normal({4, 1000, 4096});
  x.eval();
  std::printf("gelu of %.1f million float32 (%.0f MB in, %.0f MB out)\n", static_cast<double>(x.size()) / 1e6,
              static_cast<double>(x.nbytes()) / 1e6, static_cast<double>(x.nbytes()) / 1e6);
  std::printf("%-10s %12s %12s %9s %12s %12s %11s %11s\n", "", "regular", "compiled", "ratio", "memcpy", "first call", "regular",
              "compiled");
  row("gelu_erf", gelu_erf, x);
  row("gelu_tanh", gelu_tanh, x);
}
