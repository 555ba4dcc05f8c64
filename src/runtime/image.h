// Image: the machine code of one kernel as a flat block, and the mapping of some into memory; needs no LLVM. Layer: runtime.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sinter::runtime {

/// Entry point of a kernel: iterations [begin, end) of its Parallel loop, with the launch's block of words and its streams (kernel.h).
using KernelEntry = void (*)(std::int64_t begin, std::int64_t end, const std::uint64_t* block, std::uint64_t streams);

/// Code and constants: no relocations, no external symbols; constants are addressed relative to the code.
struct Image {
  std::vector<std::uint8_t> bytes;
  std::size_t entry = 0;       // offset of the kernel's first instruction
  std::size_t alignment = 64;  // of the block
};

/// Whether the system lets this process make executable memory: hardened ones refuse. Asked once.
bool can_map_code();

/// Executable memory that holds images, each on pages of its own, unmapped with the object: one mapping, since each takes longer than
/// the code of a kernel takes to copy. Throws OutOfMemory.
class MappedImages {
 public:
  explicit MappedImages(std::span<const Image> images);
  explicit MappedImages(const Image& image) : MappedImages(std::span(&image, 1)) {}
  ~MappedImages();
  MappedImages(const MappedImages&) = delete;
  MappedImages& operator=(const MappedImages&) = delete;
  KernelEntry entry(std::size_t i = 0) const { return entries_[i]; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<KernelEntry> entries_;
};

}  // namespace sinter::runtime
