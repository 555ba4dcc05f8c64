// DiskCache: byte strings by key, kept in a directory of the user's and shared by processes. Layer: runtime.
//
// Each value is a file DIRECTORY/KIND/NN/HASH (KIND: kernels, or plans) that holds a checksum, the whole key and the value. A file is
// written under another name and then renamed, and never changed: a reader sees all of it or nothing. Nothing in the directory is ever
// needed, and nothing in it is trusted: what is not a complete file of ours with this key is as if it were not there, and is overwritten by
// the next put().
//
// Used only where DIRECTORY and DIRECTORY/KIND are directories, no links, that belong to the user and that nobody else can write to:
// what lies there runs as code. Files are read into memory: a mapping would change, or end, with the file.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::runtime {

/// $SINTER_CACHE_DIR, else $XDG_CACHE_HOME/sinter, else $HOME/.cache/sinter; empty where none of these is set. Read once.
const std::string& cache_directory();

/// For one batch of look-ups: its directory is opened and checked once. After open(), get() and put() may be called by several threads.
class DiskCache {
 public:
  /// Keeps at most about `most_bytes`. An empty directory, or no bytes: nothing is found and nothing kept.
  DiskCache(std::string directory, std::int64_t most_bytes, const char* kind = "kernels");
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  /// Whether there is a cache that can be used; `create`: makes the directory where there is none. Why one is refused is logged, once a
  /// process.
  bool open(bool create);
  /// The value of this key. Never throws for what is on disk.
  std::optional<std::vector<std::uint8_t>> get(std::string_view key) const;
  /// Keeps the value, if it can, and drops the values used least recently where there is no room. Whether it is on disk now.
  bool put(std::string_view key, std::span<const std::uint8_t> value) const;

 private:
  std::string open_directories(bool create);  // why the directory is refused; empty: it is not, or there is none
  void trim(const std::string& folder) const;

  const std::string directory_;
  const std::int64_t most_bytes_;
  const char* const kind_;
  int fd_ = -1;
};

}  // namespace sinter::runtime
