// Printing, and reading IDX files.
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "functions/cases.h"

namespace {

TEST(Print, forms) {
  run({
      CASE("array(3, dtype=float32)", Array(3.0)),
      CASE("array(3, dtype=int32)", Array(3)),
      CASE("array(true, dtype=bool)", Array(true)),
      CASE("array([1, 2.5], dtype=float32)", Array({1.0, 2.5})),
      CASE("array([1e-05, 123457, 1.23457e+06, 0.000123457], dtype=float32)", Array({1e-5f, 123456.7f, 1234567.f, 0.0001234567f})),
      CASE("array([nan, inf, -inf, -0], dtype=float32)", Array({-NAN, INFINITY, -INFINITY, -0.f})),
      CASE("array([-128, 127], dtype=int8)", Array({-128, 127}, int8)),
      CASE("array(18446744073709551615, dtype=uint64)", Array(~std::uint64_t{0})),
      CASE("array([0.333252, 65504], dtype=float16)", Array({1.f / 3, 65504.f}, float16)),
      CASE("array(0.333333, dtype=float64)", Array(1.0 / 3, float64)),
      CASE("array([1+2j, -0-0j, 0+nanj], dtype=complex64)",
           Array({std::complex<float>(1, 2), std::complex<float>(-0.f, -0.f), std::complex<float>(0, NAN)})),
      CASE("array([], dtype=float32)", zeros({0})),
      CASE("array([[],\n       []], dtype=int8)", zeros({2, 0}, int8)),
      CASE("array([], dtype=float32)", zeros({0, 2})),
      CASE("array([0, 1, 2, 3, 4, 5], dtype=int32)", arange(6)),
      CASE("array([0, 1, 2, ..., 4, 5, 6], dtype=int32)", arange(7)),
      CASE("array([[[0, 1],\n        [2, 3]],\n       [[4, 5],\n        [6, 7]]], dtype=int32)", arange(8).reshape({2, 2, 2})),
      CASE(
          "array([[0, 1],\n       [2, 3],\n       [4, 5],\n       ...,\n       [14, 15],\n       [16, 17],\n       [18, 19]], dtype=int32)",
          arange(20).reshape({10, 2})),
      CASE("array([[0, 3],\n       [1, 4],\n       [2, 5]], dtype=int32)", transpose(arange(6).reshape({2, 3}))),
      CASE("array([6, 4, 2], dtype=int32)", slice(arange(7), {-1}, {1}, {-2})),
      CASE("array([], dtype=float32)", zeros({0})),
      CASE("array([1, 1, 1, ..., 1, 1, 1], dtype=float32)", broadcast_to(Array(1.0), {std::int64_t{1} << 40})),
      CASE("array([[0, 0, 0, ..., 0, 0, 0],\n       [1, 1, 1, ..., 1, 1, 1]], dtype=int32)",
           broadcast_to(reshape(arange(2), {2, 1}), {2, std::int64_t{1} << 40})),
      CASE("array(unset)", Array()),
  });
  std::ostringstream out;
  out << Array({1, 2}) << ' ' << Array(2.5);
  EXPECT_EQ(out.str(), "array([1, 2], dtype=int32) array(2.5, dtype=float32)");
}

TEST(Print, options) {
  const PrintOptions before = get_printoptions();
  set_printoptions({.precision = 3, .threshold = 2, .edgeitems = 1});
  EXPECT_EQ(to_string(Array({1.23456, 2.0, 3.0})), "array([1.23, ..., 3], dtype=float32)");
  set_printoptions({.precision = 17, .threshold = 1000, .edgeitems = 3});
  EXPECT_EQ(to_string(Array(0.1, float64)), "array(0.10000000000000001, dtype=float64)");
  set_printoptions(before);
  EXPECT_EQ(to_string(arange(7)), "array([0, 1, 2, ..., 4, 5, 6], dtype=int32)");
}

std::string file(const std::string& bytes, bool compress, std::size_t keep = std::string::npos) {
  static int number = 0;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("sinter_idx_" + std::to_string(::getpid()) + "_" + std::to_string(number++))).string();
  if (compress) {
    gzFile f = gzopen(path.c_str(), "wb");
    gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(f);
  } else {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  if (keep != std::string::npos) std::filesystem::resize_file(path, keep);
  return path;
}
std::string bytes(std::initializer_list<int> list) {
  std::string s;
  for (int b : list) s += static_cast<char>(b);
  return s;
}

TEST(Idx, reads_every_type) {
  struct Row {
    std::string contents;
    const char* expected;
  };
  const Row rows[] = {
      {bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255}), "array([[1, 2, 3],\n       [4, 5, 255]], dtype=uint8)"},
      {bytes({0, 0, 9, 1, 0, 0, 0, 2, 1, 255}), "array([1, -1], dtype=int8)"},
      {bytes({0, 0, 11, 1, 0, 0, 0, 2, 1, 2, 255, 254}), "array([258, -2], dtype=int16)"},
      {bytes({0, 0, 12, 1, 0, 0, 0, 1, 0, 1, 2, 3}), "array([66051], dtype=int32)"},
      {bytes({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}), "array([1.5], dtype=float32)"},
      {bytes({0, 0, 14, 1, 0, 0, 0, 1, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0}), "array([-1.5], dtype=float64)"},
      {bytes({0, 0, 8, 0, 7}), "array(7, dtype=uint8)"},
      {bytes({0, 0, 8, 1, 0, 0, 0, 0}), "array([], dtype=uint8)"},
  };
  for (const Row& r : rows) {
    for (bool compress : {false, true}) {
      const std::string path = file(r.contents, compress);
      EXPECT_EQ(to_string(load_idx(path)), r.expected);
      std::filesystem::remove(path);
    }
  }
}

