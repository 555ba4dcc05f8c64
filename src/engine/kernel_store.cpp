#include "engine/kernel_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/fork_mutex.h"
#include "base/knobs.h"
#include "base/log.h"
#include "engine/kernel_file.h"
#include "ops/expand.h"
#include "runtime/disk_cache.h"
#include "runtime/workers.h"

namespace sinter::engine {

void Executable::run(std::int64_t begin, std::int64_t end, const std::uint64_t* block, std::uint64_t streams) const {
  if (entry_)
    entry_(begin, end, block, streams);
  else
    interpret(begin, end, block);
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
    Shared kernel;
  };
  ForkMutex lock{LockRank::Kernels};
  std::list<Item> by_use;  // most recent first
  std::unordered_map<std::string_view, std::list<Item>::iterator> by_key;

  Shared find(const std::string& key) {
    std::lock_guard guard(lock);
    auto it = by_key.find(key);
    if (it == by_key.end()) return nullptr;
    by_use.splice(by_use.begin(), by_use, it->second);
    return it->second->kernel;
  }
  void insert(std::string key, Shared kernel) {
    std::lock_guard guard(lock);
    by_use.push_front({std::move(key), std::move(kernel)});
    by_key[by_use.front().key] = by_use.begin();
    if (by_use.size() > kMaxKernels) {
      by_key.erase(by_use.back().key);
      by_use.pop_back();
    }
  }
};
Store& store() {
  static Store* s = new Store;
  return *s;
}
// Held while kernels are generated: one set at a time, which takes all cores; and fork() waits for it, since LLVM has locks of its own.
ForkMutex& generating() {
  static ForkMutex* m = new ForkMutex(LockRank::Codegen);
  return *m;
}
[[maybe_unused]] const auto made_at_load = std::tie(store(), generating());  // see ForkMutex

std::atomic<bool> interpret_all{false};

bool interpreted() {
  return !backends::host_target().code || base::knobs().backend == "interp" || !runtime::can_map_code() || interpret_all.load();
}

// A kernel of a plan, and how it is made if nobody has it.
enum class Make { Well, Quickly, NoCode };
struct Wanted {
  const kernel::Kernel& kernel;
  bool fast_math;
  std::string key;  // of the store
  Make make = Make::Well;

  backends::CodegenOptions options() const {
    backends::CodegenOptions options;
    options.fast_math = fast_math;
    options.brief = make == Make::Quickly;
    options.level = options.brief || kernel.body.size() > kLongKernel ? 0 : base::knobs().codegen_level;
    return options;
  }
};

// Instructions, about.
double code_length(const Wanted& w) {
  double length = 0, unroll = 1;
  for (const kernel::Inst& i : w.kernel.body) {
    if (i.code == kernel::Code::Loop && i.kind == kernel::LoopKind::Vector) unroll = 1 + i.unroll;
    length += i.code == kernel::Code::Compute && i.dtype != Dtype::int64 ? unroll * ops::cost(i.op, i.dtype) : 1;
  }
  return w.make == Make::Quickly ? length / 2 : length;
}

std::atomic<std::int64_t> generations_left{-1};

runtime::Image generate(const Wanted& wanted) {
  const kernel::Kernel& k = wanted.kernel;
  if (generations_left.load() >= 0 && generations_left.fetch_sub(1) == 0)
    throw DeviceError(str("codegen: told to fail; got kernel ", k.name, "; this is a test"));
  base::Laps laps(2, k.name);
  try {
    const auto& codegen = backends::codegen();
    laps.lap("code generator");
    backends::CodegenOptions options = wanted.options();
    std::string ir;
    if (base::logs(5)) options.llvm_ir = &ir;
    runtime::Image image = codegen.compile(k, backends::host_target(), options);
    laps.lap("code");
    if (base::logs(2))
      base::log(2, str("kernel ", k.name, ": generated", options.brief ? " quickly, " : ", ", image.bytes.size(), " bytes"));
    if (base::logs(4)) base::log(4, kernel::print(k));
    base::log(5, ir);
    return image;
  } catch (const InternalError& e) {  // a kernel is named after its operations
    throw InternalError(str(e.what(), ", in kernel ", k.name));
  }
}

