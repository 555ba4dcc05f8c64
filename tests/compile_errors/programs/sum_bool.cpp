// expect: .
#include <sinter/sinter.h>
int main() { sinter::sum(sinter::Array({1, 2}), true); }
