// Recent: the entries that each thread used last, so that threads that call at the same time share no lock and no counter. Layer: engine.
//
// A table for each lane (base/lanes.h). What is in it is in the cache of its program, too: a program takes an entry out of all of them
// when it drops it. Hits are counted in the tables, and added to the program's counters when somebody asks for those.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sinter/array.h"

namespace sinter::detail {
class Program;
}

namespace sinter::engine {

struct Entry;

/// The entry, if the calling thread used it lately: counted as a call and a hit.
std::shared_ptr<Entry> find_recent(const detail::Program& program, const std::string& key, std::uint64_t hash,
                                   std::span<const Array> inputs);

// The following are called under the program's lock.

/// Notes that the calling thread used an entry of the program; it gets a place in the table at the second time in a row.
void note_recent(detail::Program& program, const std::shared_ptr<Entry>& entry);
/// The entry that the calling thread used last, if that was one of the program that its table had; else null.
std::shared_ptr<Entry> last_recent(const detail::Program& program);
/// Whether a thread used the entry since this was asked last.
bool used_recently(const detail::Program& program, const Entry& entry);
/// Takes an entry, or all of a program, out of all tables.
void drop_recent(const detail::Program& program, const Entry& entry);
void drop_recent(const detail::Program& program);
/// Adds the hits of all tables to the program's counters.
void settle_recent(const detail::Program& program);

}  // namespace sinter::engine
