// expect: captured\(\) takes trees that may be written
#include <sinter/sinter.h>
using namespace sinter;
int main() {
  const Array w(1.0);
  compile([&](const Array& x) { return x * w; }, captured(w));
}
