// The main of every test program. Test programs find no kernels of earlier runs, so that counts of kernels hold: each run generates its
// own. The library reads its variables before main() begins, hence the second start. tests/disk_cache sets the variable itself.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

int main(int argc, char** argv) {
  if (!std::getenv("SINTER_CACHE_MB")) {
    setenv("SINTER_CACHE_MB", "0", 1);
    execv("/proc/self/exe", argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
