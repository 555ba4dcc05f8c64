#include "runtime/image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "base/once.h"

namespace sinter::runtime {

bool can_map_code() {
  static constinit std::atomic<bool*> place{nullptr};
  return base::once(place, [] {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return true;  // no memory now is another matter
    const bool refused = mprotect(memory, page, PROT_READ | PROT_EXEC) != 0;
    if (refused) base::log(1, "kernels are interpreted: the system refuses executable memory");
    munmap(memory, page);
    return !refused;
  });
}

// Written first, made executable after: never both at once.
MappedImages::MappedImages(std::span<const Image> images) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto pages = [&](const Image& image) { return (image.bytes.size() + page - 1) / page * page; };
  for (const Image& image : images) {
    check(image.alignment <= page && image.entry < image.bytes.size(), "image: does not fit a page, or has no code");
    bytes_ += pages(image);
  }
  entries_.reserve(images.size());
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory_ == MAP_FAILED) {
    throw OutOfMemory(str("kernel: no memory for its code; got ", bytes_, " bytes; free some memory"));
  }
  auto* at = static_cast<std::uint8_t*>(memory_);
  for (const Image& image : images) {
    std::memcpy(at, image.bytes.data(), image.bytes.size());
    entries_.push_back(reinterpret_cast<KernelEntry>(at + image.entry));
    at += pages(image);
  }
  if (mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory_, bytes_);
    throw OutOfMemory(str("kernel: its code cannot be made executable; got ", bytes_, " bytes; allow executable mappings"));
  }
}

MappedImages::~MappedImages() { munmap(memory_, bytes_); }

}  // namespace sinter::runtime
