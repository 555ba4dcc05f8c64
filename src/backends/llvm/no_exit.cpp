// Nothing in this object is ever destroyed: neither LLVM's tables nor ours. Kernels may be generated while the program ends, by destructors
// of its own objects, by threads that still run; and LLVM registers destructors when this object is opened, so they would run before those
// of everything that is older. The definition serves this object alone. The object is never closed either.
extern "C" [[gnu::visibility("hidden")]] int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
