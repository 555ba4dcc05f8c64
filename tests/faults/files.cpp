// The n-th operation of the file system fails, and the n-th mapping of memory, while kernels are looked up, generated and kept: whatever
// fails, the call gives the right results, or throws OutOfMemory where there was no memory for code, and the next call is right.
//
// The functions of the C library that this program calls are those below. They count in a process of its own, which has a cache.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "backends/target.h"
#include "base/knobs.h"
#include "runtime/disk_cache.h"
#include "sinter/sinter.h"

namespace {
std::atomic<std::int64_t> operations_left{-1};
std::atomic<const char*> failed{nullptr};  // the name of what has failed

// The function of this name in the C library, or its failure where that is due.
template <class R, class... A>
R call(const char* name, R failure, int error, A... a) {
  if (operations_left >= 0 && operations_left.fetch_sub(1) == 0) {
    failed = name;
    errno = error;
    return failure;
  }
  return reinterpret_cast<R (*)(A...)>(dlsym(RTLD_NEXT, name))(a...);
}
mode_t mode_in(int flags, va_list list) { return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(list, int)) : 0; }
}  // namespace

extern "C" {
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_in(flags, list);
  va_end(list);
  return call("open", -1, EIO, path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_in(flags, list);
  va_end(list);
  return call("openat", -1, EIO, at, path, flags, mode);
}
int fstat(int fd, struct stat* s) noexcept { return call("fstat", -1, EIO, fd, s); }
int fstatat(int at, const char* path, struct stat* s, int flags) noexcept { return call("fstatat", -1, EIO, at, path, s, flags); }
int mkdir(const char* path, mode_t mode) noexcept { return call("mkdir", -1, EIO, path, mode); }
int mkdirat(int at, const char* path, mode_t mode) noexcept { return call("mkdirat", -1, EIO, at, path, mode); }
int renameat(int from, const char* a, int to, const char* b) noexcept { return call("renameat", -1, EIO, from, a, to, b); }
int unlinkat(int at, const char* path, int flags) noexcept { return call("unlinkat", -1, EIO, at, path, flags); }
int futimens(int fd, const timespec* times) noexcept { return call("futimens", -1, EIO, fd, times); }
int getrlimit(__rlimit_resource_t which, rlimit* limit) noexcept { return call("getrlimit", -1, EIO, which, limit); }
ssize_t pread(int fd, void* to, size_t bytes, off_t at) { return call("pread", ssize_t{-1}, EIO, fd, to, bytes, at); }
ssize_t write(int fd, const void* from, size_t bytes) { return call("write", ssize_t{-1}, ENOSPC, fd, from, bytes); }
ssize_t getrandom(void* to, size_t bytes, unsigned flags) { return call("getrandom", ssize_t{-1}, EAGAIN, to, bytes, flags); }
DIR* fdopendir(int fd) { return call("fdopendir", static_cast<DIR*>(nullptr), ENOMEM, fd); }
dirent* readdir(DIR* d) { return call("readdir", static_cast<dirent*>(nullptr), EIO, d); }
void* mmap(void* at, size_t bytes, int allowed, int flags, int fd, off_t offset) noexcept {
  return call("mmap", MAP_FAILED, ENOMEM, at, bytes, allowed, flags, fd, offset);
}
int mprotect(void* at, size_t bytes, int allowed) noexcept { return call("mprotect", -1, ENOMEM, at, bytes, allowed); }
}

namespace faults {
namespace {

using namespace sinter;
namespace fs = std::filesystem;

std::vector<float> compute() {
  auto f = compile([](const Array& x) { return maximum(x * 0.5f, x - 1.0f); });
  f.clear();
  return f(arange(12, float32) - 5).to_vector<float>();
}
std::vector<fs::path> files(const fs::path& directory) {
  std::vector<fs::path> found;
  if (fs::exists(directory))
    for (const auto& entry : fs::recursive_directory_iterator(directory))
      if (!entry.is_directory()) found.push_back(entry.path());
  return found;
}

TEST(OnDisk, EveryOperation) {
  if (base::knobs().cache_mb == 0) return;  // runs below
  const fs::path directory = runtime::cache_directory();
  const std::vector<float> expected = compute();
  std::set<std::string> seen;
  struct Start {
    const char* name;
    std::function<void()> make;  // of the directory, which has the kernels
  };
  const Start starts[] = {
      {"no directory", [&] { fs::remove_all(directory); }},
      {"kernels", [] {}},
      {"kernels not used for long",
       [&] {
         for (const fs::path& f : files(directory)) fs::last_write_time(f, fs::file_time_type::clock::now() - std::chrono::hours(9));
       }},
      {"damaged kernels",
       [&] {
         for (const fs::path& f : files(directory)) fs::resize_file(f, 40);
       }},
      {"left by a killed process",
       [&] {
         for (const fs::path& f : files(directory)) {
           const fs::path left = f.parent_path() / ".new-1";
           fs::rename(f, left);
           fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(9));
         }
       }},
  };
  for (const Start& start : starts) {
    for (std::int64_t n = 0;; ++n) {
      ASSERT_LT(n, 1000);
      ASSERT_FALSE(files(directory).empty());
      clear_cache();
      start.make();
      failed = nullptr;
      bool threw = false;
      std::vector<float> got;
      operations_left = n;
      try {
        got = compute();
      } catch (const OutOfMemory&) {
        threw = true;
      }
      operations_left = -1;
      if (!failed) break;
      const std::string what = failed.load();
      SCOPED_TRACE(std::string(start.name) + ", operation " + std::to_string(n) + ": " + what);
      seen.insert(what);
      EXPECT_EQ(threw, what == "mmap" || what == "mprotect");
      if (!threw) {
        EXPECT_EQ(got, expected);
      }
      EXPECT_EQ(compute(), expected) << "the next call";
      const bool removes = what == "unlinkat" || &start == std::end(starts) - 1;
      for (const fs::path& f : files(directory))
        EXPECT_TRUE(removes || f.filename().string().find(".new-") == std::string::npos) << f << " is left over";
      clear_cache();
      EXPECT_EQ(compute(), expected) << "from what is on disk now";
      if (HasFailure()) return;
    }
  }
  for (const char* name : {"open", "openat", "fstat", "fstatat", "mkdir", "mkdirat", "renameat", "unlinkat", "futimens", "getrlimit",
                           "pread", "write", "getrandom", "fdopendir", "readdir", "mmap", "mprotect"})
    EXPECT_TRUE(seen.contains(name)) << name << " never failed";
}

// In another process, since the library reads its variables once.
TEST(Faults, TheFileSystem) {
  if (!backends::host_target().code) return;
  const std::string root = mkdtemp((fs::temp_directory_path() / "sinter-test.XXXXXX").string().data());
  const std::string self = fs::read_symlink("/proc/self/exe"), said = root + "/said";
  const std::string command = "SINTER_CACHE_MB=50 SINTER_CACHE_DIR='" + root + "/cache' '" + self + "' --gtest_filter=OnDisk.* >'" + said +
                              "' 2>&1 || { cat '" + said + "'; exit 1; }";
  EXPECT_EQ(std::system(command.c_str()), 0);
  fs::remove_all(root);
}

}  // namespace
}  // namespace faults
