// Processes that compute on a cache directory, and what they said: where their kernels came from, and whether the results were right.
#pragma once
#include <map>
#include <string>

#include "disk_cache/folder.h"

namespace sinter::tests {

struct Worked {
  bool right = false;
  int generated = -1, from_disk = -1;              // at first
  int again_generated = -1, again_from_disk = -1;  // after clear_cache()
  bool llvm = false;                               // the code generator was loaded
  std::string said;
};
testing::AssertionResult worked(const Worked& w, int generated, int from_disk);

using Environment = std::map<std::string, std::string>;  // empty: as if not set

/// Set: the worker's functions sort first, so that their plans are not kept.
inline constexpr const char* kSorts = "SINTER_TEST_SORTS";

/// This program in another process, where it runs a test of Worker's alone.
struct Worker {
  pid_t process = -1;
  int output = -1;

  /// `prepare` runs in the new process, before the program starts.
  Worker(const Environment& environment, int kernels, const std::function<void()>& prepare = {}, const char* test = "Computes");
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();
  Worked finish();
};

inline constexpr int kFew = 3;
/// Whether this process is one.
bool is_worker();
/// A worker with few kernels, from its start to its end.
Worked work(const Environment& environment, const std::function<void()>& prepare = {});
Worked work(const Folder& folder, const std::function<void()>& prepare = {});

/// A cache that has these kernels.
const Folder& filled();

/// Elsewhere kernels are interpreted, and there is nothing to keep.
bool generates();

}  // namespace sinter::tests
