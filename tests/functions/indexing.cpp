// Reading at computed places: expression and result, as MLX and NumPy print it.
#include "functions/cases.h"

namespace {

TEST(Functions, indexing) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([4, 5, 6], dtype=int32)", take(m, 1, 0)),
      CASE("array(5, dtype=int32)", take(m, 4)),
      CASE("array([3, 6], dtype=int32)", take(m, -1, -1)),
      CASE("array([[1, 3],\n       [3, 2]], dtype=int32)", take(v, Array({{0, 2}, {-1, 1}}))),
      CASE("array([[[4, 5, 6, 7],\n"
           "        [0, 1, 2, 3]],\n"
           "       [[16, 17, 18, 19],\n"
           "        [12, 13, 14, 15]]], dtype=int32)",
           take(t3, Array({1, 0}), 1)),
      CASE("array([[3],\n       [4]], dtype=int32)", take_along_axis(m, Array({{2}, {0}}), 1)),
      CASE("array([[1, 5, 3]], dtype=int32)", take_along_axis(m, Array({{0, 1, 0}}), 0)),
      CASE("array([[11, 22, 33],\n       [4, 5, 6]], dtype=int32)", scatter_add(m, Array({0}), Array({{{10, 20, 30}}}), 0)),
      CASE("array([[1, 2, 3],\n       [15, 27, 39]], dtype=int32)",  // twice the same place
           scatter_add(m, Array({{1, -1}}), Array({{{{10, 20, 30}}, {{1, 2, 3}}}}), 0)),
      CASE("array([[1, 12, 3],\n       [4, 25, 6]], dtype=int32)", scatter_add(m, Array(1), Array({{10}, {20}}), 1)),
      CASE("array([[1, 2, 3],\n       [4, 5, 6]], dtype=int32)", scatter_add(m, Array({2, -3}), ones({2, 1, 3}), 0)),
      CASE("array([1, 2, 3], dtype=int32)", scatter_add(v, astype(Array(std::vector<int>{}), uint8), zeros({0, 1}), 0)),
      CASE("array([[11, 2, 103],\n       [24, 5, 206]], dtype=int32)",
           scatter_add_axis(m, Array({{0, -1}}), Array({{10, 100}, {20, 200}}), 1)),
      CASE("array([3, 2, 4], dtype=int32)", scatter_add_axis(v, Array({0, 2, 0, 7}), 1, 0)),
      CASE("array([[1, 7, 3],\n       [4, 7, 6]], dtype=int32)", put_along_axis(m, Array({{1, 5}}), 7.9, 1)),
      CASE("array([[1, 9, 3],\n       [8, 5, 7]], dtype=int32)", put_along_axis(m, Array({{1, 0, 1}}), Array({{8, 9, 7}}), 0)),
      CASE("array([3, 2, 3], dtype=int32)", put_along_axis(v, Array({0, 0, 0}), v, 0)),
      CASE("array([[0, 1, 0, 0],\n       [0, 0, 1, 0],\n       [0, 0, 0, 1]], dtype=float32)", one_hot(v, 4)),
  });
}

// Every dtype of numbers and of indices, in order, against a loop: repeated places, negative ones, and ones beyond both ends.
TEST(Functions, writes_at_computed_places) {
  for (int d = 0; d < kDtypeCount; ++d)
    for (int k = 0; k < kDtypeCount; ++k) {
      const Dtype t = static_cast<Dtype>(d), index = static_cast<Dtype>(k);
      if (!is_integer(index) || is_complex(t) || (t != float32 && index != int32)) continue;
      const Array a = astype(reshape(arange(12), {3, 4}), t), u = astype(reshape(arange(15) * 7 % 11, {3, 5}), t);
      Array i = reshape(arange(15) * 5 % 13 - 6, {3, 5});
      if (!is_signed(index)) i = abs(i);
      const std::vector<int> at = i.to_vector<int>();
      std::vector<double> sums = a.to_vector<double>(), last = sums;
      const std::vector<double> add = u.to_vector<double>();
      for (std::size_t e = 0; e < at.size(); ++e) {
        const int place = at[e] < 0 ? at[e] + 4 : at[e];
        if (place < 0 || place > 3) continue;
        const std::size_t to = e / 5 * 4 + static_cast<std::size_t>(place);
        sums[to] = t == bool_ ? sums[to] != 0 || add[e] != 0 : sums[to] + add[e];
        last[to] = add[e];
      }
      const auto f = [](const Array& a, const Array& i, const Array& u) {
        return std::vector<Array>{scatter_add_axis(a, i, u, 1), put_along_axis(a, i, u, -1),
                                  transpose(scatter_add_axis(a.T(), i.T(), u.T(), 0))};
      };
      const Array places = astype(i, index);
      for (const std::vector<Array>& r : {f(a, places, u), compile(f)(a, places, u)}) {
        EXPECT_EQ(r[0].to_vector<double>(), sums) << t << " " << index;
        EXPECT_EQ(r[1].to_vector<double>(), last) << t << " " << index;
        EXPECT_EQ(r[2].to_vector<double>(), sums) << t << " " << index;
        EXPECT_EQ(r[0].dtype(), t);
      }
    }
  // Halves add up in float32: 4096 ones on top of 1 would stay at 2048 in float16.
  EXPECT_EQ(scatter_add_axis(ones({1}, float16), zeros({4096}, int32), 1, 0).item<float>(), 4096);
  EXPECT_EQ(grad([](const Array& u) { return sum(square(scatter_add_axis(zeros({2}), Array({0, 0, 5}), u, 0))); })(Array({1.f, 2.f, 3.f}))
                .to_vector<float>(),
            (std::vector<float>{6, 6, 0}));
}

}  // namespace
