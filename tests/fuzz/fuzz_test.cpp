// The programs that were found, and random ones. SINTER_FUZZ_SECONDS sets the time, SINTER_FUZZ_SEED the first seed, SINTER_FUZZ_COUNT the
// number of programs; tools/fuzz.py sets them, and SINTER_FUZZ_FOUND: where the text of a program goes with which something is wrong,
// SINTER_FUZZ_PROGRESS: a file for the seed that is at work, SINTER_FUZZ_APART: every program in a process of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "fuzz/ways.h"
#include "sinter/memory.h"

namespace sinter::fuzz {
namespace {

namespace fs = std::filesystem;

double number(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atof(text) : otherwise;
}

// A cache of kernels of this process' own, which the library has to know before it starts.
struct OwnCache {
  OwnCache() {
    if (std::getenv("SINTER_CACHE_MB")) {
      if (const char* made = std::getenv("SINTER_FUZZ_CACHE")) path = made;
      return;
    }
    const fs::path memory = "/dev/shm";  // where there is one: files are many
    std::string folder = ((access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path()) / "sinter-fuzz.XXXXXX").string();
    if (!mkdtemp(folder.data())) return;
    setenv("SINTER_CACHE_MB", "256", 1);
    setenv("SINTER_CACHE_DIR", folder.c_str(), 1);
    setenv("SINTER_FUZZ_CACHE", folder.c_str(), 1);
    std::ifstream given("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(given, word, '\0');) words.push_back(word);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv("/proc/self/exe", pointers.data());
  }
  ~OwnCache() {
    std::error_code ignored;
    if (!path.empty() && getpid() == process) fs::remove_all(path, ignored);
  }
  fs::path path;
  const pid_t process = getpid();
} own_cache;

// States may grow with every call, until the system ends the process; with a limit, what needs more throws. It is low because a way keeps
// all it has computed, to be compared, in several times as many bytes.
constexpr std::size_t kMostMemory = std::size_t{64} << 20;
const std::size_t before_limit = set_memory_limit(kMostMemory);

// Another folder: for one who looks at a program.
fs::path folder_of_programs() {
  const char* other = std::getenv("SINTER_FUZZ_PROGRAMS");
  return other ? fs::path(other) : fs::path(SINTER_SOURCE_DIR) / "tests/fuzz/programs";
}

std::string read_file(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// What is wrong, without what differs from run to run.
std::string in_short(const std::string& what) { return what.substr(0, what.find("; replay file")); }

TEST(Programs, FoundBefore) {
  int programs = 0;
  for (const auto& entry : fs::directory_iterator(folder_of_programs())) {
    if (entry.path().extension() != ".txt") continue;
    ++programs;
    const Program p = parse(read_file(entry.path()));
    EXPECT_EQ(wrong_apart(p), "") << entry.path() << "\n" << print(p);
  }
  EXPECT_GT(programs, 0);
}

TEST(Programs, TextReadsBack) {
  for (std::uint32_t seed = 1; seed < 100; ++seed) {
    const std::string text = print(draw(seed));
    ASSERT_EQ(print(parse(text)), text);
  }
}

// By the longest axis of what a program starts from.
TEST(Programs, AreOfAllSizes) {
  constexpr std::uint32_t kPrograms = 600;
  int wide = 0, large = 0;
  for (std::uint32_t seed = 1; seed <= kPrograms; ++seed) {
    const Program p = draw(seed);
    std::int64_t longest = 0;
    for (const Leaf& l : p.leaves)
      for (int d : l.dims) longest = std::max<std::int64_t>(longest, d >= 0 ? d : p.calls[0].sizes[d == Leaf::kSizeN ? 0 : 1]);
    wide += longest >= 16 && longest < 100;
    large += longest >= 100;
  }
  EXPECT_GT(wide, kPrograms / 5);
  EXPECT_GT(large, kPrograms / 20);
  EXPECT_LT(wide + large, kPrograms / 2);
}

// A program in which only one step matters shrinks to it.
TEST(Programs, Shrink) {
  int shrunk = 0;
  for (std::uint32_t seed = 1; seed < 60; ++seed) {
    const Program p = draw(seed);
    const auto has_softmax = [](const Program& q) { return print(q).find(" softmax ") == std::string::npos ? "" : "softmax"; };
    if (!*has_softmax(p)) continue;
    ++shrunk;
    const Program small = shrink(p, has_softmax, 10);
    EXPECT_EQ(small.function.steps.size(), 1u) << print(small);
    EXPECT_LE(small.leaves.size(), 2u) << print(small);
    EXPECT_EQ(small.calls.size(), 1u) << print(small);
  }
  EXPECT_GT(shrunk, 0);
}

TEST(Programs, Random) {
  const double seconds = number("SINTER_FUZZ_SECONDS", 5);
  const auto first = static_cast<std::uint32_t>(number("SINTER_FUZZ_SEED", 1));
  const auto count = static_cast<std::uint32_t>(number("SINTER_FUZZ_COUNT", 1e9));
  const char* folder = std::getenv("SINTER_FUZZ_FOUND");
  const char* progress = std::getenv("SINTER_FUZZ_PROGRESS");
  const bool apart = std::getenv("SINTER_FUZZ_APART") != nullptr;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::map<std::string, std::pair<int, double>> kinds;
  int found = 0;
  std::uint32_t seed = first;
  for (; seed - first < count && elapsed() < seconds && found < 3; ++seed) {
    if (progress) std::ofstream(progress) << seed;  // for who finds this process dead
    const std::clock_t begin = std::clock();
    const Program p = draw(seed);
    const std::string what = apart ? wrong_apart(p) : wrong(p);
    auto& [programs, time] = kinds[kind_of(seed)];
    ++programs, time += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (what.empty()) continue;
    ++found;
    const bool again = !wrong_apart(p).empty();  // else it takes what this process has done before
    const Program small = again ? shrink(p, [](const Program& q) { return wrong_apart(q); }, 60) : p;
    std::string text = str(";; seed ", seed, again ? "" : " after others", ": ", in_short(what), "\n");
    if (again) text += str(";; ", in_short(wrong_apart(small)), "\n");
    text += print(small);
    if (folder) std::ofstream(fs::path(folder) / str("seed-", seed, ".txt")) << text;
    ADD_FAILURE() << text;
  }
  const Counters& c = counters();
  std::printf("programs %u seeds %u..%u seconds %.1f found %d\n", seed - first, first, seed - 1, elapsed(), found);
  for (const auto& [name, spent] : kinds)
    std::printf("kind %s programs %d cpu_ms %.2f\n", name.c_str(), spent.first, spent.second * 1000 / spent.first);
  std::printf("calls %ld threw %ld elements %ld compiled %ld hits %ld traces %ld kernels %ld from_disk %ld derivatives %ld\n",
              static_cast<long>(c.calls), static_cast<long>(c.threw), static_cast<long>(c.elements), static_cast<long>(c.compiled_calls),
              static_cast<long>(c.hits), static_cast<long>(c.traces), static_cast<long>(c.kernels), static_cast<long>(c.from_disk),
              static_cast<long>(c.derivatives));
  // Programs compute, most of them without an error, and compiled functions are called on entries.
  if (seed - first < 50) return;
  EXPECT_GT(c.elements, c.calls);
  EXPECT_LT(c.threw * 4, c.calls);
  EXPECT_GT(c.hits * 10, c.compiled_calls);
  EXPECT_GT(c.traces, 0);
}

}  // namespace
}  // namespace sinter::fuzz
