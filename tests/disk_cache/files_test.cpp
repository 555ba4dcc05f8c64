// Processes one after the other and at once, on a cache whose files somebody has been at. Results are right in every case; what differs is
// where the kernels came from.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "backends/target.h"
#include "base/build.h"
#include "disk_cache/worker.h"

namespace sinter::tests {
namespace {

std::string flip(std::string content, std::size_t at) {
  content[at] = static_cast<char>(content[at] ^ 4);
  return content;
}
// With another processor's features, or another build, in the key: what such a process would have written, at this name.
std::string with_key(std::string content, const std::string& part, char other) {
  if (content.find(part) == content.npos) return "";
  content[content.find(part) + part.size() / 2] = other;
  return with_checksum(content);
}

struct Damage {
  const char* name;
  std::function<void(const Folder&)> done;
  bool mended = true;  // by the process that finds it
};
const Damage kDamages[] = {
    {"empty files", [](const Folder& f) { f.change([](auto) { return ""; }); }},
    {"garbage", [](const Folder& f) { f.change([](auto s) { return std::string(s.size(), '#'); }); }},
    {"a garbage byte", [](const Folder& f) { f.change([](auto) { return "x"; }); }},
    {"half of each", [](const Folder& f) { f.change([](auto s) { return s.substr(0, s.size() / 2); }); }},
    {"a byte too few", [](const Folder& f) { f.change([](auto s) { return s.substr(0, s.size() - 1); }); }},
    {"a byte too many", [](const Folder& f) { f.change([](auto s) { return s + '\0'; }); }},
    {"a bit of the magic", [](const Folder& f) { f.change([](auto s) { return flip(s, 3); }); }},
    {"a bit of the lengths", [](const Folder& f) { f.change([](auto s) { return flip(s, 24); }); }},
    {"a bit of the key", [](const Folder& f) { f.change([](auto s) { return flip(s, 100); }); }},
    {"a bit of the code", [](const Folder& f) { f.change([](auto s) { return flip(s, s.size() - 100); }); }},
    {"other processor", [](const Folder& f) { f.change([](auto s) { return with_key(s, backends::host_target().features, '?'); }); }},
    {"other build", [](const Folder& f) { f.change([](auto s) { return with_key(s, base::build_identity(), '?'); }); }},
    {"each other's",
     [](const Folder& f) {
       const std::vector<fs::path> files = f.files();
       const std::string first = Folder::read(files[0]);
       for (std::size_t i = 0; i + 1 < files.size(); ++i) Folder::write(files[i], Folder::read(files[i + 1]));
       Folder::write(files.back(), first);
     }},
    {"links to good files",
     [](const Folder& f) {
       for (const fs::path& file : f.files()) {
         fs::rename(file, file.string() + ".moved");
         fs::create_symlink(file.string() + ".moved", file);
       }
     }},
    {"links to nothing",
     [](const Folder& f) {
       for (const fs::path& file : f.files()) fs::remove(file), fs::create_symlink("/nowhere/at/all", file);
     }},
    {"pipes",
     [](const Folder& f) {
       for (const fs::path& file : f.files()) EXPECT_TRUE(fs::remove(file) && mkfifo(file.c_str(), 0600) == 0);
     }},
    {"directories",
     [](const Folder& f) {
       for (const fs::path& file : f.files()) fs::remove(file), fs::create_directories(file / "in it");
     },
     false},
    {"a file in place of all", [](const Folder& f) { Folder::write(f.path / f.kind, "x"); }, false},
    {"files that others can write",
     [](const Folder& f) {
       for (const fs::path& file : f.files()) fs::permissions(file, fs::perms::all);
     }},
    {"files of another user",
     [](const Folder& f) {
       for (const fs::path& file : f.files())
         if (chown(file.c_str(), 12345, 12345) != 0) fs::remove(file);  // only root can give files away
     }},
    {"left by killed processes",
     [](const Folder& f) {
       for (const fs::path& file : f.files()) {
         Folder::write(file.parent_path() / ".new-0123456789abcdef", Folder::read(file).substr(0, 99));
         fs::remove(file);
       }
     }},
};

TEST(hazard, hazard_34_37_files_that_are_not_ours_are_ignored_and_rebuilt) {
  if (!generates()) return;
  for (const Damage& damage : kDamages) {
    SCOPED_TRACE(damage.name);
    Folder folder(filled());
    damage.done(folder);
    const Worked after = work(folder), then = work(folder);
    EXPECT_TRUE(worked(after, kFew, 0));
    EXPECT_EQ(after.again_from_disk, damage.mended ? kFew : 0);
    EXPECT_TRUE(worked(then, damage.mended ? 0 : kFew, damage.mended ? kFew : 0));
  }
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; at += word.size()) ++n;
  return n;
}
// Whether a worker found so many plans, at first and after clear_cache() together.
testing::AssertionResult planned(const Folder& folder, int found, const std::string& threads = "2") {
  const Worked w = work({{"SINTER_CACHE_DIR", folder.path}, {"SINTER_LOG", "2"}, {"OMP_NUM_THREADS", threads}});
  const int plans = count(w.said, "sinter: plan of ");
  if (worked(w, 0, kFew) && plans == found) return testing::AssertionSuccess();
  return testing::AssertionFailure() << plans << " plans, not " << found << ": " << w.said;
}

TEST(spec_3_5, a_second_process_finds_the_plans) {
  if (!generates()) return;
  Folder folder;
  EXPECT_TRUE(worked(work({{"SINTER_CACHE_DIR", folder.path}, {"OMP_NUM_THREADS", "2"}}), kFew, 0));
  EXPECT_TRUE(planned(folder, 2 * kFew));
  EXPECT_TRUE(planned(folder, kFew, "3")) << "plans of two threads do for two";
  EXPECT_TRUE(planned(folder, 2 * kFew, "3"));
}

TEST(hazard, hazard_34_37_plans_that_are_not_ours_are_ignored_and_made_again) {
  if (!generates()) return;
  for (const Damage& damage : kDamages) {
    SCOPED_TRACE(damage.name);
    Folder folder(filled());
    folder.kind = "plans";
    ASSERT_FALSE(folder.files().empty());
    damage.done(folder);
    EXPECT_TRUE(worked(work(folder), 0, kFew));
    EXPECT_TRUE(worked(work(folder), 0, kFew));
  }
}

// ---- processes -------------------------------------------------------------------------------------------------------------------------

TEST(spec_3_5, a_second_process_finds_the_kernels_and_loads_no_code_generator) {
  if (!generates()) return;
  Folder folder;
  const Worked first = work(folder), second = work(folder);
  EXPECT_TRUE(worked(first, kFew, 0));
  EXPECT_TRUE(first.llvm);
  EXPECT_EQ(first.again_generated, 0) << "clear_cache() leaves the disk alone";
  EXPECT_EQ(first.again_from_disk, kFew);
  EXPECT_TRUE(worked(second, 0, kFew));
  EXPECT_FALSE(second.llvm);
  EXPECT_EQ(second.said.find("sinter: cache"), std::string::npos) << second.said;
  const Worked more = Worker({{"SINTER_CACHE_DIR", folder.path}}, kFew + 2).finish();
  EXPECT_TRUE(worked(more, 2, kFew));
}

TEST(spec_3_5, kernels_of_plans_that_are_not_kept_load_no_code_generator) {
  if (!generates()) return;
  Folder folder;
  const Environment sorts{{"SINTER_CACHE_DIR", folder.path}, {kSorts, "1"}};
  EXPECT_TRUE(worked(work(sorts), kFew, 0));
  const Worked second = work(sorts);
  EXPECT_TRUE(worked(second, 0, kFew));
  EXPECT_FALSE(second.llvm);
}

TEST(hazard, hazard_34_sixteen_processes_start_on_an_empty_cache) {
  Folder folder;
  const Environment environment{{"SINTER_CACHE_DIR", folder.path}, {"OMP_NUM_THREADS", "1"}};
  constexpr int kKernels = 20;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < 16; ++i) workers.push_back(std::make_unique<Worker>(environment, kKernels));
  for (auto& w : workers) {
    const Worked done = w->finish();
    EXPECT_TRUE(done.right && done.generated + done.from_disk == kKernels) << done.said;
  }
  EXPECT_TRUE(!generates() || worked(Worker(environment, kKernels).finish(), 0, kKernels));
}

