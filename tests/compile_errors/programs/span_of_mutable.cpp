// expect: take std::span<const T>
#include <span>

#include <sinter/sinter.h>
using namespace sinter;
int main() {
  std::vector<Array> v(1);
  compile([](std::span<Array> s) { return s[0]; })(v);
}
