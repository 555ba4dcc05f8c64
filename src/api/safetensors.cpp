// The .safetensors format: the length of a header (8 bytes, little-endian), the header (JSON: dtype, shape and place of each array, and
// text under __metadata__), the elements. Layer: api.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/common.h"
#include "sinter/io.h"

namespace sinter {
namespace {

using Json = nlohmann::json;

struct Type {
  const char* name;
  Dtype dtype;
};
constexpr Type kTypes[] = {{"BOOL", Dtype::bool_},  {"U8", Dtype::uint8},     {"U16", Dtype::uint16},    {"U32", Dtype::uint32},
                           {"U64", Dtype::uint64},  {"I8", Dtype::int8},      {"I16", Dtype::int16},     {"I32", Dtype::int32},
                           {"I64", Dtype::int64},   {"F16", Dtype::float16},  {"BF16", Dtype::bfloat16}, {"F32", Dtype::float32},
                           {"F64", Dtype::float64}, {"C64", Dtype::complex64}};
static_assert(std::size(kTypes) == kDtypeCount && std::endian::native == std::endian::little);
constexpr std::uint64_t kLongestHeader = 100'000'000;  // as the reference reader

class File {
 public:
  File(const char* what, const std::string& path, int flags)
      : what_(what), path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail("cannot open the file", std::strerror(errno), "check the path and its permissions");
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uint64_t size() const {
    const off_t end = ::lseek(fd_, 0, SEEK_END);
    if (end < 0) fail("cannot read the file", std::strerror(errno), "give a regular file");
    return static_cast<std::uint64_t>(end);
  }
  void read(void* to, std::uint64_t n, std::uint64_t from) const {
    for (char* at = static_cast<char*>(to); n > 0;) {
      const ssize_t got = ::pread(fd_, at, n, static_cast<off_t>(from));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("cannot read the file", std::strerror(errno), "check the disk");
      if (got == 0) fail("the file became shorter", std::to_string(n) + " bytes missing", "do not write to it meanwhile");
      at += got, from += static_cast<std::uint64_t>(got), n -= static_cast<std::uint64_t>(got);
    }
  }
  void write(const void* from, std::uint64_t n) const {
    for (const char* at = static_cast<const char*>(from); n > 0;) {
      const ssize_t done = ::write(fd_, at, n);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail("cannot write the file", std::strerror(errno), "check the disk");
      at += done, n -= static_cast<std::uint64_t>(done);
    }
  }
  [[noreturn]] void fail(const char* wrong, const std::string& got, const char* advice) const {
    throw IoError(str(what_, ": ", wrong, "; got ", got, " in \"", path_, "\"; ", advice));
  }
  [[noreturn]] void damaged(const std::string& got) const { fail("not a .safetensors file, or a damaged one", got, "get the file again"); }

 private:
  const char* what_;
  const std::string& path_;
  int fd_;
};

struct Entry {
  std::string name;
  Dtype dtype;
  Shape shape;
  std::uint64_t begin, end;
};

// Text goes into JSON, which is UTF-8: a byte replaced would make another name, or two names one.
void require_utf8(const char* role, const std::string& text) {
  try {
    (void)Json(text).dump();
  } catch (const Json::type_error&) {
    throw IoError(str("save_safetensors: ", role, " is not UTF-8; got ", Json(text).dump(-1, ' ', true, Json::error_handler_t::replace),
                      "; use UTF-8"));
  }
}

// An entry of the header, in which nothing can be trusted.
Entry entry_of(const File& file, const std::string& name, const Json& json) {
  auto bad = [&](const char* field) { file.damaged(str("a wrong ", field, " of array \"", name, '"')); };
  if (!json.is_object()) bad("entry");
  Entry e{name, {}, {}, 0, 0};
  const auto dtype = json.find("dtype"), shape = json.find("shape"), place = json.find("data_offsets");
  if (dtype == json.end() || !dtype->is_string()) bad("dtype");
  const std::string& text = dtype->get_ref<const std::string&>();
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.name == text; });
  if (type == std::end(kTypes)) {
    std::string known;
    for (const Type& t : kTypes) known += str(known.empty() ? "" : ", ", t.name);
    file.fail("an array has an unknown dtype", str(text, " of array \"", name, '"'), str("use ", known).c_str());
  }
  e.dtype = type->dtype;
  if (shape == json.end() || !shape->is_array()) bad("shape");
  std::int64_t bytes = size_of(e.dtype);
  for (const Json& d : *shape) {
    if (!d.is_number_unsigned() || d.get<std::uint64_t>() > INT64_MAX) bad("shape");
    e.shape.push_back(d.get<std::int64_t>());
  }
  for (const Dim& d : e.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::int64_t>(d), &bytes)) bad("shape");
  if (place == json.end() || !place->is_array() || place->size() != 2 || !(*place)[0].is_number_unsigned() ||
      !(*place)[1].is_number_unsigned())
    bad("place");
  e.begin = (*place)[0].get<std::uint64_t>(), e.end = (*place)[1].get<std::uint64_t>();
  if (e.begin > e.end || e.end - e.begin != static_cast<std::uint64_t>(bytes)) bad("place");
  return e;
}

}  // namespace

