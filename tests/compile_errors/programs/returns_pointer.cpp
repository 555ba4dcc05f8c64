// expect: this type is not a tree
#include <sinter/sinter.h>
using namespace sinter;
int main() {
  compile([](const Array& x) { return &x; })(1.0);
}
