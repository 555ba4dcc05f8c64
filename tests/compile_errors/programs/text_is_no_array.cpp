// expect: no matching (function|constructor)
#include <sinter/sinter.h>
int main() { sinter::Array a("1.5"); }
