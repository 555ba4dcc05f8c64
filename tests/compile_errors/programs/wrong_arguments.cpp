// expect: cannot be called with these arguments|no match for call|no matching function
#include <sinter/sinter.h>
using namespace sinter;
int main() {
  compile([](const auto& a, const auto& b) { return a + b; })(Array(1.0));
}
