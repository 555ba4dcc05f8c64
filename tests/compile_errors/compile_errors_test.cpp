// Programs that must not compile, and what the compiler must say: programs/*.cpp, each with `// expect: REGEX` in its first line.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string in_quotes(const std::string& s) { return "'" + s + "'"; }

TEST(compile_errors, each_program_is_refused_with_its_message) {
  const std::string source = SINTER_SOURCE_DIR;
  const char* compiler = std::getenv("CXX");
  // generated/ lies next to the test program.
  const std::string generated = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "generated";
  std::vector<std::string> programs;
  for (const auto& entry : std::filesystem::directory_iterator(source + "/tests/compile_errors/programs")) programs.push_back(entry.path());
  EXPECT_GE(programs.size(), 20u);
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  auto work = [&] {
    for (std::size_t i; (i = next++) < programs.size();) {
      const std::string command = in_quotes(source + "/tests/compile_errors/run.sh") + ' ' + in_quotes(compiler ? compiler : "c++") + ' ' +
                                  in_quotes(programs[i]) + ' ' + in_quotes(source + "/include") + ' ' + in_quotes(generated);
      const int status = std::system(command.c_str());
      std::lock_guard guard(lock);
      EXPECT_EQ(status, 0) << programs[i];
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
}

}  // namespace