constexpr std::size_t kStackBytes = std::size_t{16} << 20;  // for LLVM, whose recursion follows the length of a kernel

// Makes the kernels of these numbers: from disk, else by generating them.
KernelCost make(std::span<const Wanted> wanted, std::span<const std::size_t> numbers, std::vector<Shared>& result) {
  KernelCost cost;
  auto interpret = [&](std::size_t i) { result[i] = std::make_shared<const Executable>(wanted[i].kernel); };
  // Those of the numbers, by their images.
  auto map = [&](std::span<const std::size_t> mapped, std::span<const runtime::Image> images) {
    const auto code = std::make_shared<const runtime::MappedImages>(images);
    for (std::size_t n = 0; n < mapped.size(); ++n)
      result[mapped[n]] = std::make_shared<const Executable>(wanted[mapped[n]].kernel, code, n);
  };
  if (interpreted()) {
    for (std::size_t i : numbers) interpret(i);
    cost.generated = static_cast<std::int64_t>(numbers.size());
    return cost;
  }
  runtime::DiskCache disk(runtime::cache_directory(), std::int64_t{base::knobs().cache_mb} * 1'000'000);
  auto key = [&](std::size_t i) { return file_key(wanted[i].key, backends::host_target(), wanted[i].options()); };
  std::vector<runtime::Image> images;  // from disk
  std::vector<std::size_t> found, missing;
  const bool readable = disk.open(false);
  for (std::size_t i : numbers) {
    const std::string& name = wanted[i].kernel.name;
    std::optional<std::vector<std::uint8_t>> bytes = readable ? disk.get(key(i)) : std::nullopt;
    std::optional<runtime::Image> image = bytes ? file_image(*bytes) : std::nullopt;
    if (image && base::logs(2)) base::log(2, str("kernel ", name, ": from disk, ", image->bytes.size(), " bytes"));
    if (image)
      found.push_back(i), images.push_back(std::move(*image));
    else if (wanted[i].make == Make::NoCode)
      interpret(i);
    else
      missing.push_back(i);
  }
  if (!found.empty()) map(found, images);
  cost.from_disk = static_cast<std::int64_t>(found.size());
  if (missing.empty()) return cost;
  const auto start = std::chrono::steady_clock::now();
  // The longest first, so that the cores are done at the same time.
  std::vector<double> length(wanted.size());
  for (std::size_t i : missing) length[i] = code_length(wanted[i]);
  std::sort(missing.begin(), missing.end(), [&](auto a, auto b) { return length[a] > length[b]; });
  const bool writable = disk.open(true);
  runtime::run_on_workers(static_cast<std::int64_t>(missing.size()), kStackBytes, [&](std::int64_t n) {
    const std::size_t i = missing[static_cast<std::size_t>(n)];
    const runtime::Image image = generate(wanted[i]);
    if (writable) disk.put(key(i), file_bytes(wanted[i].kernel.name, image));
    map({&i, 1}, {&image, 1});
  });
  cost.generated = static_cast<std::int64_t>(missing.size());
  cost.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return cost;
}

// What a plan's first call gains and its later calls lose are weighed here: made quickly, code takes a third of the time to make, and twice
// as long to run. What waits for memory would take longer yet: it asks for too little at once.
void decide(std::vector<Wanted>& wanted, const Worth& worth) {
  constexpr double kInterpreted = 200e3;       // instructions, times elements: about 1 ms of the interpreter
  constexpr double kLittle = 1.0 / 64;         // of a plan's work, of all that are made quickly
  constexpr std::int64_t kCached = 256 << 10;  // bytes
  if (worth.launches.empty()) return;
  struct Share {
    double work = 0;
    bool waits = false;  // for memory
    double quick() const { return waits ? std::numeric_limits<double>::infinity() : work; }
  };
  std::unordered_map<std::string_view, Share> shares;  // of each text
  double total = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& [work, bytes] = worth.launches[i];
    Share& share = shares[wanted[i].key];
    share.work += work;
    share.waits = share.waits || bytes > kCached;
    total += work;
  }
  std::vector<double> least;
  for (const auto& [key, share] : shares) least.push_back(share.quick());
  std::sort(least.begin(), least.end());
  double most = -1, sum = 0;  // what the largest of them does
  for (auto w = least.begin(); w != least.end() && (sum += *w) <= kLittle * total; ++w)
    if (std::next(w) == least.end() || std::next(w)[0] > *w) most = *w;
  for (Wanted& w : wanted) {
    const Share& share = shares.at(w.key);
    if (worth.once)
      w.make = share.work < kInterpreted ? Make::NoCode : Make::Quickly;
    else if (share.quick() <= most)
      w.make = Make::Quickly;
  }
}

