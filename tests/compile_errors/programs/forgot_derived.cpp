// expect: write SINTER_FIELDS_AND_BASE
#include <sinter/sinter.h>
using namespace sinter;
struct Base {
  Array w;
  SINTER_FIELDS(w)
};
struct Model : Base {
  Array b;
};
int main() {
  Model m;
  compile([](const Model& m, const Array& x) { return x * m.w; })(m, 1.0);
}
