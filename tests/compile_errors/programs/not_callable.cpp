// expect: constraint
#include <sinter/sinter.h>
int main() { sinter::compile(42); }
