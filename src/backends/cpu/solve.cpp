#include <algorithm>
#include <complex>
#include <limits>

#include "backends/cpu/products.h"
#include "runtime/pool.h"

// LAPACK's LU factorisation and the solution by it, under their Fortran names. OpenBLAS holds them.
namespace {
template <class T>
using Factor = void(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);
template <class T>
using Substitute = void(const char* trans, const int* n, const int* columns, const T* a, const int* lda, const int* pivots, T* b,
                        const int* ldb, int* info, std::size_t trans_length);
using Complex = std::complex<float>;
}  // namespace
extern "C" {
Factor<float> sgetrf_;
Factor<double> dgetrf_;
Factor<Complex> cgetrf_;
Substitute<float> sgetrs_;
Substitute<double> dgetrs_;
Substitute<Complex> cgetrs_;
}

namespace sinter::backends {
namespace {

constexpr double kGrainWork = 200e3;  // multiplications that are worth a thread

template <class T>
class Solve final : public Routine {
 public:
  Solve(const kernel::SolveDesc& d, Factor<T>* factor, Substitute<T>* substitute) : d_(d), factor_(factor), substitute_(substitute) {}
  const char* name() const override { return "solve"; }
  void run(std::span<void* const> memory) const override {
    const double n = static_cast<double>(d_.n), work = n * n * (n / 3 + static_cast<double>(d_.k)) + 1000;
    const std::int64_t grain = static_cast<std::int64_t>(kGrainWork / work) + 1;
    const auto some = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        solve(static_cast<T*>(memory[0]) + i * d_.n * d_.n, static_cast<T*>(memory[1]) + i * d_.n * d_.k,
              static_cast<int*>(memory[2]) + i * d_.n, static_cast<T*>(memory[3]) + i * d_.n * d_.k);
    };
    // Factors differ in the last bit with the library's number of threads: each matrix is one thread's.
    if (d_.n > 0 && d_.k > 0) runtime::parallel_for_libraries(d_.batch, grain, some);
  }

 private:
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  static Complex nan_of(Complex) { return {kNan, kNan}; }
  template <class Real>
  static Real nan_of(Real) {
    return kNan;
  }
  void solve(T* a, T* b, int* pivots, T* out) const {
    const int n = static_cast<int>(d_.n), k = static_cast<int>(d_.k);
    int info = 0;
    factor_(&n, &n, a, &n, pivots, &info);  // of the transpose: the matrix lies by rows
    if (info != 0) {
      std::fill(out, out + d_.n * d_.k, nan_of(T()));
      return;
    }
    substitute_("T", &n, &k, a, &n, pivots, b, &n, &info, 1);
    for (std::int64_t i = 0; i < d_.n; ++i)
      for (std::int64_t j = 0; j < d_.k; ++j) out[i * d_.k + j] = b[j * d_.n + i];
  }

  kernel::SolveDesc d_;
  Factor<T>* factor_;
  Substitute<T>* substitute_;
};

}  // namespace

std::shared_ptr<const Routine> make_solve(const kernel::SolveDesc& d) {
  switch (d.dtype) {
    case Dtype::float32: return std::make_shared<Solve<float>>(d, sgetrf_, sgetrs_);
    case Dtype::float64: return std::make_shared<Solve<double>>(d, dgetrf_, dgetrs_);
    case Dtype::complex64: return std::make_shared<Solve<Complex>>(d, cgetrf_, cgetrs_);
    default: throw InternalError(str("internal: solve: no routine for ", name(d.dtype)));
  }
}

}  // namespace sinter::backends
