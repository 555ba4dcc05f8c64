#include "engine/recent.h"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/lanes.h"
#include "engine/compiled.h"

namespace sinter::engine {
namespace {

struct Place {
  detail::Program* program = nullptr;
  std::uint64_t hash = 0;
  std::shared_ptr<Entry> entry;  // with a counter of references of its own
  std::int64_t hits = 0;         // not yet added to the program's
  bool used = false;
  // What might take the place.
  const detail::Program* next_program = nullptr;
  std::uint64_t next_hash = 0;

  void settle() {
    if (hits == 0) return;
    program->calls.fetch_add(hits, std::memory_order_relaxed);
    program->hits.fetch_add(hits, std::memory_order_relaxed);
    entry->traced->hits.fetch_add(hits, std::memory_order_relaxed);
    hits = 0;
  }
  // The program holds the entry: nothing is destroyed here but the counter.
  void clear() {
    settle();
    entry.reset();
    program = nullptr;
    used = false;
  }
};
struct alignas(64) Table {
  ForkMutex lock{LockRank::Recent};
  std::array<Place, 64> places;
  const Place* last = nullptr;  // what the thread used last, if it was found here

  Place& of(const detail::Program* program, std::uint64_t hash) {
    return places[(hash ^ reinterpret_cast<std::uintptr_t>(program) >> 6) % places.size()];
  }
};
// Made when its lane is first used: all of them are 270 kB, whose zeroing and locks a first call would wait for.
Table& table(std::size_t lane) {
  static std::array<std::atomic<Table*>, base::kLanes> all{};  // never destroyed: compiled functions may be static objects
  Table* known = all[lane].load(std::memory_order_acquire);
  if (known) return *known;
  auto* fresh = new Table;  // its lock is fork()'s too and must stay, even if another thread was first
  return all[lane].compare_exchange_strong(known, fresh, std::memory_order_acq_rel) ? *fresh : *known;
}
template <class F>
void for_tables(F&& f) {
  for (std::size_t i = 0; i < base::lanes_used(); ++i) {
    Table& t = table(i);
    std::lock_guard guard(t.lock);
    f(t);
  }
}

}  // namespace

std::shared_ptr<Entry> find_recent(const detail::Program& program, const std::string& key, std::uint64_t hash,
                                   std::span<const Array> inputs) {
  Table& t = table(base::lane());
  std::lock_guard guard(t.lock);
  Place& p = t.of(&program, hash);
  if (p.program != &program || p.hash != hash || p.entry->key != key || !p.entry->traced->same_arrays(inputs)) return nullptr;
  ++p.hits;
  p.used = true;
  t.last = &p;
  return p.entry;
}

void note_recent(detail::Program& program, const std::shared_ptr<Entry>& entry) {
  Table& t = table(base::lane());
  std::lock_guard guard(t.lock);
  t.last = nullptr;
  Place& p = t.of(&program, entry->hash);
  if (p.next_program != &program || p.next_hash != entry->hash) {
    p.next_program = &program;
    p.next_hash = entry->hash;
    return;
  }
  auto own = std::make_shared<std::shared_ptr<Entry>>(entry);
  p.clear();
  p.program = &program;
  p.hash = entry->hash;
  p.entry = std::shared_ptr<Entry>(std::move(own), entry.get());
}

std::shared_ptr<Entry> last_recent(const detail::Program& program) {
  Table& t = table(base::lane());
  std::lock_guard guard(t.lock);
  return t.last && t.last->program == &program ? t.last->entry : nullptr;
}

bool used_recently(const detail::Program& program, const Entry& entry) {
  bool used = false;
  for_tables([&](Table& t) {
    Place& p = t.of(&program, entry.hash);
    if (p.entry.get() == &entry) used = std::exchange(p.used, false) || used;
  });
  return used;
}
void drop_recent(const detail::Program& program, const Entry& entry) {
  for_tables([&](Table& t) {
    Place& p = t.of(&program, entry.hash);
    if (p.entry.get() == &entry) p.clear();
  });
}
void drop_recent(const detail::Program& program) {
  for_tables([&](Table& t) {
    for (Place& p : t.places)
      if (p.program == &program) p.clear();
  });
}
void settle_recent(const detail::Program& program) {
  for_tables([&](Table& t) {
    for (Place& p : t.places)
      if (p.program == &program) p.settle();
  });
}

}  // namespace sinter::engine
