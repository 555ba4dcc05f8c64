// expect: constraint
#include <sinter/sinter.h>
using namespace sinter;
int main() {
  compile_with_state([](const Array& s, const Array& x) { return s + x; });
}
