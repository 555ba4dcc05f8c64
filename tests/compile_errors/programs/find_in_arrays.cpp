// expect: .
#include <sinter/sinter.h>

#include <algorithm>
int main() {
  std::vector<sinter::Array> v(1);
  return std::find(v.begin(), v.end(), sinter::Array(1.0)) == v.end();
}
