// Reading and writing trees as structure and arrays (compiled.h). Layer: engine.
#include <cstring>

#include "engine/compiled.h"

namespace sinter::engine {

void Fill::take(void* p, std::size_t n) {
  std::memcpy(p, structure_.data(), n);
  structure_.remove_prefix(n);
}
void Fill::array(Array& a) {
  char set;
  take(&set, 1);
  a = set == 'A' && !arrays_.empty() ? arrays_[at_++] : Array();
}
void Fill::number(void* p, std::size_t bytes, Leaf) { take(p, bytes); }
void Fill::text(std::string& s) {
  s.resize(length(0));
  take(s.data(), s.size());
}
void Fill::shape(Shape& s) {
  std::size_t n = length(0);
  s = Shape();
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t v;
    take(&v, sizeof v);
    s.push_back(Dim(v));
  }
}
std::size_t Fill::length(std::size_t) {
  std::size_t n;
  take(&n, sizeof n);
  return n;
}

void Read::array(Array& a) {
  structure_.push_back(a.valid() ? 'A' : 'u');
  if (arrays_ && a.valid()) arrays_->push_back(a);
  if (targets_) targets_->push_back(&a);
}
void Read::number(void* p, std::size_t bytes, Leaf) { structure_.append(static_cast<const char*>(p), bytes); }
void Read::text(std::string& s) {
  length(s.size());
  structure_ += s;
}
void Read::shape(Shape& s) {
  length(s.size());
  for (const Dim& d : s) {
    std::int64_t v = d;
    number(&v, sizeof v, Leaf::Integer);
  }
}
std::size_t Read::length(std::size_t n) {
  structure_.append(reinterpret_cast<const char*>(&n), sizeof n);
  return n;
}

void Frame::clear() {
  key.clear();
  inputs.clear();
  targets.clear();
  results.clear();
  rebuilt.clear();
  slots.clear();
  captured.clear();
  aliases.clear();
}

}  // namespace sinter::engine
