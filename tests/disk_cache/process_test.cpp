// Kernels on disk, from the outside: processes that compute, one after the other and at once, on a cache that somebody has been at. The
// results are right in every case; what differs is where the kernels came from.
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <regex>
#include <thread>

#include "backends/target.h"
#include "base/build.h"
#include "disk_cache/folder.h"
#include "sinter/sinter.h"

namespace sinter::tests {
namespace {

// ---- the process that computes --------------------------------------------------------------------------------------------------------

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
  const std::vector<float> x{-3, 0.25f, 5, 100, -0.5f, 7, 1e6f};
  Stats sum;
  for (int round = 0; round < 2; ++round) {
    for (int number = 1; number <= kernels; ++number) {
      auto f = compile([number](const Array& a) { return steps(a, number, [](auto p, auto q) { return maximum(p, q); }); });
      const std::vector<float> got = f(Array(x)).to_vector<float>();
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(got[i], steps(x[i], number, [](float p, float q) { return std::max(p, q); })) << number << ", element " << i;
      const Stats s = f.stats();
      EXPECT_EQ(f.explain().find("0 kernels, 1 from disk") != std::string::npos, s.kernels_from_disk == 1) << f.explain();
      (round == 0 ? sum.kernels : sum.calls) += s.kernels;
      (round == 0 ? sum.kernels_from_disk : sum.hits) += s.kernels_from_disk;
    }
    clear_cache();
  }
  std::ifstream maps("/proc/self/maps");
  std::stringstream mapped;
  mapped << maps.rdbuf();
  std::cout << "worker: generated " << sum.kernels << ", from disk " << sum.kernels_from_disk << ", again generated " << sum.calls
            << ", from disk " << sum.hits << ", LLVM " << (mapped.str().find("libsinter_codegen") != std::string::npos) << ", "
            << (HasFailure() ? "wrong" : "right") << std::endl;
}

// ---- the process that looks on ---------------------------------------------------------------------------------------------------------

struct Worked {
  bool right = false;
  int generated = -1, from_disk = -1;              // at first
  int again_generated = -1, again_from_disk = -1;  // after clear_cache()
  bool llvm = false;
  std::string said;
};

using Environment = std::map<std::string, std::string>;  // "" unsets

struct Worker {
  pid_t process = -1;
  int output = -1;

  // `prepare` runs in the new process, before the program starts.
  Worker(const Environment& environment, int kernels, const std::function<void()>& prepare = {}) {
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
      for (const auto& [variable, value] : environment) setenv(variable.c_str(), value.c_str(), 1);
      if (prepare) prepare();
      execl(self.c_str(), self.c_str(), "--gtest_filter=Worker.Computes", nullptr);
      _exit(127);
    }
    close(ends[1]);
    output = ends[0];
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    if (output >= 0) finish();
  }

  Worked finish() {
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
};

constexpr int kFew = 3;

Worked work(const Environment& environment, const std::function<void()>& prepare = {}) {
  return Worker(environment, kFew, prepare).finish();
}
Worked work(const Folder& folder, const std::function<void()>& prepare = {}) {
  return work(Environment{{"SINTER_CACHE_DIR", folder.path}}, prepare);
}

bool generates() { return backends::host_target().code; }  // elsewhere kernels are interpreted, and there is nothing to keep

// A cache with the kernels in it.
const Folder& filled() {
  static const Folder folder;
  EXPECT_TRUE(!folder.files().empty() || work(folder).right);
  return folder;
}

testing::AssertionResult worked(const Worked& w, int generated, int from_disk) {
  if (w.right && w.generated == generated && w.from_disk == from_disk) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "not " << generated << " generated, " << from_disk << " from disk: " << w.said;
}

// ---- files -----------------------------------------------------------------------------------------------------------------------------

std::string flip(std::string content, std::size_t at) {
  content[at] = static_cast<char>(content[at] ^ 4);
  return content;
}
// With another processor's features, or another build, in the key: what such a process would have written, at this name.
std::string with_key(std::string content, const std::string& part, char other) {
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
    {"a file in place of kernels", [](const Folder& f) { Folder::write(f.path / "kernels", "x"); }, false},
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
  EXPECT_EQ(second.said.find("sinter:"), std::string::npos) << second.said;
  const Worked more = Worker({{"SINTER_CACHE_DIR", folder.path}}, kFew + 2).finish();
  EXPECT_TRUE(worked(more, 2, kFew));
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
  const std::string count = ": " + std::to_string(kFew) + " kernels, 0.0 MB\n", list = dev_cache(folder, "list");
  EXPECT_EQ(dev_cache(folder, ""), folder.path.string() + "/kernels" + count);
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), kFew + 1) << list;
  EXPECT_NE(list.find(backends::host_target().cpu + "   negative_maximum_add"), std::string::npos) << list;
  EXPECT_TRUE(list.ends_with(count)) << list;
  dev_cache(folder, "clear");
  EXPECT_EQ(folder.files().size(), 1u) << "what is not ours stays";
  EXPECT_TRUE(worked(work(folder), kFew, 0));
}

