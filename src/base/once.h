// once: what is made when it is first asked for, and never destroyed. Layer: base.
//
// As a static in a function, but for fork(): a child has no other threads, so a static that one of them was just making would never be made
// there, and whoever asks for it would wait for ever. Here nobody waits: threads that ask at once make it at once, and one of them wins.
#pragma once
#include <atomic>
#include <memory>

namespace sinter::base {

/// What `place` holds; make() puts it there, and depends on nothing.
template <class T, class Make>
T& once(std::atomic<T*>& place, Make make) {
  if (T* made = place.load(std::memory_order_acquire)) return *made;
  auto mine = std::make_unique<T>(make());
  T* other = nullptr;
  return place.compare_exchange_strong(other, mine.get(), std::memory_order_acq_rel) ? *mine.release() : *other;
}

}  // namespace sinter::base
