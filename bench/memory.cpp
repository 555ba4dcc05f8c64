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

// Whole huge pages that nobody has touched, until `unmap`, or the process ends.
struct Pages {
  explicit Pages(std::int64_t count) : count(count), mapped(static_cast<std::size_t>((count + 1) * kPage)) {
    p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, mapped, MADV_HUGEPAGE);
    begin = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(p) + kPage - 1) / kPage * kPage);
  }
  void unmap() { munmap(p, mapped); }
  std::int64_t count;
  std::size_t mapped;
  void* p;
  char* begin;
};
float* map(std::int64_t lines) {
  Pages pages((lines * 64 + kPage - 1) / kPage);
  std::memset(pages.begin, 1, static_cast<std::size_t>(pages.count * kPage));
  return reinterpret_cast<float*>(pages.begin);
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

double Memory::fresh_ms(std::int64_t bytes) {
  const std::int64_t count = bytes / kPage;  // what is no whole page counts as nothing
  double least = count == 0 ? 0 : 1e9;
  for (int round = 0; round < 3 && count > 0; ++round) {
    const double start = now_ms();
    Pages pages(count);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
      char* page = pages.begin + i * kPage;
      if (madvise(page, kPage, MADV_POPULATE_WRITE) != 0) std::memset(page, 0, kPage);  // before Linux 5.14
    }
    least = std::min(least, now_ms() - start);
    pages.unmap();
  }
  return least;
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