// ---- directories -----------------------------------------------------------------------------------------------------------------------

TEST(spec_3_5, where_kernels_are_kept) {
  if (!generates()) return;
  struct Case {
    const char* variable;
    const char* under;  // of the folder
  };
  for (const Case& c : {Case{"SINTER_CACHE_DIR", ""}, Case{"XDG_CACHE_HOME", "sinter"}, Case{"HOME", ".cache/sinter"}}) {
    SCOPED_TRACE(c.variable);
    Folder folder;
    const Environment environment{{c.variable, folder.path}, {"TMPDIR", "/nowhere"}};
    EXPECT_TRUE(worked(work(environment), kFew, 0));
    EXPECT_TRUE(worked(work(environment), 0, kFew));
    EXPECT_TRUE(fs::is_directory(folder.path / c.under / "kernels"));
  }
  Folder folder, other, third;
  EXPECT_TRUE(worked(work(Environment{{"SINTER_CACHE_DIR", folder.path}, {"XDG_CACHE_HOME", other.path}, {"HOME", third.path}}), kFew, 0));
  EXPECT_FALSE(fs::exists(other.path) || fs::exists(third.path));
}

// Root is not bound by modes of files without these.
void obey_modes() {
  prctl(PR_CAPBSET_DROP, 1);  // CAP_DAC_OVERRIDE
  prctl(PR_CAPBSET_DROP, 2);  // CAP_DAC_READ_SEARCH
}
// A file system of its own at `path`, where this is allowed.
void mount_at(const fs::path& path, unsigned long flags, const char* options) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return;
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  mount("none", path.c_str(), "tmpfs", flags, options);
}
// mprotect(..., PROT_EXEC) fails, as on hardened systems.
void refuse_code() {
  const auto skip = [](std::uint32_t k, std::uint8_t no) { return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, no); };
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      skip(SYS_mprotect, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(126);
}

struct Place {
  const char* name;
  const char* said;                                // in the log
  std::function<void(const Folder&)> done = {};    // to a cache that has the kernels
  std::function<void(const Folder&)> before = {};  // in the process that starts then
  Environment environment = {};
  int from_disk = 0;
};
void move_away(const Folder& f) { fs::rename(f.path, f.path.string() + "-real"); }
void empty_and_read_only(const Folder& f) {
  fs::remove_all(f.path / "kernels");
  fs::permissions(f.path, fs::perms::owner_read | fs::perms::owner_exec);
}

