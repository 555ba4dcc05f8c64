// Directories: where kernels are kept, and which are not used. Results are right in every case.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>

#include "disk_cache/worker.h"

namespace sinter::tests {
namespace {

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
       const rlimit limit{2000, 2000};  // less than any kernel; clang's OpenMP needs a file of 1 KiB
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
