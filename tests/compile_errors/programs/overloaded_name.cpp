// expect: no matching function
#include <sinter/sinter.h>
int main() { sinter::compile(sinter::round); }
