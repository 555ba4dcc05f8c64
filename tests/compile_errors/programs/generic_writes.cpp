// expect: discards qualifiers|no viable overloaded|no match for|not marked const
#include <sinter/sinter.h>
using namespace sinter;
int main() {
  Array s(1.0);
  compile([](auto& s, const Array& x) {
    s = s + x;
    return x;
  })(s, Array(1.0));
}
