// expect: this type is not a tree
#include <sinter/sinter.h>
using namespace sinter;
struct Model {
  int* p;
  Array w;
  SINTER_FIELDS(p, w)
};
int main() {
  Model m;
  compile([](const Model& m, const Array& x) { return x * m.w; })(m, 1.0);
}