constexpr std::string_view kQuick = "quick";  // behind the text of a kernel: in keys of those that were made so

Shared find(const Wanted& w) {
  Shared found = store().find(w.key);
  if (!found && w.make != Make::Well) found = store().find(std::string(w.key).append(kQuick));
  return found;
}

}  // namespace

std::vector<Shared> load_kernels(std::span<const kernel::Kernel> kernels, bool fast_math, KernelCost& cost, const Worth& worth) {
  std::vector<Wanted> wanted;
  std::vector<Shared> result;
  bool complete = true;
  for (const kernel::Kernel& k : kernels) {
    if (base::knobs().verify >= 1) kernel::verify(k);
    Wanted& w = wanted.emplace_back(Wanted{k, fast_math, {}});
    kernel::append_key(k, w.key);
    if (fast_math) w.key += "fast";
    if (interpret_all.load()) w.key += "interpreted";
    result.push_back(store().find(w.key));
    complete = complete && result.back();
  }
  if (complete) return result;
  decide(wanted, worth);
  complete = true;
  for (std::size_t i = 0; i < wanted.size(); ++i) complete = complete && (result[i] || (result[i] = find(wanted[i])));
  if (complete) return result;
  std::lock_guard guard(generating());
  std::vector<std::size_t> missing;  // the first of each text
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!result[i]) result[i] = find(wanted[i]);  // made by another thread meanwhile
    if (!result[i] && first.emplace(wanted[i].key, i).second) missing.push_back(i);
  }
  cost += make(wanted, missing, result);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!result[i]) result[i] = result[first.at(wanted[i].key)];
  for (std::size_t i : missing) {
    if (wanted[i].make == Make::NoCode && result[i]->interpreted()) continue;
    if (wanted[i].make == Make::Quickly) wanted[i].key += kQuick;
    store().insert(std::move(wanted[i].key), result[i]);
  }
  return result;
}

void expect_kernels() {
  static std::atomic<bool> expected{false};
  if (backends::codegen_loaded() || expected.exchange(true)) return;
  {
    const std::unique_lock guard(generating(), std::try_to_lock);  // fork() leaves nothing half made
    if (!guard || interpreted()) return;
  }
  runtime::run_aside(kStackBytes, []() noexcept {
    try {
      std::lock_guard guard(generating());  // fork() waits for it here, too
      if (backends::codegen_loaded()) return;
      base::Laps laps(2, "code generator");
      const backends::Codegen& codegen = backends::codegen();
      laps.lap("opened");
      codegen.warm(backends::host_target(), base::knobs().codegen_level);
      laps.lap("warmed");
    } catch (...) {  // whoever needs it will hear
    }
  });
}

void release_kernels() {
  Store& s = store();
  std::lock_guard guard(s.lock);
  for (auto it = s.by_use.begin(); it != s.by_use.end();) {
    if (it->kernel.use_count() == 1) {
      s.by_key.erase(it->key);
      it = s.by_use.erase(it);
    } else {
      ++it;
    }
  }
}
void fail_codegen(std::int64_t after) { generations_left = after; }
void interpret_kernels(bool on) { interpret_all = on; }
std::int64_t kernel_count() {
  std::lock_guard guard(store().lock);
  return static_cast<std::int64_t>(store().by_use.size());
}

}  // namespace sinter::engine
