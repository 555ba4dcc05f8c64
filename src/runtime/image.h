// Image: the machine code of one kernel as a flat block, and its mapping into memory; needs no LLVM. Layer: runtime.
#pragma once
#include <cstdint>
#include <memory>
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

/// Executable memory that holds an image, unmapped with the object. Throws OutOfMemory.
class MappedImage {
 public:
  explicit MappedImage(const Image& image);
  ~MappedImage();
  MappedImage(const MappedImage&) = delete;
  MappedImage& operator=(const MappedImage&) = delete;
  KernelEntry entry() const { return entry_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  KernelEntry entry_ = nullptr;
};

}  // namespace sinter::runtime
