// expect: a const field cannot be part of a tree
#include <sinter/sinter.h>
using namespace sinter;
struct Model {
  const Array w{1.0};
  SINTER_FIELDS(w)
};
int main() {
  Model m;
  compile([](const Model& m) { return m.w + 1; })(m);
}
