// A cache directory for a test, and what is done to the files in it.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace sinter::tests {

namespace fs = std::filesystem;

/// A new directory that goes with the object; `path` lies in it and is not made.
class Folder {
 public:
  Folder() : root_(mkdtemp((fs::temp_directory_path() / "sinter-test.XXXXXX").string().data())), path(root_ / "cache") {}
  ~Folder() {
    std::error_code ignored;
    fs::permissions(path, fs::perms::owner_all, ignored);
    fs::remove_all(root_, ignored);
  }
  /// Another one with the same content.
  Folder(const Folder& other) : Folder() { fs::copy(other.path, path, fs::copy_options::recursive); }
  Folder& operator=(const Folder&) = delete;

 private:
  const fs::path root_;

 public:
  const fs::path path;
  std::string kind = "kernels";  // or plans

  /// What is kept of this kind: every file, temporary ones too.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(path / kind)) return found;
    for (const auto& entry : fs::recursive_directory_iterator(path / kind))
      if (!entry.is_directory()) found.push_back(entry.path());
    return found;
  }
  /// Replaces the content of each file, which has a new inode then, as after a put().
  void change(const std::function<std::string(std::string)>& f) const {
    for (const fs::path& file : files()) write(file, f(read(file)));
  }

  static std::string read(const fs::path& file) {
    std::ostringstream out;
    out << std::ifstream(file, std::ios::binary).rdbuf();
    return out.str();
  }
  static void write(const fs::path& file, const std::string& content) {
    fs::remove_all(file);
    std::ofstream(file, std::ios::binary) << content;
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  }
};

/// The file of a value (runtime/disk_cache.cpp) with another key or value in place of its own, its checksum right.
inline std::string with_checksum(std::string file) {
  const std::uint64_t sum = std::hash<std::string_view>()(std::string_view(file).substr(16));
  file.replace(8, 8, reinterpret_cast<const char*>(&sum), 8);
  return file;
}

}  // namespace sinter::tests
