// The memory loops. Built for the machine it runs on (-march=native): vectors of 64 bytes are one register where the processor has them.
#include <immintrin.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "bench.h"

namespace bench {

namespace {

typedef float Line __attribute__((vector_size(64)));
constexpr std::int64_t kPage = 1 << 21;

float* map(std::int64_t lines) {
  std::size_t bytes = static_cast<std::size_t>((lines * 64 + 2 * kPage - 1) / kPage * kPage + kPage);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  madvise(p, bytes, MADV_HUGEPAGE);
  std::memset(p, 1, bytes);
  auto aligned = (reinterpret_cast<std::uintptr_t>(p) + kPage - 1) / kPage * kPage;
  return reinterpret_cast<float*>(aligned);  // the process ends with its mappings
}

void stream(Line* to, const Line* from) {
#ifdef __AVX512F__
  _mm512_stream_ps(reinterpret_cast<float*>(to), _mm512_load_ps(reinterpret_cast<const float*>(from)));
#else
  for (int i = 0; i < 16; i += 4) _mm_stream_ps(reinterpret_cast<float*>(to) + i, _mm_load_ps(reinterpret_cast<const float*>(from) + i));
#endif
}

}  // namespace

Memory::Memory(std::int64_t bytes) : lines_((bytes / 128 + 3) / 4 * 4), from_(map(lines_)), to_(map(lines_)) {}
Memory::~Memory() = default;

void Memory::copy() {
  const Line* from = reinterpret_cast<const Line*>(from_);
  Line* to = reinterpret_cast<Line*>(to_);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < lines_; i += 4) {
    Line a = from[i], b = from[i + 1], c = from[i + 2], d = from[i + 3];
    to[i] = a, to[i + 1] = b, to[i + 2] = c, to[i + 3] = d;
    asm volatile("" ::: "memory");  // keeps it a loop: a call of memcpy would choose its own stores
  }
}

void Memory::copy_nontemporal() {
  const Line* from = reinterpret_cast<const Line*>(from_);
  Line* to = reinterpret_cast<Line*>(to_);
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < lines_; ++i) stream(to + i, from + i);
    _mm_sfence();
  }
}

void Memory::read() {
  float total = 0;
  for (const float* buffer : {from_, to_}) {
    const Line* from = reinterpret_cast<const Line*>(buffer);
#pragma omp parallel reduction(+ : total)
    {
      Line sums[4] = {};
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < lines_; i += 4) {
        for (int k = 0; k < 4; ++k) sums[k] += from[i + k];
      }
      for (int k = 0; k < 4; ++k) total += sums[k][0];
    }
  }
  asm volatile("" ::"r"(total));
}

}  // namespace bench
