// The first steps: call a function as it is and compiled; when it is compiled again; a function with state.
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

int main() {
  // A compiled function gives what the function gives.
  auto fun = [](const Array& x, const Array& y) { return exp(-x) + y; };
  Array x(1.0), y(2.0);
  std::cout << fun(x, y) << '\n';
  auto compiled = compile(fun);
  std::cout << compiled(x, y) << '\n';

  // It is traced at the first call; later calls, and other compiled functions of the same callable, find what that left behind.
  compiled(x, y);
  compile(fun)(x, y);
  Stats s = compiled.stats();
  std::cout << "calls " << s.calls << ", traces " << s.traces << ", kernels " << s.kernels + s.kernels_from_disk << '\n';

  // A new shape is traced again, but kernels do not depend on sizes; a new dtype needs a kernel of its own.
  for (int i = 1; i <= 3; ++i) {
    for (int n : {4, 5}) compiled(ones({n}), y);
    for (Dtype t : {float32, float64}) compiled(ones({6}, t), zeros({6}, t));
  }
  std::cout << compiled.explain();

  // State is a parameter that the function may change: the vector grows at each call, as in the regular call.
  std::vector<Array> state;
  auto with_state = [](std::vector<Array>& state, const Array& x, const Array& y) {
    Array z = x + y;
    state.push_back(z);
    return exp(z);
  };
  auto compiled_with_state = compile_with_state(with_state);
  for (int i = 0; i < 2; ++i) {
    std::cout << compiled_with_state(state, x, y) << ", state:";
    for (const Array& z : state) std::cout << ' ' << z;
    std::cout << '\n';
  }
}
