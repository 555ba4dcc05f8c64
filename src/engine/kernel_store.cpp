#include "engine/kernel_store.h"

#include <atomic>
#include <chrono>
#include <future>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/codegen.h"
#include "base/knobs.h"

namespace sinter::engine {

Executable::Executable(kernel::Kernel k, std::optional<runtime::Image> image) : kernel_(std::move(k)) {
  if (!image) return;
  code_ = std::make_unique<runtime::MappedImage>(*image);
  entry_ = code_->entry();
}
void Executable::run(std::int64_t begin, std::int64_t end, const std::uint64_t* block) const {
  if (entry_) entry_(begin, end, block);
  else interpret(begin, end, block);
}
void Executable::interpret(std::int64_t begin, std::int64_t end, const std::uint64_t* block) const {
  kernel::interpret(kernel_, backends::host_target().lanes, begin, end, block);
}

namespace {

using Shared = std::shared_ptr<const Executable>;
constexpr std::size_t kMaxKernels = 4096;

struct Store {
  struct Item {
    std::string key;
    std::shared_future<Shared> kernel;  // ready, or being made by another thread
  };
  std::mutex lock;
  std::list<Item> by_use;  // most recent first
  std::unordered_map<std::string_view, std::list<Item>::iterator> by_key;
};
Store& store() {
  static Store* s = new Store;
  return *s;
}
std::atomic<std::int64_t> interpreted{0};

Shared generate(const kernel::Kernel& k, bool fast_math) {
  const backends::Target& target = backends::host_target();
  if (!target.code || base::knobs().backend == "interp") {
    ++interpreted;
    return std::make_shared<const Executable>(k, std::nullopt);
  }
  backends::CodegenOptions options;
  options.fast_math = fast_math;
  options.level = base::knobs().codegen_level;
  return std::make_shared<const Executable>(k, backends::codegen().compile(k, target, options));
}

}  // namespace

std::shared_ptr<const Executable> load_kernel(const kernel::Kernel& k, bool fast_math, KernelCost& cost) {
  Store& s = store();
  if (base::knobs().verify >= 1) kernel::verify(k);
  std::string key;
  kernel::append_key(k, key);
  if (fast_math) key += "fast";
  std::promise<Shared> promise;
  std::shared_future<Shared> found;
  {
    std::lock_guard guard(s.lock);
    if (auto it = s.by_key.find(key); it != s.by_key.end()) {
      s.by_use.splice(s.by_use.begin(), s.by_use, it->second);
      found = it->second->kernel;
    } else {
      s.by_use.push_front({key, promise.get_future().share()});
      s.by_key[s.by_use.front().key] = s.by_use.begin();
      if (s.by_use.size() > kMaxKernels) {
        s.by_key.erase(s.by_use.back().key);
        s.by_use.pop_back();
      }
    }
  }
  if (found.valid()) return found.get();
  auto start = std::chrono::steady_clock::now();
  try {
    Shared made = generate(k, fast_math);
    promise.set_value(made);
    ++cost.generated;
    cost.milliseconds += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return made;
  } catch (...) {
    promise.set_exception(std::current_exception());
    std::lock_guard guard(s.lock);
    if (auto it = s.by_key.find(key); it != s.by_key.end()) {
      auto item = it->second;
      s.by_key.erase(it);
      s.by_use.erase(item);
    }
    throw;
  }
}

void release_kernels() {
  Store& s = store();
  std::lock_guard guard(s.lock);
  for (auto it = s.by_use.begin(); it != s.by_use.end();) {
    bool ready = it->kernel.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (ready && it->kernel.get().use_count() == 1) {
      s.by_key.erase(it->key);
      it = s.by_use.erase(it);
    } else {
      ++it;
    }
  }
}
std::int64_t kernel_count() {
  std::lock_guard guard(store().lock);
  return static_cast<std::int64_t>(store().by_use.size());
}
std::int64_t interpreted_kernel_count() { return interpreted; }

}  // namespace sinter::engine
