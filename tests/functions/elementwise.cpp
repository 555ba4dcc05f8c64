// Elementwise functions and operators: expression and result, as MLX and NumPy print it.
#include "functions/cases.h"

namespace {

TEST(Functions, elementwise) {
  const Samples s;
  const auto& [m, f, v, w, t3, b, u8, i8, h, c, nan] = s;
  run({
      CASE("array([[[1, 2, 3],\n"
           "        [4, 5, 6]],\n"
           "       [[1, 2, 3],\n"
           "        [4, 5, 6]],\n"
           "       [[1, 2, 3],\n"
           "        [4, 5, 6]],\n"
           "       [[1, 2, 3],\n"
           "        [4, 5, 6]]], dtype=float32)",
           m + f.reshape({4, 1, 1}) * 0),
      CASE("array([[0.5, 1, 1.5],\n       [2, 2.5, 3]], dtype=float32)", m / 2),
      CASE("array([[false, true, false],\n       [true, false, true]], dtype=bool)", m % 2 == 0),
      CASE("array([44, 200], dtype=uint8)", u8 + 100),
      CASE("array([56, 156], dtype=uint8)", u8 * -1),
      CASE("array([200, 200], dtype=float32)", i8 * 2.0),
      CASE("array([true, true], dtype=bool)", u8 > -1),
      CASE("array([true, true], dtype=bool)", -1 < u8),
      CASE("array([false, false], dtype=bool)", u8 <= -1),
      CASE("array([true, true], dtype=bool)", u8 < 300),
      CASE("array([false, false], dtype=bool)", 300 <= u8),
      CASE("array([false, false], dtype=bool)", u8 == 256 + 200),
      CASE("array([true, true], dtype=bool)", u8 != 256 + 200),
      CASE("array([true, true], dtype=bool)", i8 > -129),
      CASE("array([false, false], dtype=bool)", i8 == 256 + 100),
      CASE("array([true, true, true], dtype=bool)", v < (std::int64_t{1} << 32)),
      CASE("array([true, true, true], dtype=bool)", astype(v, int64) < ~std::uint64_t{0}),
      CASE("array([true, true, true], dtype=bool)", astype(v, uint64) > -1),
      CASE("array([false, false, true], dtype=bool)", astype(v, uint64) - 3 == 0),
      CASE("array([true, false, false], dtype=bool)", astype(v, uint64) - 2 == ~std::uint64_t{0}),
      CASE("array([true, false], dtype=bool)", u8 > 100),
      CASE("array([200, 100], dtype=uint8)", clip(u8, -5, 300)),
      CASE("array([150, 100], dtype=uint8)", clip(u8, -5, 150)),
      CASE("array([200, 100], dtype=uint8)", clip(u8, std::nullopt, 300)),
      CASE("array([255, 255], dtype=uint8)", clip(u8, 300, 400)),
      CASE("array([200, 100], dtype=uint8)", maximum(u8, -1)),
      CASE("array([100, 100], dtype=int8)", minimum(i8, 1000)),
      CASE("array([true, true, true, ..., true, true, true], dtype=bool)", h * 0.5 + 1 < 600),
      CASE("array([[0, 0, 3],\n       [4, 5, 6]], dtype=int32)", where(m > 2, m, 0)),
      CASE("array([1, 2.5, 1], dtype=float32)", where(b, 1, 2.5)),
      CASE("array([1, -1, 0.5, 1], dtype=float32)", clip(f, -1, 1)),
      CASE("array([1, -2.5, 0.5, 1], dtype=float32)", clip(f, std::nullopt, 1)),
      CASE("array([1.5, 0, 0.5, 3], dtype=float32)", clip(f, 0, std::nullopt)),
      CASE("array([2, -2, 0, 3], dtype=float32)", round(f)),
      CASE("array([1.9, -3.1, 0.6, 3.7], dtype=float32)", round(f * 1.234, 1)),
      CASE("array([[0, 0, 0],\n       [1, 1, 1]], dtype=int32)", divmod(m, 4)[0]),
      CASE("array([[3, 2, 1],\n       [0, 3, 2]], dtype=int32)", divmod(-m, 4)[1]),
      CASE("array([1, 5, 6, 7], dtype=float32)", nan_to_num(nan, 5, 6, 7)),
      CASE("array([true, false, true, true], dtype=bool)", isclose(nan, nan)),
      CASE("array([true, true, true, true], dtype=bool)", isclose(nan, nan, 1e-5, 1e-8, true)),
      CASE("array(true, dtype=bool)", allclose(f, f + 1e-9)),
      CASE("array(false, dtype=bool)", allclose(f, f + 1)),
      CASE("array(true, dtype=bool)", array_equal(m, m)),
      CASE("array(false, dtype=bool)", array_equal(m, v)),
      CASE("array([false, true, false], dtype=bool)", ~b),
      CASE("array([[-1, -2, -3],\n       [-4, -5, -6]], dtype=int32)", -m),
      CASE("array([[4, 8, 12],\n       [16, 20, 24]], dtype=int32)", m << 2),
      CASE("array([100, 50], dtype=uint8)", u8 >> 1),
      CASE("array([[9, 10, 11],\n       [8, 9, 10]], dtype=int32)", (m & 3) | 8),
      CASE("array([true, false, false], dtype=bool)", b && Array({true, true, false})),
      CASE("array([-3+4j, -7-24j], dtype=complex64)", c * c),
      CASE("array([2+2j, 4-4j], dtype=complex64)", c + 1),
      CASE("array([2.23607, 5], dtype=float32)", abs(c)),
      CASE("array([1, 3], dtype=float32)", real(c)),
      CASE("array([[false, false, false],\n       [false, false, false]], dtype=bool)", logical_xor(m, 1)),
      CASE("array([1, -2, 0, 3], dtype=int32)", astype(f, int32)),
      CASE("array([[true, true, true],\n       [true, true, true]], dtype=bool)", astype(m, bool_)),
      CASE("array([[1, 4, 9],\n       [16, 25, 36]], dtype=int32)", power(m, 2)),
      CASE("array([1.5, 0, 0.5, 3], dtype=float32)", maximum(f, 0)),
  });
}

}  // namespace