TEST(hazard, hazard_34_killed_in_the_middle) {
  Folder folder;
  const Environment environment{{"SINTER_CACHE_DIR", folder.path}};
  for (int ms : {8, 15, 20, 25, 30, 35, 40, 50}) {
    Worker w(environment, 12);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    kill(w.process, SIGKILL);
    w.finish();
  }
  const Worked after = Worker(environment, 12).finish(), then = Worker(environment, 12).finish();
  EXPECT_TRUE(after.right && after.generated + after.from_disk == 12) << after.said;
  EXPECT_TRUE(!generates() || worked(then, 0, 12));
}

TEST(Log, LevelsSayMore) {
  if (!generates()) return;
  const std::pair<int, const char*> lines[] = {{1, "sinter: trace of "},
                                               {1, ": first call\n"},
                                               {1, ": done, "},
                                               {2, "sinter: pass simplify of "},
                                               {2, ": generated, "},
                                               {2, ": from disk, "},
                                               {3, "sinter: fusion of "},
                                               {3, "operations, 1 stored)"},
                                               {4, "= load b0["},
                                               {5, "ModuleID"},
                                               {5, "define "}};
  for (int level = 0; level <= 5; ++level) {
    const Folder folder;
    const Worked w = work({{"SINTER_CACHE_DIR", folder.path}, {"SINTER_LOG", std::to_string(level)}});
    EXPECT_TRUE(worked(w, kFew, 0));
    for (const auto& [from, line] : lines) EXPECT_EQ(w.said.find(line) != std::string::npos, level >= from) << level << ": " << line;
  }
}

// The output of `./dev cache WORD` on this folder.
std::string dev_cache(const Folder& folder, const std::string& word) {
  const std::string command = "SINTER_CACHE_DIR='" + folder.path.string() + "' python3 -B '" SINTER_SOURCE_DIR "/tools/cache.py' " + word;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string said;
  for (int c; pipe && (c = std::fgetc(pipe.get())) != EOF;) said += static_cast<char>(c);
  return said;
}

TEST(DevCache, SizesListsAndClears) {
  if (!generates()) return;
  Folder folder(filled());
  Folder::write(folder.path / "kernels" / "notes.txt", "not ours");
  const std::string count = ": " + std::to_string(kFew) + " kernels, " + std::to_string(kFew) + " plans, 0.0 MB\n",
                    list = dev_cache(folder, "list");
  EXPECT_EQ(dev_cache(folder, ""), folder.path.string() + count);
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), kFew + 1) << list;
  EXPECT_NE(list.find(backends::host_target().cpu + "   negative_maximum_add"), std::string::npos) << list;
  EXPECT_TRUE(list.ends_with(count)) << list;
  dev_cache(folder, "clear");
  EXPECT_EQ(folder.files().size(), 1u) << "what is not ours stays";
  folder.kind = "plans";
  EXPECT_TRUE(folder.files().empty());
  EXPECT_TRUE(worked(work(folder), kFew, 0));
}

}  // namespace
}  // namespace sinter::tests
