// A kernel's image as bytes on disk, and what it is found by. Layer: engine.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/codegen.h"

namespace sinter::engine {

/// All that the image of a kernel depends on, as text: the build of the code generator, the processor, the options, and the kernel's own
/// text (kernel::append_key).
std::string file_key(std::string_view kernel, const backends::Target& target, const backends::CodegenOptions& options);

/// The image, behind the kernel's name, which is for people (tools/cache.py).
std::vector<std::uint8_t> file_bytes(std::string_view name, const runtime::Image& image);
/// The inverse; nothing where the bytes are not those of an image.
std::optional<runtime::Image> file_image(std::span<const std::uint8_t> bytes);

}  // namespace sinter::engine
