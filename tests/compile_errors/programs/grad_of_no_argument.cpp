// expect: sinter: this transform names an argument that the function does not have
#include <sinter/sinter.h>

int main() {
  auto f = [](const sinter::Array& x, const sinter::Array& y) { return sum(x * y); };
  sinter::grad<2>(f)(1.0, 2.0);
}
