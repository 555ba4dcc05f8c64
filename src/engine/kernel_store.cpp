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
#include "runtime/workers.h"

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
// From this many instructions on, LLVM's level 0: measured on random graphs of 450 and 1,000 operations, code generation takes half to two
// thirds of the time that level 2 takes, and the code runs within 0 to 10 % of its speed. Short kernels run up to 45 % slower.
constexpr std::size_t kLongKernel = 400;

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
  options.level = k.body.size() > kLongKernel ? 0 : base::knobs().codegen_level;
  return std::make_shared<const Executable>(k, backends::codegen().compile(k, target, options));
}

constexpr std::size_t kStackBytes = std::size_t{16} << 20;  // for LLVM, whose recursion follows the length of a kernel

// A kernel that somebody makes or has made: its future; or, for the one who is to make it, a promise.
struct Claim {
  std::string key;
  std::shared_future<Shared> kernel;
  std::optional<std::promise<Shared>> promise;
};

Claim claim(const kernel::Kernel& k, bool fast_math) {
  Claim c;
  kernel::append_key(k, c.key);
  if (fast_math) c.key += "fast";
  Store& s = store();
  std::lock_guard guard(s.lock);
  if (auto it = s.by_key.find(c.key); it != s.by_key.end()) {
    s.by_use.splice(s.by_use.begin(), s.by_use, it->second);
    c.kernel = it->second->kernel;
    return c;
  }
  c.promise.emplace();
  c.kernel = c.promise->get_future().share();
  s.by_use.push_front({c.key, c.kernel});
  s.by_key[s.by_use.front().key] = s.by_use.begin();
  if (s.by_use.size() > kMaxKernels) {
    s.by_key.erase(s.by_use.back().key);
    s.by_use.pop_back();
  }
  return c;
}

// After a failure: the next call tries again.
void disclaim(const std::string& key) {
  Store& s = store();
  std::lock_guard guard(s.lock);
  if (auto it = s.by_key.find(key); it != s.by_key.end()) {
    auto item = it->second;
    s.by_key.erase(it);
    s.by_use.erase(item);
  }
}

}  // namespace

std::vector<std::shared_ptr<const Executable>> load_kernels(std::span<const kernel::Kernel> kernels, bool fast_math, KernelCost& cost) {
  std::vector<Claim> claims;
  std::vector<std::size_t> ours;
  for (const kernel::Kernel& k : kernels) {
    if (base::knobs().verify >= 1) kernel::verify(k);
    claims.push_back(claim(k, fast_math));
    if (claims.back().promise) ours.push_back(claims.size() - 1);
  }
  if (!ours.empty()) {
    auto start = std::chrono::steady_clock::now();
    runtime::run_on_workers(static_cast<std::int64_t>(ours.size()), kStackBytes, [&](std::int64_t i) {
      Claim& c = claims[ours[static_cast<std::size_t>(i)]];
      try {
        c.promise->set_value(generate(kernels[ours[static_cast<std::size_t>(i)]], fast_math));
      } catch (...) {
        c.promise->set_exception(std::current_exception());
        disclaim(c.key);
      }
    });
    cost.generated += static_cast<std::int64_t>(ours.size());
    cost.milliseconds += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  std::vector<Shared> result;
  for (const Claim& c : claims) result.push_back(c.kernel.get());
  return result;
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
