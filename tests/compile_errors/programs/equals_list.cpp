// expect: could not convert|no matching constructor|conversion
#include <sinter/sinter.h>
int main() { sinter::Array a = {1.f, 2.f}; }
