#include "engine/plan_file.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <map>
#include <type_traits>

#include "backends/target.h"
#include "base/build.h"
#include "base/check.h"
#include "base/knobs.h"
#include "base/log.h"
#include "base/symbols.h"
#include "runtime/disk_cache.h"
#include "runtime/pool.h"

namespace sinter::engine {
namespace {

// What a thing consists of is said once, by a function `fields(archive, thing)` that hands the parts to the archive: a Writer appends them,
// a Reader fills them in.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

void fields(auto& a, Is<Slot> auto& s) { a(s.is_input, s.number, s.offset); }
void fields(auto& a, Is<Launch> auto& l) {  // but its kernel
  a(l.buffers, l.scratch, l.scratch_bytes, l.words, l.scalars, l.tasks, l.grain, l.bytes, l.work, l.backward, l.written, l.large);
}
void fields(auto& a, Is<kernel::CallDesc::Matrix> auto& m) { a(m.transposed, m.leading, m.batch); }
void fields(auto& a, Is<kernel::CallDesc> auto& d) { a(d.dtype, d.batch, d.m, d.n, d.k, d.x, d.y, d.alone); }
void fields(auto& a, Is<PlannedBuffer> auto& b) { a(b.bytes, b.is_output, b.late, b.donors, b.inside, b.fixed); }
void fields(auto& a, Is<graph::Layout> auto& l) { a(l.offset, l.strides); }
void fields(auto& a, Is<Output> auto& o) { a(o.slot, o.layout, o.dtype, o.shape, o.is_input); }
void fields(auto& a, Is<MemoryUse> auto& m) { a(m.results, m.between, m.reused, m.in_place, m.donated); }
void fields(auto& a, Is<kernel::Buffer> auto& b) { a(b.dtype, b.written, b.scratch, b.large); }
void fields(auto& a, Is<kernel::Inst> auto& i) {
  a(i.code, i.kind, i.op, i.dtype, i.unroll, i.prefetch, i.to, i.imm);
  for (auto& in : i.in) a(in);
}
void fields(auto& a, Is<kernel::Kernel> auto& k) { a(k.name, k.buffers, k.integers, k.scalars, k.body); }

template <class T>
concept Number = std::integral<T> || std::is_enum_v<T>;

// Numbers as they are needed most: seven bits a byte, the lowest first; those with a sign have it in the lowest bit. kNone is 0.
class Writer {
 public:
  std::string bytes;
  void operator()(const auto&... v) { (put(v), ...); }

 private:
  void number(std::uint64_t v) {
    for (; v >= 128; v >>= 7) bytes += static_cast<char>(v | 128);
    bytes += static_cast<char>(v);
  }
  void put(Number auto v) {
    if constexpr (std::signed_integral<decltype(v)>)
      number(static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(v) >> 63));
    else if constexpr (std::same_as<decltype(v), std::uint32_t>)
      number(std::uint32_t{v + 1});
    else
      number(static_cast<std::uint64_t>(v));
  }
  void put(double v) { raw(&v, sizeof v); }
  void put(const Dim& d) { put(base::peek(d)); }
  void put(const std::string& s) {
    number(s.size());
    bytes += s;
  }
  void put(const runtime::BufferRef& b) {
    number(b ? b.bytes() + 1 : 0);
    if (b) raw(b.data(), b.bytes());
  }
  void put(const Shape& s) { list(s); }
  template <class T>
  void put(const std::vector<T>& v) {
    list(v);
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T& v) {
    fields(*this, v);
  }
  void list(const auto& v) {
    number(v.size());
    for (const auto& x : v) put(x);
  }
  void raw(const void* at, std::size_t n) { bytes.append(static_cast<const char*>(at), n); }
};

// After what does not fit, `ok` is false and all else reads as nothing.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool ok = true;
  bool at_end() const { return left_.empty(); }
  void operator()(auto&... v) { (get(v), ...); }

 private:
  std::uint64_t number() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const auto byte = static_cast<unsigned char>(left_[0]);
      left_.remove_prefix(1);
      v |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return v;
    }
    return fail(), 0;
  }
  void fail() {
    ok = false;
    left_ = {};
  }
  // Of things that take a byte at least.
  std::size_t count() {
    const std::uint64_t n = number();
    if (n <= left_.size()) return static_cast<std::size_t>(n);
    return fail(), 0;
  }
  template <Number T>
  void get(T& v) {
    const std::uint64_t n = number();
    if constexpr (std::signed_integral<T>)
      v = static_cast<T>(static_cast<std::int64_t>(n >> 1 ^ (0 - (n & 1))));
    else if constexpr (std::same_as<T, std::uint32_t>)
      v = static_cast<std::uint32_t>(n) - 1;
    else
      v = static_cast<T>(n);
  }
  void get(double& v) { raw(&v, sizeof v); }
  void get(Dim& d) {
    std::int64_t n = 0;
    get(n);
    d = n;
  }
  void get(std::string& s) {
    s.resize(count());
    raw(s.data(), s.size());
  }
  void get(runtime::BufferRef& b) {
    const std::size_t n = count();
    if (n == 0) return;
    b = runtime::allocate(n - 1);
    raw(b.data(), n - 1);
  }
  void get(Shape& s) {
    std::vector<Dim> dims;
    get(dims);
    s = Shape(std::move(dims));
  }
  template <class T>
  void get(std::vector<T>& v) {
    v.resize(count());
    for (T& x : v) get(x);
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T& v) {
    fields(*this, v);
  }
  void raw(void* to, std::size_t n) {
    if (n > left_.size()) return fail();
    if (n == 0) return;  // there may be no address
    std::memcpy(to, left_.data(), n);
    left_.remove_prefix(n);
  }
  std::string_view left_;
};