Safetensors load_safetensors(const std::string& path) {
  const File file("load_safetensors", path, O_RDONLY);
  const std::uint64_t size = file.size();
  std::uint64_t length = 0;
  if (size < 8) file.damaged(str(size, " bytes"));
  file.read(&length, 8, 0);
  if (length > kLongestHeader || length > size - 8) file.damaged(str("a header of ", length, " bytes and ", size, " bytes in all"));
  std::string text(length, '\0');
  file.read(text.data(), length, 8);
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) file.damaged("a header that is no JSON object");

  Safetensors result;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(entry_of(file, name, json));
      continue;
    }
    if (!json.is_object()) file.damaged("wrong metadata");
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) file.damaged("wrong metadata");
      result.metadata.emplace(key, value.get<std::string>());
    }
  }
  // The elements fill the rest of the file without holes.
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at) file.damaged(str("a wrong place of array \"", e.name, '"'));
    at = e.end;
  }
  if (at != size - 8 - length) file.damaged(str(size - 8 - length, " bytes of elements for ", at));
  for (Entry& e : entries) {
    runtime::BufferRef buffer = runtime::allocate(e.end - e.begin);
    file.read(buffer.data(), e.end - e.begin, 8 + length + e.begin);
    if (e.dtype == Dtype::bool_)
      for (std::uint64_t i = 0; i < e.end - e.begin; ++i) {
        unsigned char& b = static_cast<unsigned char*>(buffer.data())[i];
        b = b != 0;
      }
    result.arrays.emplace(std::move(e.name), engine::make_ready(std::move(buffer), {0, graph::row_major(e.shape)}, e.dtype, e.shape));
  }
  return result;
}

void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, Array>> sorted;
  for (const auto& [name, array] : arrays) {
    if (name == "__metadata__") throw IoError("save_safetensors: a name is reserved; got __metadata__; use another one");
    require_utf8("a name", name);
    if (!array.valid())
      throw Error(str("save_safetensors: an array is unset; got \"", name, "\", default constructed or moved from; assign a value first"));
    sorted.emplace_back(name, array);
  }
  for (const auto& [key, value] : metadata) {
    require_utf8("a key of the metadata", key);
    require_utf8("a value of the metadata", value);
  }
  for (auto& [name, array] : sorted) array = engine::contiguous(array.eval());
  // Widest first, so that all elements are aligned; then by name.
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(-size_of(a.second.dtype()), a.first) < std::pair(-size_of(b.second.dtype()), b.first);
  });
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t at = 0;
  for (const auto& [name, array] : sorted) {
    const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.dtype == array.dtype(); });
    header[name] = {{"dtype", type->name},
                    {"shape", std::vector<std::int64_t>(array.shape().begin(), array.shape().end())},
                    {"data_offsets", {at, at + array.nbytes()}}};
    at += array.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const std::string temporary = str(path, ".", ::getpid(), ".new");
  try {
    const File file("save_safetensors", temporary, O_WRONLY | O_CREAT | O_TRUNC);
    const std::uint64_t length = text.size();
    file.write(&length, 8);
    file.write(text.data(), length);
    for (const auto& [name, array] : sorted) {
      const engine::Value& v = engine::value_of(array, "save_safetensors");
      const std::size_t element = static_cast<std::size_t>(size_of(v.dtype));
      const char* data = static_cast<const char*>(v.buffer.data()) + static_cast<std::size_t>(v.layout.offset) * element;
      file.write(data, static_cast<std::uint64_t>(array.nbytes()));
    }
    if (std::rename(temporary.c_str(), path.c_str()) != 0) file.fail("cannot replace the file", std::strerror(errno), "check the path");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace sinter
