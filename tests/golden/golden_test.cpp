#include "golden/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/knobs.h"

namespace sinter::golden {
namespace {

const std::string kFolder = std::string(SINTER_SOURCE_DIR) + "/tests/golden";

std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") found.push_back(std::filesystem::relative(entry.path(), kFolder).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string read(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Expected) {
  const std::string path = kFolder + "/" + GetParam();
  std::vector<Case> cases = read_cases(read(path));
  ASSERT_FALSE(cases.empty()) << GetParam() << " holds no case";
  for (Case& c : cases) {
    std::string got;
    try {
      got = run_case(c);
    } catch (const std::exception& e) {
      ADD_FAILURE() << GetParam() << ", " << c.run_line << "\n" << c.input << e.what();
      got = c.expected;
      continue;
    }
    if (base::knobs().bless) {
      c.has_expected = true;
      c.expected = got;
      continue;
    }
    EXPECT_TRUE(c.has_expected) << GetParam() << ", " << c.run_line << ": there is no expectation; bless it: SINTER_BLESS=1 test_golden\n"
                                << got;
    if (c.has_expected && got != c.expected) {
      ADD_FAILURE() << GetParam() << ", " << c.run_line << "\n" << diff(c.expected, got) << "if this is right: SINTER_BLESS=1 test_golden";
    }
  }
  if (base::knobs().bless) std::ofstream(path) << write_cases(cases);
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(files()), [](const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.size() - 4);
  std::replace_if(name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
  return name;
});

TEST(GoldenRunner, ReadsCasesAndFindsDifferences) {
  const std::string text = ";; a comment\n;; run: simplify, fold | outcome=same | fast\na\n;; expect\nb\n\n;; run: graph\nc\n";
  const std::vector<Case> cases = read_cases(text);
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].comment, ";; a comment\n");
  EXPECT_EQ(cases[0].steps, (std::vector<std::string>{"simplify", "fold"}));
  EXPECT_EQ(cases[0].options, (std::vector<std::string>{"outcome=same", "fast"}));
  EXPECT_EQ(cases[0].expected, "b\n");
  EXPECT_FALSE(cases[1].has_expected);
  EXPECT_EQ(diff("a\nb\nc\n", "a\nx\nc\n"), "    a\n  - b\n  + x\n    c\n");
}

}  // namespace
}  // namespace sinter::golden
