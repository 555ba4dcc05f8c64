// Programs that must not compile, and what the compiler must say: programs/*.cpp, each with `// expect: REGEX` in its first line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

std::string quoted(const std::string& s) { return "'" + s + "'"; }

TEST(compile_errors, each_program_is_refused_with_its_message) {
  const std::string source = SINTER_SOURCE_DIR;
  const char* compiler = std::getenv("CXX");
  // generated/ lies next to the test program.
  const std::string generated = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "generated";
  int programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source + "/tests/compile_errors/programs")) {
    ++programs;
    const std::string command = quoted(source + "/tests/compile_errors/run.sh") + ' ' + quoted(compiler ? compiler : "c++") + ' ' +
                                quoted(entry.path()) + ' ' + quoted(source + "/include") + ' ' + quoted(generated);
    EXPECT_EQ(std::system(command.c_str()), 0) << entry.path();
  }
  EXPECT_GE(programs, 20);
}

}  // namespace
