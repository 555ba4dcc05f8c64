#include "backends/codegen.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "base/build.h"
#include "base/check.h"

namespace sinter::backends {

namespace {

constexpr const char* kObject = "libsinter_codegen.so";
std::atomic<bool> loaded{false};

// The folder of the library or program that contains this function, with its slash; empty if unknown.
std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

const Codegen& open_codegen(std::span<const std::string> paths) {
  std::string reasons;
  for (const std::string& path : paths) {
    void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) {
      const char* reason = dlerror();
      reasons += str(reasons.empty() ? "" : "; ", reason ? reason : path);
      continue;
    }
    auto get = reinterpret_cast<const Codegen* (*)()>(dlsym(object, "sinter_codegen"));
    if (get && std::strcmp(get()->build, base::build_identity()) == 0) {
      loaded = true;
      return *get();
    }
    reasons += str(reasons.empty() ? "" : "; ", path, get ? ": belongs to another build of the library" : ": has no sinter_codegen");
    // It stays open: what LLVM has made for itself would be lost with it.
  }
  throw DeviceError(str("codegen: ", kObject, " cannot be opened; got ", reasons, "; install the library's own beside it"));
}

const Codegen& codegen() {
  static const Codegen& opened = [&]() -> const Codegen& {  // once; tried again at the next call if it throws
    const std::string folder = own_folder(), paths[] = {folder + kObject, folder + "../" + kObject, kObject};
    return open_codegen(paths);
  }();
  return opened;
}

bool codegen_loaded() { return loaded; }

}  // namespace sinter::backends
