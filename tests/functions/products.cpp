// Matrix products: expression and result, as MLX and NumPy print it.
#include <omp.h>

#include <cstring>

#include "functions/cases.h"

namespace {

TEST(Functions, products) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([[7, 10],\n       [15, 22]], dtype=float32)", matmul(w, w)),
      CASE("array([14, 32], dtype=float32)", matmul(m.astype(float32), v.astype(float32))),
      CASE("array([7, 10], dtype=float32)", matmul(Array({1.0, 2.0}), w)),
      CASE("array(14, dtype=float32)", matmul(v.astype(float32), v.astype(float32))),
      CASE("array([[[3, 4],\n"
           "        [11, 16],\n"
           "        [19, 28]],\n"
           "       [[27, 40],\n"
           "        [35, 52],\n"
           "        [43, 64]]], dtype=float32)",
           matmul(reshape(arange(12.0), {2, 3, 2}), w)),
      CASE("array([[[[2, 3],\n"
           "         [6, 11]],\n"
           "        [[10, 19],\n"
           "         [14, 27]]],\n"
           "       [[[6, 7],\n"
           "         [26, 31]],\n"
           "        [[46, 55],\n"
           "         [66, 79]]]], dtype=float32)",
           matmul(reshape(arange(8.0), {2, 2, 2}), reshape(arange(8.0), {2, 1, 2, 2}))),
      CASE("array([[8, 11],\n       [16, 23]], dtype=float32)", addmm(Array(1.0), w, w)),
      CASE("array([[17, 26],\n       [33, 50]], dtype=float32)", addmm(Array({1.0, 2.0}), w, w, 2, 3)),
  });
}

// A matrix that a whole batch shares is read where it lies; the bits are those of a copy for each.
TEST(Functions, ProductsOfSharedMatrices) {
  const Array numbers = random::uniform(-1, 1, {6 * 24 * 40}, float32, random::key(3));
  for (Dtype t : {float16, bfloat16, float32, float64}) {
    const Array many = astype(reshape(numbers, {2, 3, 24, 40}), t), one = reshape(slice(many, {0, 0}, {1, 1}), {24, 40});
    const Array copies = broadcast_to(one, {2, 3, 24, 40}) * 1, swapped = swapaxes(many, 2, 3);
    const Shape product{2, 3, 24, 24};
    const Array all = broadcast_to(one, {2, 3, 24, 40});
    const std::pair<Array, Array> cases[] = {
        {matmul(one, swapped), matmul(copies, swapped)},
        {matmul(many, swapaxes(all, 2, 3)), matmul(many, swapaxes(copies, 2, 3))},
        {matmul(all, swapaxes(all, 2, 3)), matmul(copies, swapaxes(copies, 2, 3))},
        {matmul(swapped, all), matmul(swapped, copies)},
        {matmul(slice(all, {0, 0, 0, 0}, {2, 3, 3, 40}), swapped), matmul(slice(copies, {0, 0, 0, 0}, {2, 3, 3, 40}), swapped)},
    };
    for (const auto& [shared, copied] : cases) {
      EXPECT_EQ(shared.shape(), copied.shape());
      EXPECT_TRUE(array_equal(shared, copied).item<bool>()) << t << " " << shared.shape();
    }
  }
}

