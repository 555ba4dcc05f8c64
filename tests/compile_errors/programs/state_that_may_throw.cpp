// expect: a state must be nothrow move assignable
#include <sinter/sinter.h>
using namespace sinter;
struct Throws {
  Array a;
  Throws() = default;
  Throws(const Throws&) = default;
  Throws& operator=(const Throws&) { return *this; }
  SINTER_FIELDS(a)
};
int main() {
  Throws t;
  compile([](Throws& t) { t.a = t.a + 1; })(t);
}
