// expect: an argument that is not state must be copyable
#include <sinter/sinter.h>

#include <memory>
using namespace sinter;
struct Model {
  Array w{1.0};
  std::unique_ptr<int> p;
  SINTER_FIELDS(w)
};
int main() {
  Model m;
  compile([](const Model& m) { return m.w + 1; })(m);
}