enum class Kind : std::uint8_t { Launch, Product };

// False if a size may change. Graphs in graphs are as deep as the user's code nests.
bool write_graph(Writer& w, const graph::Graph& g) {
  w(g.size(), g.outputs());
  for (graph::Id id = 0; id < g.size(); ++id) {
    const graph::Node& n = g[id];
    if (base::changes(n.attrs) || base::changes(n.type.shape)) return false;
    w(n.op, n.in, n.attrs, n.type.dtype, n.type.shape, n.bodies.size());
    for (const graph::Body& body : n.bodies)
      if (!write_graph(w, *body)) return false;
  }
  return true;
}

// Beside the kernels, which are more: an eighth of the bytes.
runtime::DiskCache plans_on_disk() { return {runtime::cache_directory(), std::int64_t{base::knobs().cache_mb} * 1'000'000 / 8, "plans"}; }

}  // namespace

struct PlanFile {
  static std::string bytes(const Plan& plan) {
    Writer w;
    std::map<const Executable*, std::uint32_t> numbers;
    std::vector<const Executable*> kernels;
    for (const Step& step : plan.steps_)
      if (const Launch* l = std::get_if<Launch>(&step))
        if (numbers.emplace(l->kernel.get(), kernels.size()).second) kernels.push_back(l->kernel.get());
    w(kernels.size());
    for (const Executable* k : kernels) w(k->kernel());
    w(plan.steps_.size());
    for (const Step& step : plan.steps_) {
      if (const Launch* l = std::get_if<Launch>(&step)) {
        w(Kind::Launch, numbers.at(l->kernel.get()), *l);
      } else if (const Call* c = std::get_if<Call>(&step); c && c->product) {
        w(Kind::Product, *c->product, c->buffers);
      } else {
        return "";
      }
    }
    w(plan.buffers_, plan.outputs_, plan.constants_, plan.memory_);
    return std::move(w.bytes);
  }

  static std::shared_ptr<const Plan> plan(std::string_view bytes, bool fast_math) {
    Reader r(bytes);
    std::shared_ptr<Plan> plan(new Plan);
    std::vector<kernel::Kernel> kernels;
    std::vector<std::uint32_t> numbers;  // of the launches' kernels
    std::size_t steps = 0;
    r(kernels, steps);
    Worth worth{std::vector<Worth::Launch>(kernels.size()), false};  // of all launches of a kernel
    for (; r.ok && steps > 0; --steps) {
      Kind kind{};
      r(kind);
      if (kind == Kind::Launch) {
        Launch l;
        r(numbers.emplace_back(), l);
        if (numbers.back() >= kernels.size()) return nullptr;
        auto& [work, moved] = worth.launches[numbers.back()];
        work += l.work, moved = std::max(moved, l.bytes);
        plan->steps_.push_back(std::move(l));
      } else {
        Call c;
        r(c.product.emplace(), c.buffers);
        if (c.buffers.size() > Call::kMostBuffers) return nullptr;
        if (r.ok) c.routine = backends::make_product(*c.product);
        plan->steps_.push_back(std::move(c));
      }
    }
    r(plan->buffers_, plan->outputs_, plan->constants_, plan->memory_);
    if (!r.ok || !r.at_end()) return nullptr;
    const std::vector<std::shared_ptr<const Executable>> loaded = load_kernels(kernels, fast_math, plan->cost_, worth);
    std::size_t next = 0;
    for (Step& step : plan->steps_)
      if (Launch* l = std::get_if<Launch>(&step)) l->kernel = loaded[numbers[next++]];
    plan->finish();
    return plan;
  }
};

std::optional<std::string> plan_key(const graph::Graph& captured, const GraphOptions& options) {
  const base::Knobs& k = base::knobs();
  if (k.cache_mb <= 0 || k.log >= 3 || k.verify > 0 || !k.dump.empty() || !k.skip.empty() || !k.stop_after.empty()) return std::nullopt;
  const backends::Target& target = backends::host_target();
  Writer w;
  w.bytes = str("build ", base::plan_identity(), '\n', target.cpu, ' ', target.features, '\n');
  w(target.lanes, runtime::max_threads(), k.stream_bytes, k.split, options.simplify, options.fuse, options.fast_math, options.plain);
  if (!write_graph(w, captured)) return std::nullopt;
  return std::move(w.bytes);
}

std::string plan_bytes(const Plan& plan) { return PlanFile::bytes(plan); }
std::shared_ptr<const Plan> plan_of(std::string_view bytes, bool fast_math) { return PlanFile::plan(bytes, fast_math); }

FoundPlan find_plan(const std::string& key, const GraphOptions& options) {
  runtime::DiskCache disk = plans_on_disk();
  if (!disk.open(false)) return {};
  const std::optional<std::vector<std::uint8_t>> bytes = disk.get(key);
  if (!bytes) return {};
  std::shared_ptr<const Plan> plan;
  if (!bytes->empty()) plan = plan_of({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, options.fast_math);
  if (plan && base::logs(2)) base::log(2, str("plan of ", options.name, ": from disk, ", bytes->size(), " bytes"));
  const bool known = plan || bytes->empty();
  return {known, std::move(plan)};
}

void keep_plan(const std::string& key, const Plan* plan) {
  const std::string bytes = plan ? plan_bytes(*plan) : "";
  runtime::DiskCache disk = plans_on_disk();
  if (disk.open(true)) disk.put(key, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace sinter::engine
