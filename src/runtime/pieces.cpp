#include "runtime/pieces.h"

#include <sys/mman.h>

#include <algorithm>

#include "runtime/buffer.h"

namespace sinter::runtime {

void* map_huge(std::size_t bytes) {
  // Over-map and trim, so that the block starts on a huge page.
  void* raw = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto start = reinterpret_cast<std::uintptr_t>(raw), aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > start) munmap(raw, aligned - start);
  if (std::size_t tail = start + kHugePage - aligned; tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

void* Pieces::take(std::size_t bytes) {
  constexpr std::size_t kMostOpen = 8;  // the search takes no time; what room older pages have is lost
  auto fits = [&](std::uintptr_t page) { return pages_.at(page).used + bytes <= kHugePage; };
  auto at = std::find_if(open_.rbegin(), open_.rend(), fits);
  if (at == open_.rend()) {
    if (open_.size() == kMostOpen) open_.erase(open_.begin());
    void* page = map_huge(kHugePage);
    if (!page) return nullptr;
    try {
      open_.reserve(kMostOpen);
      pages_.emplace(reinterpret_cast<std::uintptr_t>(page), Page{});
    } catch (const std::bad_alloc&) {
      munmap(page, kHugePage);
      return nullptr;
    }
    open_.push_back(reinterpret_cast<std::uintptr_t>(page));
    at = open_.rbegin();
  }
  Page& page = pages_.at(*at);
  void* piece = reinterpret_cast<void*>(*at + page.used);
  page.used += Buffer::aligned(bytes);
  ++page.pieces;
  return piece;
}

void Pieces::give(void* piece, std::size_t bytes) {
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(piece), at = begin / kHugePage * kHugePage;
  if (--pages_.at(at).pieces > 0) {
    const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage, last = (begin + bytes) / kPage * kPage;
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    return;
  }
  pages_.erase(at);
  std::erase(open_, at);
  munmap(reinterpret_cast<void*>(at), kHugePage);
}

}  // namespace sinter::runtime
