// Images: what they contain, that they can be moved, and what they cost.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/build.h"
#include "codegen/kernels.h"
#include "support/thrown.h"

namespace sinter::tests {
namespace {

Kernel chain(int operations) {
  return elementwise(
      {float32, float32},
      [&](Builder& b, auto& in) {
        const Op ops[] = {Op::Add, Op::Tanh, Op::Multiply, Op::Subtract};
        Ref v = in[0];
        for (int o = 0; o < operations; ++o) v = b.compute(ops[o % 4], float32, v, o % 4 == 1 ? kernel::kNone : in[1]);
        return v;
      },
      4);
}

double milliseconds(FunctionRef<void()> f) {
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// The code generator refuses symbols from outside and relocations that remain; so a compilation that succeeds is the proof. Level 0
// is the one most inclined to call helpers.
TEST(Images, StandAlone) {
  for (const Target& target : targets()) {
    for (int level : {0, 1, 2}) {
      const runtime::Image image = backends::codegen().compile(chain(8), target, {.level = level});
      EXPECT_LT(image.entry, image.bytes.size());
      EXPECT_GE(image.alignment, 64u);
    }
  }
}

TEST(Images, CompileTime) {
  for (int operations : {1, 4, 20, 200}) {
    const Kernel k = chain(operations);
    std::size_t bytes = 0;
    const double ms = milliseconds([&] { bytes = backends::codegen().compile(k, backends::host_target(), {}).bytes.size(); });
    std::printf("chain of %3d operations, unroll 4: %5.1f ms, %zu bytes\n", operations, ms, bytes);
    EXPECT_LT(ms, 400);
  }
}

// Long kernels call functions for their expensive operations, short ones do not; the bits are the same.
TEST(Images, FunctionsAndInlineAgree) {
  std::vector<float> x(203), y(203, 0.5f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 50 - 2;
  std::string text;
  CodegenOptions options;
  options.llvm_ir = &text;
  backends::codegen().compile(chain(200), backends::host_target(), options);
  EXPECT_NE(text.find("call fastcc"), std::string::npos);
  for (int operations : {60, 200}) {
    check_kernel(chain(operations), {{bytes_of(x), bytes_of(y), random_elements(float32, 203, 1)}, {203}}, str(operations, " operations"));
  }
}

TEST(Images, TextsForPeople) {
  std::string ir, assembly;
  CodegenOptions options;
  options.llvm_ir = &ir;
  options.assembly = &assembly;
  backends::codegen().compile(chain(1), backends::x86_target(true), options);
  EXPECT_NE(ir.find("fadd <16 x float>"), std::string::npos) << ir;
  EXPECT_NE(assembly.find("vaddps"), std::string::npos) << assembly;
  EXPECT_NE(assembly.find("%zmm"), std::string::npos) << assembly;
  EXPECT_TRUE(backends::codegen_loaded());
}

// Whole vectors of a large buffer that the kernel does not read itself have a store past the caches, and the kernel then has a fence.
TEST(Images, Streams) {
  auto twice = [](Builder& b, auto& in) { return b.compute(Op::Add, b.kernel.buffers[0].dtype, in[0], in[0]); };
  auto assembly_of = [](const Kernel& k, const Target& target) {
    std::string text;
    CodegenOptions options;
    options.assembly = &text;
    backends::codegen().compile(k, target, options);
    return text;
  };
  auto tanhs = [](int count) {
    return elementwise(
        {float32},
        [&](Builder& b, auto& in) {
          Ref v = in[0];
          for (int i = 0; i < count; ++i) v = b.compute(Op::Tanh, float32, v);
          return v;
        },
        2);
  };
  auto has = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
  Builder b;  // in place
  b.buffer(float32, true);
  const Ref n = b.arg(), i = b.loop(LoopKind::Vector, b.index(0), n);
  b.store(0, i, b.compute(Op::Exp, float32, b.load(0, i)));
  b.end();
  for (const Target& target : targets()) {
    for (Dtype t : {float16, bfloat16, float32, float64, int16, int32, int64, complex64}) {
      const std::string text = assembly_of(large(elementwise({t}, twice, 2, 1024)), target);
      EXPECT_TRUE(has(text, "movnt") && has(text, "sfence")) << t << " on " << target.cpu << "\n" << text;
    }
    EXPECT_TRUE(has(assembly_of(large(tanhs(3)), target), "movnt")) << "masked loop on " << target.cpu;
    EXPECT_FALSE(has(assembly_of(large(tanhs(20)), target), "movnt")) << "much arithmetic on " << target.cpu;
    const std::pair<const char*, Kernel> none[] = {{"in place", large(b.kernel)}, {"small", tanhs(3)}};
    for (const auto& [what, k] : none) {
      const std::string text = assembly_of(k, target);
      EXPECT_FALSE(has(text, "movnt") || has(text, "sfence")) << what << " on " << target.cpu << "\n" << text;
    }
  }
}

// Tables that differ would give wrong code.
TEST(CodeGenerator, OfAnotherBuildIsRefused) {
  namespace fs = std::filesystem;
  const fs::path good = fs::read_symlink("/proc/self/exe").parent_path() / "libsinter_codegen.so";
  const fs::path bad = fs::temp_directory_path() / str("libsinter_codegen-", getpid(), ".so");
  std::stringstream content;
  content << std::ifstream(good, std::ios::binary).rdbuf();
  std::string bytes = std::move(content).str();
  const std::size_t at = bytes.find(base::build_identity());
  ASSERT_NE(at, std::string::npos);
  bytes[at] = bytes[at] == '0' ? '1' : '0';
  std::ofstream(bad, std::ios::binary) << bytes;
  const std::string paths[] = {bad, good};
  EXPECT_EQ(tests::thrown<DeviceError>([&] { backends::open_codegen(std::span(paths).first(1)); }),
            "codegen: libsinter_codegen.so cannot be opened; got " + bad.string() +
                ": belongs to another build of the library; install the library's own beside it");
  EXPECT_STREQ(backends::open_codegen(paths).build, base::build_identity()) << "goes on to the next";
  fs::remove(bad);
}

// Contraction, reassociation and reciprocals only.
TEST(Images, FastMath) {
  const Kernel k = elementwise({float32, float32}, [](Builder& b, auto& in) {
    return b.compute(Op::Add, float32, b.compute(Op::Multiply, float32, in[0], in[1]), in[1]);
  });
  std::string strict, fast;
  CodegenOptions options;
  options.assembly = &strict;
  backends::codegen().compile(k, backends::x86_target(true), options);
  options.assembly = &fast;
  options.fast_math = true;
  backends::codegen().compile(k, backends::x86_target(true), options);
  EXPECT_EQ(strict.find("vfmadd"), std::string::npos);
  EXPECT_NE(fast.find("vfmadd"), std::string::npos);
}

TEST(Images, CompileOnSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint8_t>> images(4);
  for (std::size_t t = 0; t < images.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 5; ++repeat) images[t] = backends::codegen().compile(chain(9), backends::host_target(), {}).bytes;
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& image : images) EXPECT_EQ(image, images[0]);
}

}  // namespace
}  // namespace sinter::tests
