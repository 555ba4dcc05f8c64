// The IDX format of the MNIST files: two zero bytes, a type, the number of axes, big-endian sizes, big-endian elements. Layer: api.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

#include "api/common.h"
#include "sinter/io.h"

namespace sinter {
namespace {

struct Type {
  unsigned char code;
  Dtype dtype;
};
constexpr Type kTypes[] = {{0x08, Dtype::uint8}, {0x09, Dtype::int8},    {0x0B, Dtype::int16},
                           {0x0C, Dtype::int32}, {0x0D, Dtype::float32}, {0x0E, Dtype::float64}};

// A plain or gzip-compressed file.
class File {
 public:
  explicit File(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) fail("cannot open the file", "", "check that it exists and is readable");
  }
  ~File() { gzclose(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Up to n bytes; fewer only at the end of the file.
  std::size_t read(unsigned char* to, std::size_t n) {
    std::size_t done = 0;
    while (done < n) {
      const int got = gzread(file_, to + done, static_cast<unsigned>(std::min<std::size_t>(n - done, 1u << 20)));
      int code = 0;
      const char* text = gzerror(file_, &code);
      if (got < 0 || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR))
        fail("the data are damaged", std::string(text) + " in ", "get the file again");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  [[noreturn]] void fail(const char* wrong, const std::string& got, const char* advice) const {
    throw IoError(str("load_idx: ", wrong, "; got ", got, '"', path_, "\"; ", advice));
  }

 private:
  const std::string& path_;
  gzFile file_;
};

}  // namespace

Array load_idx(const std::string& path) {
  File file(path);
  std::array<unsigned char, 4> word{};
  auto next_word = [&] {
    const std::size_t got = file.read(word.data(), 4);
    if (got < 4) file.fail("the header is truncated", str(got, " of 4 bytes of a word in "), "get the file again");
  };
  next_word();
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.code == word[2]; });
  if (word[0] != 0 || word[1] != 0 || type == std::end(kTypes)) {
    char magic[9];
    std::snprintf(magic, sizeof magic, "%02x%02x%02x%02x", word[0], word[1], word[2], word[3]);
    file.fail("not an IDX file", str("magic ", magic, " in "),
              "give a file whose magic is 0000, a type (08, 09, 0b to 0e) and the number of axes");
  }
  Shape shape;
  const int axes = word[3];
  const std::size_t width = static_cast<std::size_t>(size_of(type->dtype));
  std::int64_t expected = static_cast<std::int64_t>(width);
  bool fits = true;
  for (int i = 0; i < axes; ++i) {
    next_word();
    const std::int64_t size = std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3];
    shape.push_back(size);
    fits &= !__builtin_mul_overflow(expected, size, &expected);
  }
  if (!fits) file.fail("the sizes are too large", str(shape, " in "), "get the file again");

  // Grown as it is read: a wrong header must not ask for memory that the file cannot fill.
  std::vector<unsigned char> data;
  const std::size_t total = static_cast<std::size_t>(expected);
  for (std::size_t at = 0; at < total;) {
    const std::size_t want = std::min<std::size_t>(total - at, 1u << 22);
    data.resize(at + want);
    const std::size_t got = file.read(data.data() + at, want);
    at += got;
    if (got < want) file.fail("the data are truncated", str(at, " of ", total, " bytes in "), "get the file again");
  }
  unsigned char extra = 0;
  if (file.read(&extra, 1) != 0)
    file.fail("there are data after the last element", str("more than ", total, " bytes for shape ", shape, " in "), "get the file again");

  if (width > 1) {
    for (std::size_t i = 0; i < total; i += width)
      std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i), data.begin() + static_cast<std::ptrdiff_t>(i + width));
  }
  runtime::BufferRef buffer = runtime::allocate(total);
  if (total > 0) std::memcpy(buffer.data(), data.data(), total);
  return engine::make_ready(std::move(buffer), {0, graph::row_major(shape)}, type->dtype, shape);
}

}  // namespace sinter
