#include "backends/cpu/products.h"

#include <cblas.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "backends/cpu/onednn.h"
#include "backends/target.h"
#include "base/fork_mutex.h"
#include "runtime/pool.h"

namespace sinter::backends {
namespace {

using kernel::CallDesc;

class Product : public Routine {
 public:
  const char* name() const final { return "product"; }
  void run(std::span<void* const> memory) const final { multiply(memory[0], memory[1], memory[2]); }

 private:
  virtual void multiply(const void* x, const void* y, void* out) const = 0;
};

// A product over nothing is zero; the libraries are not asked.
class Zero final : public Product {
 public:
  explicit Zero(std::size_t bytes) : bytes_(bytes) {}
  void multiply(const void*, const void*, void* out) const override { std::memset(out, 0, bytes_); }

 private:
  std::size_t bytes_;
};

class Blas final : public Product {
 public:
  explicit Blas(const CallDesc& d) : d_(d) {}
  void multiply(const void* x, const void* y, void* out) const override {
    runtime::with_pool([&] {
      for (std::int64_t b = 0; b < d_.batch; ++b)
        cblas_dgemm(CblasRowMajor, transposed(d_.x), transposed(d_.y), narrow(d_.m), narrow(d_.n), narrow(d_.k), 1.0,
                    static_cast<const double*>(x) + b * d_.x.batch, leading(d_.x), static_cast<const double*>(y) + b * d_.y.batch,
                    leading(d_.y), 0.0, static_cast<double*>(out) + b * d_.m * d_.n, narrow(d_.n));
    });
  }

 private:
  static blasint narrow(std::int64_t v) { return static_cast<blasint>(v); }
  static CBLAS_TRANSPOSE transposed(const CallDesc::Matrix& m) { return m.transposed ? CblasTrans : CblasNoTrans; }
  static blasint leading(const CallDesc::Matrix& m) { return narrow(m.leading); }
  CallDesc d_;
};

class OneDnn final : public Product {
 public:
  explicit OneDnn(CallDesc d) {
    using dnnl::memory;
    if (d.x.batch == 0 && d.y.batch == 0) {  // one product, again and again
      times_ = d.batch;
      apart_ = d.m * d.n * size_of(d.dtype);
      d.batch = 1;
    }
    const memory::data_type type = onednn_type(d.dtype);
    auto matrices = [&](std::int64_t rows, std::int64_t columns, const CallDesc::Matrix& m) {
      const bool shared = m.batch == 0;  // by all of the batch
      const std::int64_t apart = shared ? rows * columns : m.batch;
      const memory::dims strides = m.transposed ? memory::dims{apart, 1, m.leading} : memory::dims{apart, m.leading, 1};
      return memory::desc({shared ? 1 : d.batch, rows, columns}, type, strides);
    };
    x_ = matrices(d.m, d.k, d.x);
    y_ = matrices(d.k, d.n, d.y);
    out_ = memory::desc({d.batch, d.m, d.n}, type, memory::dims{d.m * d.n, d.n, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(x_, y_, out_), attributes, cpu_engine());
    scratchpad_ = pd.scratchpad_desc();
    primitive_ = dnnl::matmul(pd);
  }
  void multiply(const void* x, const void* y, void* out) const override {
    runtime::with_pool([&] {
      dnnl::stream stream(cpu_engine());
      dnnl::memory a(x_, cpu_engine(), const_cast<void*>(x)), b(y_, cpu_engine(), const_cast<void*>(y)), c(out_, cpu_engine(), out);
      dnnl::memory scratch(scratchpad_, cpu_engine());
      for (std::int64_t i = 0; i < times_; ++i) {
        c.set_data_handle(static_cast<char*>(out) + i * apart_);
        primitive_.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}, {DNNL_ARG_SCRATCHPAD, scratch}});
      }
      stream.wait();
    });
  }

 private:
  dnnl::memory::desc x_, y_, out_, scratchpad_;
  dnnl::matmul primitive_;
  std::int64_t times_ = 1, apart_ = 0;  // bytes between results
};

}  // namespace

bool has_product(Dtype t) { return t == Dtype::float32 || t == Dtype::float64 || (t == Dtype::bfloat16 && host_target().avx512); }

namespace {

// Products that some plan holds, by their description: a plan for new sizes shares those that it has in common with others.
struct Products {
  using Key = std::array<std::int64_t, 12>;
  ForkMutex lock{LockRank::Leaf};
  std::map<Key, std::weak_ptr<const Routine>> all;
};
Products& products() {
  static Products* p = new Products;
  return *p;
}
[[maybe_unused]] const auto& made_at_load = products();  // see ForkMutex
constexpr std::size_t kMostProducts = 4096;

std::shared_ptr<const Routine> new_product(const CallDesc& d) {
  if (d.k == 0 || d.m * d.n * d.batch == 0) return std::make_shared<Zero>(static_cast<std::size_t>(d.batch * d.m * d.n * size_of(d.dtype)));
  if (d.dtype == Dtype::float64) return std::make_shared<Blas>(d);
  std::shared_ptr<const Routine> made;
  std::string error;
  const auto make = [&] {
    try {
      made = std::make_shared<OneDnn>(d);
    } catch (const dnnl::error& e) {
      error = e.what();
    }
  };
  // The library's primitives remember the number of threads for which they were made.
  if (d.alone)
    runtime::parallel_for_libraries(1, 1, [&](std::int64_t, std::int64_t) { make(); });
  else
    make();
  if (!made) throw InternalError(str("internal: matmul: oneDNN refuses float product ", d.m, "x", d.k, " by ", d.k, "x", d.n, ": ", error));
  return made;
}

}  // namespace

std::shared_ptr<const Routine> make_product(const CallDesc& d) {
  const Products::Key key{static_cast<std::int64_t>(d.dtype),
                          d.batch,
                          d.m,
                          d.n,
                          d.k,
                          d.x.transposed,
                          d.x.leading,
                          d.x.batch,
                          d.y.transposed,
                          d.y.leading,
                          d.y.batch,
                          d.alone};
  Products& p = products();
  {
    std::lock_guard guard(p.lock);
    if (auto it = p.all.find(key); it != p.all.end())
      if (auto held = it->second.lock()) return held;
  }
  std::shared_ptr<const Routine> made = new_product(d);
  std::lock_guard guard(p.lock);
  if (p.all.size() >= kMostProducts) std::erase_if(p.all, [](const auto& item) { return item.second.expired(); });
  p.all[key] = made;
  return made;
}

}  // namespace sinter::backends
