// Literals as text, and knobs.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "base/knobs.h"
#include "base/text.h"

namespace sinter {
namespace {

std::uint64_t read_back(Dtype t, std::uint64_t bits, std::string& text) {
  text.clear();
  text::append_literal(text, t, bits);
  return text::Lexer(text, "literal").literal(t);
}

TEST(Text, LiteralsReadBackByBits) {
  std::mt19937_64 random(1);
  std::string text;
  for (int d = 0; d < kDtypeCount; ++d) {
    const auto t = static_cast<Dtype>(d);
    const std::uint64_t mask = size_of(t) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(t))) - 1;
    const std::uint64_t count = size_of(t) <= 2 ? mask + 1 : 20000;  // all of the narrow ones
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = size_of(t) <= 2 ? i : random() & mask;
      ASSERT_EQ(read_back(t, bits, text), bits) << text << " of " << name(t);
    }
  }
}

TEST(Text, LiteralsLookNatural) {
  const std::tuple<Dtype, std::uint64_t, const char*> cases[] = {
      {float32, 0x3f800000, "1"},
      {float32, 0x80000000, "-0"},
      {float32, 0x3dcccccd, "0.1"},
      {float32, 0x7fc00000, "0x7fc00000"},
      {float64, 0x3ff8000000000000, "1.5"},
      {bfloat16, 0x3fc0, "1.5"},
      {float16, 0x0001, "5.9604645e-08"},
      {bool_, 1, "true"},
      {int8, 0x80, "-128"},
      {uint64, ~std::uint64_t{0}, "18446744073709551615"},
      {complex64, 0x800000003fc00000, "(1.5, -0)"},
  };
  for (const auto& [t, bits, expected] : cases) {
    std::string text;
    text::append_literal(text, t, bits);
    EXPECT_EQ(text, expected);
  }
}

TEST(Text, RejectsWhatTheDtypeDoesNotHold) {
  const std::pair<Dtype, const char*> cases[] = {{uint8, "256"},
                                                 {uint8, "-1"},
                                                 {int8, "128"},
                                                 {float16, "65505"},
                                                 {float16, "1e9"},
                                                 {bool_, "2"},
                                                 {int32, "1.5"},
                                                 {float32, "1e99"},
                                                 {float32, "0x123456789"},
                                                 {complex64, "1"},
                                                 {int64, "9223372036854775808"}};
  for (const auto& [t, text] : cases) EXPECT_THROW(text::Lexer(text, "literal").literal(t), Error) << text << " of " << name(t);
}

TEST(Knobs, ReadsTheEnvironment) {
  const base::Knobs k = base::read_knobs([](const char* variable) -> const char* {
    const std::pair<const char*, const char*> environment[] = {{"SINTER_VERIFY", "2"},       {"SINTER_DISABLE_COMPILE", "on"},
                                                               {"SINTER_CHECK_PURE", "off"}, {"SINTER_LOG", "loud"},
                                                               {"SINTER_SKIP", "fold"},      {"SINTER_DUMP_DIR", ""}};
    for (const auto& [name, value] : environment) {
      if (std::strcmp(name, variable) == 0) return value;
    }
    return nullptr;
  });
  EXPECT_EQ(k.verify, 2);
  EXPECT_TRUE(k.disable_compile);
  EXPECT_FALSE(k.check_pure);
  EXPECT_EQ(k.log, 0) << "no number: the default";
  EXPECT_EQ(k.skip, "fold");
  EXPECT_EQ(k.cache_dir, "") << "empty: the default";
  std::ostringstream page;
  page << std::ifstream(SINTER_SOURCE_DIR "/docs/COMPILE.md").rdbuf();
  for (const base::KnobFacts& f : base::all_knobs()) {
    EXPECT_TRUE(std::strncmp(f.variable, "SINTER_", 7) == 0 && std::strlen(f.help) > 0) << f.variable;
    EXPECT_NE(page.str().find(std::string("`") + f.variable + "`"), std::string::npos) << f.variable << " is not in docs/COMPILE.md";
  }
}

TEST(Knobs, Lists) {
  EXPECT_TRUE(base::list_has("fold,simplify", "simplify"));
  EXPECT_TRUE(base::list_has("all", "simplify"));
  EXPECT_FALSE(base::list_has("simplify_views", "simplify"));
  EXPECT_FALSE(base::list_has("", ""));
}

}  // namespace
}  // namespace sinter
