#include "engine/kernel_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/build.h"
#include "base/check.h"

namespace sinter::engine {
namespace {

struct Header {
  std::uint64_t name_bytes, entry, alignment;
};

}  // namespace

std::string file_key(std::string_view kernel, const backends::Target& target, const backends::CodegenOptions& options) {
  return str("build ", base::build_identity(), '\n', target.cpu, ' ', target.features, "\nlevel ", options.level,
             options.fast_math ? " fast_math" : "", options.brief ? " brief\n" : "\n", kernel);
}

std::vector<std::uint8_t> file_bytes(std::string_view name, const runtime::Image& image) {
  const Header header{name.size(), image.entry, image.alignment};
  std::vector<std::uint8_t> bytes(sizeof header + name.size() + image.bytes.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(image.bytes.begin(), image.bytes.end(), std::copy(name.begin(), name.end(), bytes.begin() + sizeof header));
  return bytes;
}

std::optional<runtime::Image> file_image(std::span<const std::uint8_t> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  if (header.name_bytes > bytes.size() || header.entry >= bytes.size() - header.name_bytes) return std::nullopt;
  constexpr std::uint64_t kPage = 4096;
  if (!std::has_single_bit(header.alignment) || header.alignment > kPage) return std::nullopt;
  bytes = bytes.subspan(header.name_bytes);
  return runtime::Image{{bytes.begin(), bytes.end()}, header.entry, header.alignment};
}

}  // namespace sinter::engine