const Place kPlaces[] = {
    {"another user's", "belongs to user 12345", [](const Folder& f) { ASSERT_EQ(chown(f.path.c_str(), 12345, 12345), 0); }},
    {"another user's kernels", "belongs to user 12345",
     [](const Folder& f) { ASSERT_EQ(chown((f.path / "kernels").c_str(), 12345, 12345), 0); }},
    {"world-writable", "others can write to it", [](const Folder& f) { fs::permissions(f.path, fs::perms(0777)); }},
    {"world-writable and sticky", "others can write to it", [](const Folder& f) { fs::permissions(f.path, fs::perms(01777)); }},
    {"group-writable kernels", "others can write to it", [](const Folder& f) { fs::permissions(f.path / "kernels", fs::perms(0770)); }},
    {"a link", "is not used", [](const Folder& f) { move_away(f), fs::create_directory_symlink(f.path.string() + "-real", f.path); }},
    {"kernels is a link", "is not used",
     [](const Folder& f) {
       fs::rename(f.path / "kernels", f.path / "moved");
       fs::create_directory_symlink("moved", f.path / "kernels");
     }},
    {"a file", "is not used", [](const Folder& f) { move_away(f), Folder::write(f.path, ""); }},
    {"not to be made", "is not used", {}, {}, {{"SINTER_CACHE_DIR", "/proc/nowhere/at/all"}}},
    {"a device", "is not used", {}, {}, {{"SINTER_CACHE_DIR", "/dev/null"}}},
    {"readable by others", "", [](const Folder& f) { fs::permissions(f.path, fs::perms(0755)); }, {}, {}, kFew},
    {"read-only", "", [](const Folder& f) { fs::permissions(f.path, fs::perms(0500)); }, [](auto&) { obey_modes(); }, {}, kFew},
    {"read-only and empty", "is not used", empty_and_read_only, [](auto&) { obey_modes(); }},
    {"files are limited", "is not kept", [](const Folder& f) { fs::remove_all(f.path); },
     [](auto&) {
       const rlimit limit{500, 500};
       setrlimit(RLIMIT_FSIZE, &limit);
     }},
    {"executable memory is refused", "the system refuses executable memory", {}, [](auto&) { refuse_code(); }},
    {"no bytes", "", {}, {}, {{"SINTER_CACHE_MB", "0"}}},
    {"nonsense bytes", "", {}, {}, {{"SINTER_CACHE_MB", "-1"}}},
    {"no variable", "", {}, {}, {{"SINTER_CACHE_DIR", ""}}},
    {"interpreter", "", {}, {}, {{"SINTER_BACKEND", "interp"}}},
};

TEST(hazard, hazard_35_36_directories_that_cannot_be_used) {
  if (!generates()) return;
  for (const Place& place : kPlaces) {
    if (std::string_view(place.said).starts_with("belongs to user") && geteuid() != 0) continue;  // only root can give files away
    SCOPED_TRACE(place.name);
    Folder folder(filled());
    if (place.done) place.done(folder);
    const std::vector<fs::path> files = folder.files();
    Environment environment{{"SINTER_CACHE_DIR", folder.path}};
    for (const auto& [variable, value] : place.environment) environment[variable] = value;
    const Worked w = work(environment, [&] {
      if (place.before) place.before(folder);
    });
    EXPECT_TRUE(worked(w, kFew - place.from_disk, place.from_disk));
    EXPECT_EQ(w.again_generated, kFew - place.from_disk);
    EXPECT_NE(w.said.find(place.said), std::string::npos) << w.said;
    EXPECT_EQ(folder.files(), files) << "nothing is written there";
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = w.said.find("is not used", at)) != std::string::npos; ++at) ++lines;
    EXPECT_LE(lines, 1u) << w.said;
    if (fs::exists(folder.path.string() + "-real")) fs::remove_all(folder.path.string() + "-real");
  }
}

// On a file system that is full after a few bytes, or from which nothing may be executed: code is read, not mapped.
TEST(hazard, hazard_35_file_systems) {
  if (!generates()) return;
  for (const bool full : {true, false}) {
    Folder folder;
    fs::create_directories(folder.path);
    const auto prepare = [&] { mount_at(folder.path, MS_NOEXEC | MS_NOSUID, full ? "size=4k,mode=0700" : "size=4m,mode=0700"); };
    const Worked w = work(folder, prepare);
    EXPECT_TRUE(worked(w, kFew, 0));
    if (!folder.files().empty()) continue;  // this user may not mount: the directory itself was used
    EXPECT_EQ(w.again_from_disk == kFew, !full) << w.said;
    EXPECT_EQ(w.said.find("No space left") != std::string::npos, full) << w.said;
  }
}

}  // namespace
}  // namespace sinter::tests
