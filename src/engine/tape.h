// OpenTape: a function transform at work on this thread. Layer: engine.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/value.h"

namespace sinter::engine {

/// Values that depend on the variables of a tape carry its id, the newest one where there are several; while it is open they keep their
/// operands when they are evaluated.
class OpenTape {
 public:
  OpenTape();
  ~OpenTape();
  OpenTape(const OpenTape&) = delete;
  OpenTape& operator=(const OpenTape&) = delete;
  /// The open tape of this id on this thread, or null.
  static OpenTape* find(std::uint64_t id);
  /// An evaluated value that has kept its operands: it drops them when the tape closes.
  void keep(Array evaluated) { evaluated_.push_back(std::move(evaluated)); }

  const std::uint64_t id;

 private:
  OpenTape* outer_;
  std::vector<Array> evaluated_;
};
/// A transform is at work on this thread: compiled functions run as part of it.
bool tape_is_open();

}  // namespace sinter::engine
