// expect: take std::span<const T>
#include <sinter/sinter.h>

#include <span>
using namespace sinter;
int main() {
  std::vector<Array> v(1);
  compile([](std::span<Array> s) { return s[0]; })(v);
}
