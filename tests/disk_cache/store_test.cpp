// DiskCache by itself: what it gives back, what it refuses, how it is bounded; and what the files of kernels and plans are found by.
#include <fcntl.h>
#include <omp.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/build.h"
#include "base/check.h"
#include "base/knobs.h"
#include "base/symbols.h"
#include "disk_cache/folder.h"
#include "engine/kernel_file.h"
#include "engine/plan_file.h"
#include "runtime/disk_cache.h"

namespace sinter::tests {
namespace {

using runtime::DiskCache;
using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kMuch = 1 << 30;
const std::string kKey = "a key, compared in full";
const Bytes kValue{1, 2, 3, 0, 255, 7, 7, 7, 7};

bool put(const Folder& folder, const std::string& key, const Bytes& value, std::int64_t most = kMuch) {
  DiskCache cache(folder.path, most);
  return cache.open(true) && cache.put(key, value);
}
std::optional<Bytes> get(const Folder& folder, const std::string& key = kKey) {
  DiskCache cache(folder.path, kMuch);
  return cache.open(false) ? cache.get(key) : std::nullopt;
}

TEST(DiskCache, GivesBackWhatWasPut) {
  Folder folder;
  EXPECT_EQ(get(folder), std::nullopt);
  EXPECT_FALSE(fs::exists(folder.path)) << "looking makes nothing";
  const std::vector<std::pair<std::string, Bytes>> values{
      {kKey, kValue}, {"", {}}, {"empty value", {}}, {"", {1}}, {std::string("\0\n", 2), Bytes(100'000, 9)}, {kKey, {4}}};
  for (const auto& [key, value] : values) {
    EXPECT_TRUE(put(folder, key, value));
    EXPECT_EQ(get(folder, key), value);
  }
  EXPECT_EQ(get(folder, kKey + "."), std::nullopt);
  EXPECT_EQ(folder.files().size(), 4u) << "nothing temporary is left";
  struct stat s{};
  for (const char* made : {"", "/kernels"}) {
    ASSERT_EQ(stat((folder.path.string() + made).c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0700u);
  }
  ASSERT_EQ(stat(folder.files()[0].c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
}

TEST(DiskCache, WithoutADirectoryOrBytesThereIsNone) {
  Folder folder;
  for (auto& [directory, bytes] : {std::pair<std::string, std::int64_t>{"", kMuch}, {folder.path, 0}, {folder.path, -5}}) {
    DiskCache cache(directory, bytes);
    EXPECT_FALSE(cache.open(true));
    EXPECT_FALSE(cache.put(kKey, kValue));
    EXPECT_EQ(cache.get(kKey), std::nullopt);
  }
  EXPECT_FALSE(fs::exists(folder.path));
}

// Every bit, every length: a damaged file is no file, and the next put mends it.
TEST(DiskCache, IgnoresWhatIsDamaged) {
  Folder folder;
  ASSERT_TRUE(put(folder, kKey, kValue));
  const fs::path file = folder.files().at(0);
  const std::string good = Folder::read(file);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    Folder::write(file, bad);
    EXPECT_EQ(get(folder), std::nullopt) << "bit " << bit;
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    Folder::write(file, good.substr(0, length));
    EXPECT_EQ(get(folder), std::nullopt) << length << " bytes";
    Folder::write(file, with_checksum(good.substr(0, length) + std::string(16, 'x')));
    EXPECT_EQ(get(folder), std::nullopt) << length << " bytes and others";
  }
  Folder::write(file, good + "x");
  EXPECT_EQ(get(folder), std::nullopt);
  std::string other = good;
  other[other.find(kKey)] = 'A';
  Folder::write(file, with_checksum(other));
  EXPECT_EQ(get(folder), std::nullopt) << "of another key";
  EXPECT_TRUE(put(folder, kKey, kValue));
  EXPECT_EQ(get(folder), kValue);
  EXPECT_EQ(Folder::read(file), good);
}

TEST(DiskCache, IsBoundedAndDropsWhatWasUsedLeastRecently) {
  Folder folder;
  constexpr int kValues = 2000;
  constexpr std::int64_t kMost = 64 * 20'000;  // of 64 folders, each holds about 18 of these
  auto key = [](int i) { return "value " + std::to_string(i); };
  auto used = [&](const fs::path& file, std::time_t ago) {
    const timespec times[2] = {{time(nullptr) - ago, 0}, {time(nullptr) - ago, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  };
  // The first half was used a day ago, but one in fifty of it is used now: those stay.
  for (int i = 0; i < kValues / 4; ++i) ASSERT_TRUE(put(folder, key(i), Bytes(1000), kMost));
  Folder::write(folder.files().at(0).parent_path() / "notes", std::string(19'000, 'x'));  // no value: stays
  for (const fs::path& file : folder.files()) used(file, 86400);
  for (int i = 0; i < kValues / 4; i += 50) ASSERT_NE(get(folder, key(i)), std::nullopt);
  for (int i = kValues / 4; i < kValues / 2; ++i) ASSERT_TRUE(put(folder, key(i), Bytes(1000), kMost));
  for (int i = 0; i < kValues / 4; i += 50) EXPECT_NE(get(folder, key(i)), std::nullopt) << i;
  for (int i = kValues / 2; i < kValues; ++i) ASSERT_TRUE(put(folder, key(i), Bytes(1000), kMost));
  std::int64_t bytes = 0, notes = 0;
  for (const fs::path& file : folder.files())
    (file.filename() == "notes" ? notes : bytes) += static_cast<std::int64_t>(fs::file_size(file));
  EXPECT_EQ(notes, 19'000);
  EXPECT_LE(bytes, kMost);
  EXPECT_GE(bytes, kMost / 2);
  EXPECT_NE(get(folder, key(kValues - 1)), std::nullopt);
  EXPECT_FALSE(put(folder, "too large", Bytes(30'000), kMost));
}

TEST(DiskCache, RemovesWhatKilledProcessesLeft) {
  Folder folder;
  ASSERT_TRUE(put(folder, kKey, kValue));
  const fs::path place = folder.files().at(0).parent_path();
  Folder::write(place / ".new-1", "half of a va");
  Folder::write(place / ".new-2", "another's, being written");
  const timespec times[2] = {{time(nullptr) - 7200, 0}, {time(nullptr) - 7200, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (place / ".new-1").c_str(), times, 0), 0);
  ASSERT_TRUE(put(folder, kKey, kValue));
  EXPECT_FALSE(fs::exists(place / ".new-1"));
  EXPECT_TRUE(fs::exists(place / ".new-2"));
}

// Values that say what they belong to: a reader never sees a part of one, or another's.
TEST(DiskCache, ManyThreadsAndProcesses) {
  Folder folder;
  auto value = [](int i) { return Bytes(static_cast<std::size_t>(5000 + i), static_cast<std::uint8_t>(i)); };
  auto work = [&](int who) {
    int wrong = 0;
    for (int round = 0; round < 100; ++round) {
      const int i = (round * 7 + who) % 10;
      const std::string key = std::to_string(i);
      if (round % 3 == 0) wrong += !put(folder, key, value(i));
      const std::optional<Bytes> got = get(folder, key);
      wrong += got && *got != value(i);
    }
    return wrong;
  };
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    children.push_back(fork());
    if (children.back() == 0) _exit(work(p) != 0);
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { wrong += work(4 + t); });
  for (std::thread& t : threads) t.join();
  for (pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(wrong, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(get(folder, std::to_string(i)), value(i));
  EXPECT_EQ(folder.files().size(), 10u);
}

TEST(KernelFile, IsFoundByAllThatItDependsOn) {
  const backends::Target v4 = backends::x86_target(true), v3 = backends::x86_target(false);
  std::vector<std::string> keys{
      engine::file_key("text", v4, {}),
      engine::file_key("text ", v4, {}),
      engine::file_key("text", v3, {}),
      engine::file_key("text", v4, {.level = 0}),
      engine::file_key("text", v4, {.fast_math = true}),
      engine::file_key("text", v4, {.brief = true}),
  };
  backends::Target fewer = v4;
  fewer.features = fewer.features.substr(0, fewer.features.rfind(','));
  keys.push_back(engine::file_key("text", fewer, {}));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_NE(keys[i].find(base::build_identity()), std::string::npos);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]);
  }
  EXPECT_EQ(keys[0], engine::file_key("text", v4, {}));
}

TEST(PlanFile, IsFoundByAllThatItDependsOn) {
  if (base::knobs().cache_mb == 0) return;  // runs below
  const auto graph = [](const char* type, const char* scalar, const char* last) {
    return graph::parse(str("graph g(%0: ", type, ", %1: ", type, ") { %2 = constant {bits=", scalar, "} : ", type,
                            " %3 = multiply %0, %2 : ", type, " ", last, " : ", type, " return %4 }"));
  };
  const std::string add = "%4 = add %3, %1";
  const graph::Graph g = graph("float32[6]", "7", add.c_str());
  std::vector<std::optional<std::string>> keys{
      engine::plan_key(g, {}),
      engine::plan_key(graph("float32[7]", "7", add.c_str()), {}),
      engine::plan_key(graph("float32[2,3]", "7", add.c_str()), {}),
      engine::plan_key(graph("float64[6]", "7", add.c_str()), {}),
      engine::plan_key(graph("float32[6]", "8", add.c_str()), {}),
      engine::plan_key(graph("float32[6]", "7", "%4 = add %3, %0"), {}),
      engine::plan_key(graph("float32[6]", "7", "%4 = subtract %3, %1"), {}),
      engine::plan_key(g, {.name = {}, .simplify = false}),
      engine::plan_key(g, {.name = {}, .fuse = false}),
      engine::plan_key(g, {.name = {}, .fast_math = true}),
      engine::plan_key(g, {.name = {}, .plain = false}),
  };
  graph::Graph two = g;
  two.set_outputs({3, 4});
  keys.push_back(engine::plan_key(two, {}));
  const int threads = omp_get_max_threads();
  omp_set_num_threads(threads + 1);
  keys.push_back(engine::plan_key(g, {}));
  omp_set_num_threads(threads);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(keys[i]);
    EXPECT_NE(keys[i]->find(base::plan_identity()), std::string::npos);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << ", " << j;
  }
  EXPECT_EQ(keys[0], engine::plan_key(g, {.name = "of no account"}));

  // A graph with a size that may change is planned for one that does not.
  base::Symbols symbols;
  base::Guards guards;
  const base::OpenSymbols open(symbols, guards);
  graph::Graph changing;
  changing.set_outputs({changing.add({ops::Op::Input, {}, {0}, {Dtype::float32, {symbols.input(6, "n")}}})});
  EXPECT_FALSE(engine::plan_key(changing, {}));
  EXPECT_TRUE(guards.empty()) << "nobody has asked for the number";
}
TEST(PlanFile, NeedsACache) {
  if (base::knobs().cache_mb == 0) {
    EXPECT_FALSE(engine::plan_key(graph::parse("graph g(%0: float32[6]) { return %0 }"), {}));
  }
  const std::string self = fs::read_symlink("/proc/self/exe");
  for (const char* knob :
       {"SINTER_CACHE_MB=0", "SINTER_VERIFY=1", "SINTER_LOG=3", "SINTER_SKIP=fold", "SINTER_STOP_AFTER=fold", "SINTER_DUMP=fold"})
    EXPECT_EQ(std::system(str("SINTER_CACHE_MB=1 ", knob, " '", self, "' --gtest_filter=PlanKnobs.KeepNone >/dev/null").c_str()), 0)
        << knob;
  EXPECT_EQ(std::system(str("SINTER_CACHE_MB=1 '", self, "' --gtest_filter=PlanFile.IsFound* >/dev/null").c_str()), 0);
}
TEST(PlanKnobs, KeepNone) {  // by itself, with such a knob
  const base::Knobs& k = base::knobs();
  if (k.cache_mb == 0 || k.log >= 3 || k.verify > 0 || !(k.skip + k.stop_after + k.dump).empty()) {
    EXPECT_FALSE(engine::plan_key(graph::parse("graph g(%0: float32[6]) { return %0 }"), {}));
  }
}

TEST(KernelFile, HoldsAnImage) {
  const runtime::Image image{{1, 2, 3, 4, 5}, 3, 64};
  const Bytes bytes = engine::file_bytes("add_exp", image);
  const std::optional<runtime::Image> back = engine::file_image(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->bytes, image.bytes);
  EXPECT_EQ(back->entry, image.entry);
  EXPECT_EQ(back->alignment, image.alignment);
  for (std::size_t n = 0; n + 1 < bytes.size(); ++n) EXPECT_FALSE(engine::file_image(std::span(bytes).first(n))) << n;
}

}  // namespace
}  // namespace sinter::tests
