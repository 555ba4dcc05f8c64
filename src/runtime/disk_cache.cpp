#include "runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/knobs.h"
#include "base/log.h"
#include "base/once.h"

namespace sinter::runtime {

const std::string& cache_directory() {
  static constinit std::atomic<std::string*> place{nullptr};
  return base::once(place, [] {
    auto under = [](const char* variable, const char* rest) {
      const char* home = std::getenv(variable);
      return home && *home ? str(home, rest) : std::string();
    };
    std::string d = base::knobs().cache_dir;
    if (d.empty()) d = under("XDG_CACHE_HOME", "/sinter");
    if (d.empty()) d = under("HOME", "/.cache/sinter");
    std::error_code failed;
    return d.empty() || d[0] == '/' ? d : std::filesystem::absolute(d, failed).string();  // the same one after a chdir()
  });
}

namespace {

// Each folder has its share of the bytes: so a put looks through one of them, not through all files.
constexpr std::uint64_t kFolders = 64;
constexpr std::time_t kFresh = 3600;  // seconds: a file used later than that is marked as used; a temporary one so old is left over
constexpr char kMagic[8] = {'s', 'i', 'n', 't', 'e', 'r', ' ', '1'};
constexpr const char* kTemporary = ".new-";

struct Header {
  char magic[8];
  std::uint64_t checksum;  // of all that follows
  std::uint64_t key_bytes, value_bytes;
};
constexpr std::size_t kChecked = offsetof(Header, key_bytes);

std::uint64_t hash(std::string_view bytes) { return std::hash<std::string_view>()(bytes); }
struct Name {
  std::string folder, file;  // both of them with the folder
};
Name name_of(std::string_view key) {
  const auto h = static_cast<unsigned long long>(hash(key));
  char text[32];
  std::snprintf(text, sizeof text, "%02llx/%016llx", h % kFolders, h);
  return {std::string(text, 2), text};
}

bool is_name(std::string_view text) { return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos; }

struct File {
  int fd;
  explicit File(int opened) : fd(opened) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

// Whether `f` moved all bytes; f(at, count) is read or write.
template <class F>
bool move_all(F f, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t n = f(at, bytes - at);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

void ignore(const std::string& name, std::string_view why) { base::log(1, str("cache: ", name, " is ignored: ", why)); }
void cannot_keep(const std::string& name, const char* what) {
  base::log(1, str("cache: ", name, " is not kept: ", what, ": ", std::strerror(errno)));
}

// Ours, and nobody else can write to it; empty, or what is wrong.
std::string not_ours(const struct stat& s) {
  if (s.st_uid != geteuid()) return str("it belongs to user ", s.st_uid);
  return (s.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "others can write to it" : "";
}

// With those above it, for the user alone.
void make_directories(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) mkdir(path.substr(0, at).c_str(), 0700);
  mkdir(path.c_str(), 0700);
}

std::string without_slashes(std::string path) {  // behind which a link would be followed
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

}  // namespace

DiskCache::DiskCache(std::string directory, std::int64_t most_bytes, const char* kind)
    : directory_(without_slashes(std::move(directory))), most_bytes_(most_bytes), kind_(kind) {}
DiskCache::~DiskCache() {
  if (fd_ >= 0) close(fd_);
}

std::string DiskCache::open_directories(bool create) {
  if (create) make_directories(directory_);
  const File top(::open(directory_.c_str(), kOpenDirectory));
  struct stat s{};
  if (top.fd < 0 || fstat(top.fd, &s) != 0) return errno == ENOENT && !create ? "" : std::strerror(errno);
  if (std::string why = not_ours(s); !why.empty()) return why;
  if (create) mkdirat(top.fd, kind_, 0700);
  File values(openat(top.fd, kind_, kOpenDirectory));
  if (values.fd < 0 || fstat(values.fd, &s) != 0) return errno == ENOENT && !create ? "" : std::strerror(errno);
  if (std::string why = not_ours(s); !why.empty()) return why;
  fd_ = std::exchange(values.fd, -1);
  return "";
}

bool DiskCache::open(bool create) {
  if (fd_ >= 0) return true;
  if (directory_.empty() || most_bytes_ <= 0) return false;
  const std::string why = open_directories(create);
  static std::atomic<bool> said{false};
  if (!why.empty() && !said.exchange(true)) base::log(1, str("cache: ", directory_, " is not used: ", why));
  return fd_ >= 0;
}

std::optional<std::vector<std::uint8_t>> DiskCache::get(std::string_view key) const {
  if (fd_ < 0) return std::nullopt;
  const std::string name = name_of(key).file;
  const File file(openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.fd < 0) {
    if (errno != ENOENT) ignore(name, std::strerror(errno));
    return std::nullopt;
  }
  struct stat s{};
  if (fstat(file.fd, &s) != 0 || !S_ISREG(s.st_mode)) return ignore(name, "it is no file"), std::nullopt;
  if (const std::string why = not_ours(s); !why.empty()) return ignore(name, why), std::nullopt;
  // Key and value have a length that fits the file: nothing is read, and no memory taken, for a file that cannot be it.
  const auto bytes = static_cast<std::size_t>(s.st_size);
  if (bytes < sizeof(Header) + key.size() || s.st_size > most_bytes_) return ignore(name, "its size is wrong"), std::nullopt;
  std::vector<std::uint8_t> all(bytes);
  if (!move_all([&](std::size_t at, std::size_t n) { return pread(file.fd, &all[at], n, static_cast<off_t>(at)); }, bytes))
    return ignore(name, "it cannot be read"), std::nullopt;
  Header header;
  std::memcpy(&header, all.data(), sizeof header);
  const std::string_view text(reinterpret_cast<const char*>(all.data()), bytes);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.checksum != hash(text.substr(kChecked)))
    return ignore(name, "it is damaged"), std::nullopt;
  if (header.key_bytes != key.size() || header.value_bytes != bytes - sizeof header - key.size() ||
      text.substr(sizeof header, key.size()) != key)
    return ignore(name, "it has another key"), std::nullopt;
  if (std::time(nullptr) - s.st_mtime > kFresh) futimens(file.fd, nullptr);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(sizeof header + key.size()));
  return all;
}

bool DiskCache::put(std::string_view key, std::span<const std::uint8_t> value) const {
  if (fd_ < 0) return false;
  std::string all(sizeof(Header), '\0');
  all.append(key).append(reinterpret_cast<const char*>(value.data()), value.size());
  Header header{{}, 0, key.size(), value.size()};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(all.data(), &header, sizeof header);
  header.checksum = hash(std::string_view(all).substr(kChecked));
  std::memcpy(all.data(), &header, sizeof header);

  const auto [folder, name] = name_of(key);
  if (static_cast<std::int64_t>(all.size()) > most_bytes_ / static_cast<std::int64_t>(kFolders)) {
    errno = EFBIG;
    return cannot_keep(name, "keep"), false;
  }
  rlimit limit{};  // a write beyond it would end the process
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < all.size()) {
    errno = EFBIG;
    return cannot_keep(name, "limit"), false;
  }
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) return false;
  const std::string temporary = str(folder, '/', kTemporary, std::hex, random);
  mkdirat(fd_, folder.c_str(), 0700);
  {
    const File file(openat(fd_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd < 0) return cannot_keep(name, "create"), false;
    if (!move_all([&](std::size_t at, std::size_t n) { return ::write(file.fd, &all[at], n); }, all.size())) {
      cannot_keep(name, "write");
      unlinkat(fd_, temporary.c_str(), 0);
      return false;
    }
  }
  if (renameat(fd_, temporary.c_str(), fd_, name.c_str()) != 0) {
    cannot_keep(name, "rename");
    unlinkat(fd_, temporary.c_str(), 0);
    return false;
  }
  trim(folder);
  return true;
}

void DiskCache::trim(const std::string& folder) const {
  const int fd = openat(fd_, folder.c_str(), kOpenDirectory);
  if (fd < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(fd), closedir);
  if (!list) return void(close(fd));
  struct Kept {
    std::pair<std::time_t, long> used;
    std::int64_t bytes;
    std::string name;
  };
  std::vector<Kept> files;
  std::int64_t total = 0;
  while (const dirent* entry = readdir(list.get())) {
    struct stat s{};
    if (fstatat(fd, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) continue;
    const bool temporary = std::strncmp(entry->d_name, kTemporary, std::strlen(kTemporary)) == 0;
    if (temporary && std::time(nullptr) - s.st_mtime > kFresh) unlinkat(fd, entry->d_name, 0);
    if (!is_name(entry->d_name)) continue;
    files.push_back({{s.st_mtim.tv_sec, s.st_mtim.tv_nsec}, s.st_size, entry->d_name});
    total += s.st_size;
  }
  const std::int64_t share = most_bytes_ / static_cast<std::int64_t>(kFolders);
  if (total <= share) return;
  std::sort(files.begin(), files.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& f : files) {  // some more than has to go, so that not every put drops one
    if (total <= share / 4 * 3) return;
    if (unlinkat(fd, f.name.c_str(), 0) == 0) total -= f.bytes;
  }
}

}  // namespace sinter::runtime
