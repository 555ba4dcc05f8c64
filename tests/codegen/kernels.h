// Kernels for the tests of the code generator, and their comparison with the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "backends/codegen.h"
#include "ops/infer.h"

namespace sinter::tests {

using backends::CodegenOptions;
using backends::Target;
using kernel::Builder;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Ref;
using ops::Op;

/// The targets that this machine runs: AVX-512, and x86-64-v3 with 8 lanes.
const std::vector<Target>& targets();

/// Arguments of a launch; `run` leaves the buffers' contents changed.
struct Launch {
  std::vector<std::vector<std::uint8_t>> buffers = {};
  std::vector<std::int64_t> integers = {};
  std::vector<std::uint64_t> scalars = {};
  std::int64_t iterations = 1;

  kernel::Block block();
};

/// Elements of any bits that a stored dtype may have: mostly of moderate size, some special.
std::vector<std::uint8_t> random_elements(Dtype t, std::size_t count, std::uint64_t seed);
template <class T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& v) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(v.data());
  return {p, p + v.size() * sizeof(T)};
}
template <class T>
std::vector<T> elements_of(const std::vector<std::uint8_t>& bytes) {
  std::vector<T> v(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(v.data()));
  return v;
}

/// The image of a kernel, kept for the length of the program.
const runtime::MappedImages& image_of(const Kernel& k, const Target& target, const CodegenOptions& options = {});
/// Equal bytes, NaNs being equal whatever their bits.
void expect_equal(Dtype t, const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& expected, const std::string& what);
/// The kernel that stores large results: buffers that it writes and does not read may stream.
Kernel large(Kernel k);

/// Runs the kernel on every target at levels 0 and 2, and briefly, with and without streams, and compares each buffer with the
/// interpreter's.
void check_kernel(const Kernel& k, const Launch& launch, const std::string& what = "");

/// out[i] = f(in...)[i] for i in [0, integer 0): a vector loop, behind it nothing.
Kernel elementwise(const std::vector<Dtype>& in, const std::function<Ref(Builder&, const std::vector<Ref>&)>& f, int unroll = 1,
                   int prefetch = 0);

}  // namespace sinter::tests
