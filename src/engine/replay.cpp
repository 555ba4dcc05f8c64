#include "engine/replay.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/check.h"
#include "base/knobs.h"
#include "runtime/disk_cache.h"

namespace sinter::engine {

namespace fs = std::filesystem;

void throw_with_replay(const InternalError& e, const graph::Graph& g) {
  std::string directory = base::knobs().dump_dir.empty() ? runtime::cache_directory() : base::knobs().dump_dir,
              where = "no replay file: there is no directory for it";
  if (!directory.empty()) {
    std::string text = graph::print(g), name = str(directory, "/replay-", std::hash<std::string>()(text), ".txt"),
                part = str(name, '.', getpid());
    std::error_code failed;
    if (fs::create_directories(directory, failed)) fs::permissions(directory, fs::perms::owner_all, failed);
    bool written = static_cast<bool>(std::ofstream(part) << text << std::flush);
    if (written) fs::rename(part, name, failed);
    where = written && !failed ? "replay file " + name : "no replay file: " + name + " cannot be written";
  }
  throw InternalError(str(e.what(), "; ", where, "; please report it"));
}

}  // namespace sinter::engine
