// Walkers over trees (sinter/tree.h), and their messages. Layer: engine.
#include "sinter/tree.h"

#include "base/check.h"
#include "engine/value.h"

namespace sinter::detail {

std::string_view field_name(const char* list, std::size_t i) {
  std::string_view s(list);
  for (; i > 0; --i) s.remove_prefix(s.find(',') + 1);
  s = s.substr(0, s.find(','));
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

void throw_fixed_length() {
  throw Error("compile: the length of a container changed; got elements without a default constructor; give them one");
}
void throw_leaf_count(const char* what, std::size_t got, std::size_t want) {
  throw Error(str(what, ": the trees differ in their number of arrays; got ", got, " for ", want, "; pass trees of one structure"));
}

void eval_all(std::span<const Array> arrays) { engine::evaluate(arrays, "eval"); }

void Collect::array(Array& a) { out_.push_back(&a); }

void Paths::array(Array& a) {
  if (a.valid()) names.push_back(now_);
}
void Paths::enter(std::string_view name, std::size_t i) {
  marks_.push_back(now_.size());
  if (name.empty()) {
    now_ += '[' + std::to_string(i) + ']';
  } else {
    if (!now_.empty()) now_ += '.';
    now_ += name;
  }
}
void Paths::leave() {
  now_.resize(marks_.back());
  marks_.pop_back();
}

}  // namespace sinter::detail