TEST(Idx, rejects_malformed_files) {
  const std::string good = bytes({0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3});
  struct Row {
    std::string contents, text;
    bool compress = false;
    std::size_t keep = std::string::npos;
  };
  const std::string again = "; get the file again";
  const Row rows[] = {
      {"", "the header is truncated; got 0 of 4 bytes of a word in FILE" + again},
      {bytes({0, 0, 8}), "the header is truncated; got 3 of 4 bytes of a word in FILE" + again},
      {bytes({0, 0, 8, 1, 0, 0}), "the header is truncated; got 2 of 4 bytes of a word in FILE" + again},
      {good.substr(0, 9), "the data are truncated; got 1 of 3 bytes in FILE" + again},
      {good + "x", "there are data after the last element; got more than 3 bytes for shape (3) in FILE" + again},
      {good + "x", "there are data after the last element; got more than 3 bytes for shape (3) in FILE" + again, true},
      {bytes({0, 0, 10, 1, 0, 0, 0, 0}),
       "not an IDX file; got magic 00000a01 in FILE; give a file whose magic is 0000, a type (08, 09, 0b to 0e) and the number of axes"},
      {"PNG\n....",
       "not an IDX file; got magic 504e470a in FILE; give a file whose magic is 0000, a type (08, 09, 0b to 0e) and the number of axes"},
      {bytes({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}),
       "the sizes are too large; got (4294967295,4294967295,4294967295) in FILE" + again},
      {bytes({0, 0, 8, 2, 255, 255, 255, 255, 0, 255, 255, 255, 1}),
       "the data are truncated; got 1 of 72057589726183425 bytes in FILE" + again},
  };
  for (const Row& r : rows) {
    const std::string path = file(r.contents, r.compress, r.keep);
    std::string expected = "load_idx: " + r.text;
    expected.replace(expected.find("FILE"), 4, '"' + path + '"');
    try {
      load_idx(path);
      ADD_FAILURE() << "read " << r.text;
    } catch (const IoError& e) {
      EXPECT_EQ(e.what(), expected);
    }
    std::filesystem::remove(path);
  }
  // Damaged and truncated compression: the text is zlib's in part.
  std::string noise(5000, ' ');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * 37 >> 3);
  const std::string large = bytes({0, 0, 8, 1, 0, 0, 0x13, 0x88}) + noise, path = file(large, true);
  std::filesystem::resize_file(path, 40);
  EXPECT_THROW(load_idx(path), IoError);
  std::filesystem::remove(path);
  const std::string damaged = file(large, true);
  {
    std::fstream f(damaged, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(-6, std::ios::end);
    f.put('\x55').put('\xaa');
  }
  EXPECT_THROW(load_idx(damaged), IoError);
  std::filesystem::remove(damaged);
  EXPECT_THROW(load_idx(std::filesystem::temp_directory_path().string()), IoError);
}

}  // namespace
