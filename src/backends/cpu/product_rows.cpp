// Whether rows of a library product are the product of those rows, bit for bit. Layer: backends.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "backends/cpu/products.h"
#include "base/fork_mutex.h"
#include "runtime/pool.h"

namespace sinter::backends {
namespace {

using ops::Product;
using Matrix = Product::Matrix;

constexpr std::int64_t kMost = 1024;  // rows, and columns, that are tried

// A matrix that lies as the description says, of numbers with all bits of their mantissa.
class Operand {
 public:
  Operand(Dtype t, std::int64_t batch, std::int64_t rows, std::int64_t columns, const Matrix& m)
      : size_(static_cast<std::size_t>(size_of(t))), m_(m) {
    const std::int64_t lines = m.transposed ? columns : rows, length = m.transposed ? rows : columns;
    memory_.resize(static_cast<std::size_t>((batch - 1) * m.batch + (lines - 1) * m.leading + length) * size_);
  }
  void fill(Dtype t) {
    std::uint64_t bits = 0x9e3779b97f4a7c15;
    for (std::size_t i = 0; i < memory_.size() / size_; ++i) {
      bits = bits * 6364136223846793005 + 1442695040888963407;
      const double v = static_cast<double>(static_cast<std::int64_t>(bits) >> 11) * 0x1p-52;  // [-1, 1)
      if (t == Dtype::float64) std::memcpy(at(i), &v, sizeof v);
      const float f = static_cast<float>(v);
      std::uint32_t word;
      std::memcpy(&word, &f, sizeof f);
      if (t == Dtype::float32) std::memcpy(at(i), &f, sizeof f);
      const auto half = static_cast<std::uint16_t>(word >> 16);
      if (t == Dtype::bfloat16) std::memcpy(at(i), &half, sizeof half);
    }
  }
  // The elements of some rows and columns of one matrix of another operand.
  void take(const Operand& from, std::int64_t matrix, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) std::memcpy(at(index(0, i, j)), from.at(from.index(matrix, row + i, column + j)), size_);
  }
  char* data() { return memory_.data(); }

 private:
  std::size_t index(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(matrix * m_.batch + (m_.transposed ? column * m_.leading + row : row * m_.leading + column));
  }
  char* at(std::size_t i) { return memory_.data() + i * size_; }
  const char* at(std::size_t i) const { return memory_.data() + i * size_; }
  std::size_t size_;
  Matrix m_;
  std::vector<char> memory_;
};

void run(const Product& d, Operand& x, Operand& y, std::vector<char>& out) {
  const auto bytes = static_cast<std::size_t>(d.batch * d.m * d.n * size_of(d.dtype));
  out.resize(bytes);
  void* places[] = {x.data(), y.data(), out.data()};
  const std::shared_ptr<const Routine> routine = make_product(d);
  if (d.alone)
    runtime::parallel_for_libraries(1, 1, [&](std::int64_t, std::int64_t) { routine->run(places); });
  else
    routine->run(places);
}

bool try_rows(Product whole, Product part) {
  // Threads share some matrices where their number does not divide them: as many are left over as in the whole.
  const std::int64_t threads = runtime::max_threads();
  if (whole.batch > 2 * threads) whole.batch = threads + whole.batch % threads;
  const auto has_gaps = [](const Matrix& m, std::int64_t rows, std::int64_t columns) {
    return m.leading != ops::dense(rows, columns, m.transposed).leading;
  };
  const bool gaps_x = has_gaps(whole.x, whole.m, whole.k), gaps_y = has_gaps(whole.y, whole.k, whole.n);
  const auto shorten = [](std::int64_t& size, std::int64_t& of) {
    if (of > kMost && size == of) size = kMost;
    of = std::min(of, std::max(kMost, size));
  };
  shorten(part.m, whole.m);
  shorten(part.n, whole.n);
  const auto close_up = [](Matrix& m, std::int64_t rows, std::int64_t columns) {
    const bool shared = m.batch == 0;
    m = ops::dense(rows, columns, m.transposed);
    if (shared) m.batch = 0;
  };
  if (!gaps_x) close_up(whole.x, whole.m, whole.k);
  if (!gaps_y) close_up(whole.y, whole.k, whole.n);
  part.x = ops::dense(part.m, part.k, part.x.transposed), part.y = ops::dense(part.k, part.n, part.y.transposed);
  Operand x(whole.dtype, whole.batch, whole.m, whole.k, whole.x), y(whole.dtype, whole.batch, whole.k, whole.n, whole.y);
  x.fill(whole.dtype), y.fill(whole.dtype);
  std::vector<char> all, some;
  run(whole, x, y, all);
  Operand a(part.dtype, 1, part.m, part.k, part.x), b(part.dtype, 1, part.k, part.n, part.y);
  const auto size = static_cast<std::size_t>(size_of(whole.dtype));
  // Windows one after the other, the last at the end.
  for (std::int64_t matrix = 0; matrix < whole.batch; ++matrix)
    for (std::int64_t i = 0; i < whole.m; i += part.m)
      for (std::int64_t j = 0; j < whole.n; j += part.n) {
        const std::int64_t row = std::min(i, whole.m - part.m), column = std::min(j, whole.n - part.n);
        a.take(x, matrix, row, part.m, 0, part.k);
        b.take(y, matrix, 0, part.k, column, part.n);
        run(part, a, b, some);
        for (std::int64_t r = 0; r < part.m; ++r) {
          const auto from = static_cast<std::size_t>((matrix * whole.m + row + r) * whole.n + column);
          if (std::memcmp(all.data() + from * size, some.data() + static_cast<std::size_t>(r * part.n) * size,
                          static_cast<std::size_t>(part.n) * size) != 0)
            return false;
        }
      }
  return true;
}

struct Known {
  using Key = std::array<std::int64_t, 16>;
  ForkMutex lock{LockRank::Leaf};
  std::map<Key, bool> all;
};
Known& known() {
  static Known* k = new Known;
  return *k;
}
[[maybe_unused]] const auto& made_at_load = known();  // see ForkMutex

}  // namespace

bool rows_keep_bits(const Product& whole, const Product& part) {
  if (!has_product(whole.dtype) || whole.k != part.k) return false;
  const Known::Key key{static_cast<std::int64_t>(whole.dtype),
                       whole.batch,
                       whole.m,
                       whole.n,
                       whole.k,
                       whole.x.transposed,
                       whole.x.leading,
                       whole.x.batch,
                       whole.y.transposed,
                       whole.y.leading,
                       whole.y.batch,
                       part.m,
                       part.n,
                       part.x.transposed,
                       part.y.transposed,
                       runtime::max_threads()};
  Known& k = known();
  {
    std::lock_guard guard(k.lock);
    if (auto it = k.all.find(key); it != k.all.end()) return it->second;
  }
  const bool keeps = try_rows(whole, part);
  std::lock_guard guard(k.lock);
  return k.all[key] = keeps;
}

}  // namespace sinter::backends
