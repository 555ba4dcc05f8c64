// expect: designator|declaration order
#include <sinter/sinter.h>
using namespace sinter;
int main() {
  compile([](const Array& x) { return x; }, {.captures = Captures::constant, .shapeless = true});
}
