#include "runtime/image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/check.h"
#include "base/log.h"

namespace sinter::runtime {

bool can_map_code() {
  static const bool can = [] {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return true;  // no memory now is another matter
    const bool refused = mprotect(memory, page, PROT_READ | PROT_EXEC) != 0;
    if (refused) base::log(1, "kernels are interpreted: the system refuses executable memory");
    munmap(memory, page);
    return !refused;
  }();
  return can;
}

// Written first, made executable after: never both at once.
MappedImage::MappedImage(const Image& image) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  check(image.alignment <= page && image.entry < image.bytes.size(), "image: does not fit a page, or has no code");
  bytes_ = (image.bytes.size() + page - 1) / page * page;
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) {
    throw OutOfMemory(str("kernel: no memory for its code; got ", bytes_, " bytes; free some memory"));
  }
  std::memcpy(memory_, image.bytes.data(), image.bytes.size());
  if (mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory_, bytes_);
    throw OutOfMemory(str("kernel: its code cannot be made executable; got ", bytes_, " bytes; allow executable mappings"));
  }
  entry_ = reinterpret_cast<KernelEntry>(static_cast<std::uint8_t*>(memory_) + image.entry);
}

MappedImage::~MappedImage() { munmap(memory_, bytes_); }

}  // namespace sinter::runtime
