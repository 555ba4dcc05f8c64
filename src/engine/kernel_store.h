// The kernel store: every kernel of the process by its content, shared by all functions. Layer: engine.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernel/kernel.h"
#include "runtime/image.h"

namespace sinter::engine {

/// A kernel that can run: machine code, or the interpreter where there is no code generator for this processor.
class Executable {
 public:
  explicit Executable(kernel::Kernel k) : kernel_(std::move(k)) {}  // interpreted
  Executable(kernel::Kernel k, std::shared_ptr<const runtime::MappedImages> code, std::size_t image)
      : kernel_(std::move(k)), code_(std::move(code)), entry_(code_->entry(image)) {}
  void run(std::int64_t begin, std::int64_t end, const std::uint64_t* block, std::uint64_t streams) const;
  void interpret(std::int64_t begin, std::int64_t end, const std::uint64_t* block) const;
  const kernel::Kernel& kernel() const { return kernel_; }
  bool interpreted() const { return !code_; }

 private:
  kernel::Kernel kernel_;
  std::shared_ptr<const runtime::MappedImages> code_;  // shared by kernels that were loaded at once
  runtime::KernelEntry entry_ = nullptr;
};

struct KernelCost {
  std::int64_t generated = 0;  // kernels that were neither in the store nor on disk
  std::int64_t from_disk = 0;  // kernels that were not in the store
  double milliseconds = 0;     // spent generating
  KernelCost& operator+=(const KernelCost& other) {
    generated += other.generated, from_disk += other.from_disk, milliseconds += other.milliseconds;
    return *this;
  }
};

/// What a plan's launches do with their kernels.
struct Worth {
  struct Launch {
    double work;         // instructions, times elements, about
    std::int64_t bytes;  // that it moves
  };
  std::vector<Launch> launches;  // by kernel; empty: unknown
  bool once = false;             // the plan runs once
};

/// The kernels of these texts (compared in full) for this processor. Those that the store lacks come from disk (kernel_file.h) or are
/// generated, on all cores, and kept on disk. Adds to `cost`. Kernels that do little of a plan's work may have code that is made in a third
/// of the time and is slower; those that do little, in a plan that runs once, are interpreted if nobody has them.
std::vector<std::shared_ptr<const Executable>> load_kernels(std::span<const kernel::Kernel> kernels, bool fast_math, KernelCost& cost,
                                                            const Worth& worth = {});

/// Kernels will be generated soon: opens their generator on another core meanwhile, the first time in a process. Where that fails,
/// load_kernels() tries again, and says why.
void expect_kernels();

/// Forgets kernels that nobody holds.
void release_kernels();
/// For tests: the generation after the next `after` ones throws DeviceError; negative: none does.
void fail_codegen(std::int64_t after);
/// For tests: kernels asked for from now on have no code and are interpreted.
void interpret_kernels(bool on);
/// Kernels in the store.
std::int64_t kernel_count();

}  // namespace sinter::engine
