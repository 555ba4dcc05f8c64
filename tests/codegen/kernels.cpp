#include "codegen/kernels.h"

#include <cmath>
#include <cstring>

namespace sinter::tests {

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> t{backends::host_target()};
    if (t[0].avx512) t.push_back(backends::x86_target(false));
    return t;
  }();
  return all;
}

kernel::Block Launch::block() {
  kernel::Block words;
  for (auto& b : buffers) words.push_back(reinterpret_cast<std::uint64_t>(b.data()));
  for (std::int64_t i : integers) words.push_back(static_cast<std::uint64_t>(i));
  words.insert(words.end(), scalars.begin(), scalars.end());
  return words;
}

std::vector<std::uint8_t> random_elements(Dtype t, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed * 77 + static_cast<std::uint64_t>(t));
  std::normal_distribution<double> normal(0, 2);
  const std::size_t parts = is_complex(t) ? 2 : 1;
  std::vector<std::uint8_t> bytes(count * static_cast<std::size_t>(size_of(t)));
  const std::size_t size = static_cast<std::size_t>(size_of(t)) / parts;
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -3e-310, 1e30};
  for (std::size_t i = 0; i < count * parts; ++i) {
    std::uint64_t word = random() >> (random() % 2 ? 0 : 57);
    if (is_floating(t) || is_complex(t)) {
      const double v = random() % 8 == 0 ? special[random() % std::size(special)] : normal(random);
      const auto f = static_cast<float>(v);
      std::uint32_t w;
      std::memcpy(&w, &f, 4);
      word = w;
      if (t == float64) std::memcpy(&word, &v, 8);
      if (t == bfloat16) word = w >> 16;
      if (t == float16) {
        const auto h = static_cast<_Float16>(f);
        std::memcpy(&word, &h, 2);
      }
    }
    std::memcpy(&bytes[i * size], &word, size);
  }
  return bytes;
}

const runtime::MappedImages& image_of(const Kernel& k, const Target& target, const CodegenOptions& options) {
  static std::map<std::string, std::unique_ptr<runtime::MappedImages>> images;
  auto& image = images[str(kernel::print(k), target.cpu, options.level, options.fast_math, options.brief)];
  if (!image) image = std::make_unique<runtime::MappedImages>(backends::codegen().compile(k, target, options));
  return *image;
}

namespace {

double real(Dtype t, const std::uint8_t* at) {
  if (t == float64) return *reinterpret_cast<const double*>(at);
  if (t == float16) return static_cast<double>(*reinterpret_cast<const _Float16*>(at));
  std::uint32_t word = 0;
  std::memcpy(t == bfloat16 ? reinterpret_cast<std::uint8_t*>(&word) + 2 : reinterpret_cast<std::uint8_t*>(&word), at,
              t == bfloat16 ? 2 : 4);
  float f;
  std::memcpy(&f, &word, 4);
  return f;
}

}  // namespace

void expect_equal(Dtype t, const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  if (got == expected) return;
  const std::size_t size = is_complex(t) ? 4 : static_cast<std::size_t>(size_of(t));
  for (std::size_t at = 0; at < got.size(); at += size) {
    if (std::memcmp(&got[at], &expected[at], size) == 0) continue;
    const bool floating = is_floating(t) || is_complex(t);
    if (floating && std::isnan(real(t, &got[at])) && std::isnan(real(t, &expected[at]))) continue;
    std::uint64_t g = 0, e = 0;
    std::memcpy(&g, &got[at], size);
    std::memcpy(&e, &expected[at], size);
    FAIL() << what << ": element " << at / size << " of " << t << " is " << std::hex << g << ", not " << e << std::dec
           << (floating ? str(" (", real(t, &got[at]), ", not ", real(t, &expected[at]), ")") : "");
  }
}

namespace {

enum class Way { Plain, Streams, StreamsUnaligned };

// With buffers at a multiple of 64 bytes, or an element behind one: only whole, aligned vectors go past the caches.
Launch ran(const Kernel& k, const Launch& launch, runtime::KernelEntry entry, Way way) {
  Launch got = launch;
  kernel::Block block = got.block();
  std::vector<std::uint8_t*> starts;
  for (std::size_t b = 0; b < got.buffers.size(); ++b) {
    std::vector<std::uint8_t>& memory = got.buffers[b];
    memory.resize(memory.size() + 128);
    const std::uintptr_t line = (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64;
    starts.push_back(reinterpret_cast<std::uint8_t*>(line) + (way == Way::StreamsUnaligned ? size_of(k.buffers[b].dtype) : 0));
    std::copy(launch.buffers[b].begin(), launch.buffers[b].end(), starts[b]);
    block[b] = reinterpret_cast<std::uint64_t>(starts[b]);
  }
  entry(0, launch.iterations, block.data(), way == Way::Plain ? 0 : way == Way::Streams ? ~kernel::kNear : ~std::uint64_t{0});
  for (std::size_t b = 0; b < got.buffers.size(); ++b)
    got.buffers[b] = std::vector<std::uint8_t>(starts[b], starts[b] + launch.buffers[b].size());
  return got;
}

}  // namespace

Kernel large(Kernel k) {
  for (std::size_t b = 0; b < k.buffers.size(); ++b)
    k.buffers[b].large = k.buffers[b].written && !k.buffers[b].scratch && !kernel::reads(k, b);
  return k;
}

void check_kernel(const Kernel& k, const Launch& launch, const std::string& what) {
  kernel::verify(k);
  for (const Target& target : targets()) {
    Launch expected = launch;
    kernel::interpret(k, target.lanes, 0, launch.iterations, expected.block().data());
    const CodegenOptions all[] = {{.level = 0}, {.level = 0, .brief = true}, {.level = 2}};
    for (const CodegenOptions& options : all)
      for (Way way : {Way::Plain, Way::Streams, Way::StreamsUnaligned}) {
        const Launch got = ran(k, launch, image_of(way == Way::Plain ? k : large(k), target, options).entry(), way);
        for (std::size_t b = 0; b < got.buffers.size(); ++b) {
          expect_equal(k.buffers[b].dtype, got.buffers[b], expected.buffers[b],
                       str(k.name, " ", what, " on ", target.cpu, " level ", options.level, options.brief ? " brief way " : " way ",
                           static_cast<int>(way), " buffer ", b));
          if (testing::Test::HasFailure()) return;
        }
      }
  }
}

Kernel elementwise(const std::vector<Dtype>& in, const std::function<Ref(Builder&, const std::vector<Ref>&)>& f, int unroll, int prefetch) {
  Builder b;
  std::vector<Ref> values;
  for (Dtype t : in) b.buffer(t, false);
  const Ref n = b.arg();
  const Ref i = b.loop(LoopKind::Vector, b.index(0), n, unroll, prefetch);
  for (std::size_t x = 0; x < in.size(); ++x) values.push_back(b.load(static_cast<int>(x), i));
  const Ref result = f(b, values);
  const Ref out = b.buffer(kernel::result_dtype(b.kernel, result), true);
  b.store(static_cast<int>(out), i, result);
  b.end();
  return std::move(b.kernel);
}

}  // namespace sinter::tests
