#include "disk_cache/worker.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <regex>

#include "backends/target.h"
#include "sinter/sinter.h"

namespace sinter::tests {
namespace {

constexpr const char* kCount = "SINTER_TEST_KERNELS";

int count_of_kernels() {
  const char* text = std::getenv(kCount);
  return text ? std::atoi(text) : 4;
}

// A kernel for each number up to 63: a step for each of its bits.
template <class T, class Max>
T steps(T y, int number, Max max) {
  for (int bit = 0; bit < 6; ++bit) y = number >> bit & 1 ? max(y * 0.5f, y - 1.0f) : max(y, -y) + 2.0f;
  return y;
}

// Computes on a few kernels and says where they came from. Runs by itself, too.
TEST(Worker, Computes) {
  const int kernels = count_of_kernels();
  const std::vector<float> x{-3, -0.5f, 0.25f, 5, 7, 100, 1e6f};
  const bool sorts = std::getenv(kSorts) != nullptr;
  Stats sums[2];  // at first, and after clear_cache()
  for (Stats& sum : sums) {
    for (int number = 1; number <= kernels; ++number) {
      auto f = compile([=](const Array& a) { return steps(sorts ? sort(a) : a, number, [](auto p, auto q) { return maximum(p, q); }); });
      const std::vector<float> got = f(Array(x)).to_vector<float>();
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(got[i], steps(x[i], number, [](float p, float q) { return std::max(p, q); })) << number << ", element " << i;
      const Stats s = f.stats();
      EXPECT_EQ(f.explain().find("0 kernels, 1 from disk") != std::string::npos, s.kernels_from_disk == 1) << f.explain();
      sum.kernels += s.kernels, sum.kernels_from_disk += s.kernels_from_disk;
    }
    clear_cache();
  }
  std::ifstream maps("/proc/self/maps");
  std::stringstream mapped;
  mapped << maps.rdbuf();
  std::cout << "worker: generated " << sums[0].kernels << ", from disk " << sums[0].kernels_from_disk << ", again generated "
            << sums[1].kernels << ", from disk " << sums[1].kernels_from_disk << ", LLVM "
            << (mapped.str().find("libsinter_codegen") != std::string::npos) << ", " << (HasFailure() ? "wrong" : "right") << std::endl;
}

}  // namespace

Worker::Worker(const Environment& environment, int kernels, const std::function<void()>& prepare, const char* test) {
  const std::string self = fs::read_symlink("/proc/self/exe");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process = fork();
  if (process == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    for (const char* variable : {"SINTER_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) unsetenv(variable);
    setenv("SINTER_CACHE_MB", "50", 1);
    setenv("SINTER_LOG", "1", 1);
    setenv(kCount, std::to_string(kernels).c_str(), 1);
    const std::string filter = std::string("--gtest_filter=Worker.") + test;
    for (const auto& [variable, value] : environment) setenv(variable.c_str(), value.c_str(), 1);
    if (prepare) prepare();
    execl(self.c_str(), self.c_str(), filter.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  output = ends[0];
}
Worker::~Worker() {
  if (output >= 0) finish();
}

Worked Worker::finish() {
  Worked w;
  char buffer[4096];
  for (ssize_t n; (n = read(output, buffer, sizeof buffer)) > 0;) w.said.append(buffer, static_cast<std::size_t>(n));
  close(std::exchange(output, -1));
  int status = 0;
  waitpid(process, &status, 0);
  std::smatch found;
  static const std::regex line("worker: generated (\\d+), from disk (\\d+), again generated (\\d+), from disk (\\d+), LLVM (\\d), right");
  if (!std::regex_search(w.said, found, line)) return w;
  w.right = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  w.generated = std::stoi(found[1]), w.from_disk = std::stoi(found[2]);
  w.again_generated = std::stoi(found[3]), w.again_from_disk = std::stoi(found[4]), w.llvm = found[5] == "1";
  return w;
}

Worked work(const Environment& environment, const std::function<void()>& prepare) { return Worker(environment, kFew, prepare).finish(); }
Worked work(const Folder& folder, const std::function<void()>& prepare) {
  return work(Environment{{"SINTER_CACHE_DIR", folder.path}}, prepare);
}

bool is_worker() { return std::getenv(kCount) != nullptr; }

bool generates() { return backends::host_target().code; }

const Folder& filled() {
  static const Folder folder;
  EXPECT_TRUE(!folder.files().empty() || work(folder).right);
  return folder;
}

testing::AssertionResult worked(const Worked& w, int generated, int from_disk) {
  if (w.right && w.generated == generated && w.from_disk == from_disk) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "not " << generated << " generated, " << from_disk << " from disk: " << w.said;
}

}  // namespace sinter::tests
