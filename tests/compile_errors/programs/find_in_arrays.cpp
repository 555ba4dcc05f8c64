// expect: .
#include <algorithm>

#include <sinter/sinter.h>
int main() {
  std::vector<sinter::Array> v(1);
  return std::find(v.begin(), v.end(), sinter::Array(1.0)) == v.end();
}