// A batch of matrices cut out of something else, in any order of its axes, lies as it likes: its matrices may interleave, or have rows that
// reach past the next matrix. Products are those of copies (a library may sum another layout in another order), and the same compiled.
TEST(Functions, ProductsOfPieces) {
  const Array numbers = random::uniform(-1, 1, {20 * 78 * 80}, float32, random::key(5));
  // Stored with its axes in this order, with every second element of some, and with something behind each or not.
  const auto piece = [&](const std::array<int, 3>& sizes, const std::array<int, 3>& order, int apart, bool tight, Dtype t) {
    std::array<int, 3> step, stored;
    std::vector<int> back(3);
    for (std::size_t i = 0; i < 3; ++i) step[i] = 1 + (apart >> i & 1);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto axis = static_cast<std::size_t>(order[i]);
      stored[i] = tight ? step[axis] * (sizes[axis] - 1) + 1 : step[axis] * sizes[axis] + 2;
      back[axis] = static_cast<int>(i);
    }
    const Array all = astype(reshape(slice(numbers, {0}, {stored[0] * stored[1] * stored[2]}), {stored[0], stored[1], stored[2]}), t);
    eval(all);
    const auto stop = [&](std::size_t i) { return step[i] * (sizes[i] - 1) + 1; };
    return slice(transpose(all, back), {0, 0, 0}, {stop(0), stop(1), stop(2)}, {step[0], step[1], step[2]});
  };
  for (const auto& [t, tolerance] : {std::pair(float32, 1e-5), {float64, 1e-13}, {bfloat16, 2e-2}})
    for (const auto [n, m, k] : {std::array{5, 33, 1}, {5, 6, 7}, {1, 33, 5}, {16, 7, 33}, {5, 1, 6}, {2, 5, 1}})
      for (const std::array order : {std::array{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
        for (int apart = 0; apart < 8; ++apart)
          for (const bool tight : {true, false}) {
            const auto product = compile([](const Array& x, const Array& y) { return matmul(x, y); });
            const Array x = piece({n, m, k}, order, apart, tight, t), y = piece({n, k, 9}, order, apart, tight, t);
            const Array a = x * 1, b = y * 1;
            eval(a, b);
            const Array expected = matmul(a, b);
            for (const auto& [x, y] : {std::pair(x, b), {a, y}, {x, y}}) {
              const Array r = matmul(x, y);
              EXPECT_TRUE(allclose(r, expected, tolerance, tolerance).item<bool>() && array_equal(r, product(x, y)).item<bool>())
                  << t << ' ' << n << 'x' << m << 'x' << k << " axes " << order[0] << order[1] << order[2] << " apart " << apart << tight;
            }
          }
}

// Products of few rows or columns: against sums in double; and the same bits however the matrices lie, on any threads.
TEST(Functions, ProductsOfFewRows) {
  const int before = omp_get_max_threads();
  struct Sizes {
    int m, k, n;
  };
  for (const Dtype t : {float32, float64, float16, bfloat16})
    for (const auto [m, k, n] : {Sizes{1, 1, 1}, {1, 7, 300}, {1, 64, 64}, {2, 77, 130}, {3, 1030, 33}, {4, 33, 1500}, {1, 512, 3000}}) {
      const Array x = astype(random::normal({m, k}, float32, 0, 1, random::key(1)), t),
                  w = astype(random::normal({k, n}, float32, 0, 1, random::key(2)), t);
      const std::vector<double> a = x.to_vector<double>(), b = w.to_vector<double>();
      std::vector<double> got;
      for (const int threads : {1, 2, 4}) {
        omp_set_num_threads(threads);
        // Rows apart, columns apart, backwards.
        const Array rows = slice(concatenate({w, w}, 1), {0, 0}, {k, n}), columns = transpose(reshape(transpose(w) + 0, {n, k})),
                    back = slice(slice(w, {k - 1, 0}, {-k - 1, n}, {-1, 1}) + 0, {k - 1, 0}, {-k - 1, n}, {-1, 1});
        for (const Array& y : {w, rows, columns, back}) {
          std::vector<Array> products{matmul(x, y), transpose(matmul(transpose(y), transpose(x)))};
          if (threads == 2) products.push_back(compile([t](const Array& x, const Array& y) { return astype(matmul(x, y), t); })(x, y));
          for (const Array& p : products) {
            const std::vector<double> v = p.to_vector<double>();
            if (got.empty()) got = v;
            EXPECT_EQ(std::memcmp(v.data(), got.data(), v.size() * sizeof(double)), 0) << t << ' ' << m << ' ' << k << ' ' << n;
          }
        }
      }
      const double unit = t == float64 ? 1e-15 : t == float32 ? 1e-6 : t == float16 ? 1e-3 : 1e-2;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t row = i / static_cast<std::size_t>(n), column = i % static_cast<std::size_t>(n);
        double sum = 0, size = 0;
        for (std::size_t j = 0; j < static_cast<std::size_t>(k); ++j) {
          const double term = a[row * static_cast<std::size_t>(k) + j] * b[j * static_cast<std::size_t>(n) + column];
          sum += term, size += std::abs(term);
        }
        EXPECT_NEAR(got[i], sum, unit * size) << t << ' ' << m << ' ' << k << ' ' << n << " element " << i;
      }
    }
  omp_set_num_threads(before);
}

}  // namespace
