// expect: pass one that can be written
#include <sinter/sinter.h>
using namespace sinter;
int main() {
  const nn::Linear model(2, 1);
  nn::value_and_grad([](const auto& m, const Array& x) { return sum(m(x)); })(model, ones({3, 2}));
}
