// Names, roles, counts, tables and files of models. Layer: nn.
#include "sinter/nn/module.h"

#include <algorithm>

#include "base/check.h"
#include "sinter/io.h"

namespace sinter::nn::detail {

bool Leaf::trainable() const {
  if (!array->valid() || !(is_floating(array->dtype()) || is_complex(array->dtype()))) return false;
  return role == nullptr || *role == Role::trainable;
}

void LeafWalker::array(Array& a) { leaves.push_back({now_, &a}); }

void LeafWalker::number(void* p, std::size_t bytes, sinter::Leaf kind) {
  if (leaves.empty() || bytes != sizeof(Role) || kind != sinter::Leaf::Unsigned) return;
  // The role follows its array: `weight`, then `weight.role`.
  Leaf& last = leaves.back();
  const std::size_t n = last.name.size();
  if (now_.size() == n + (n == 0 ? 4 : 5) && now_.starts_with(last.name) && now_.ends_with(n == 0 ? "role" : ".role"))
    last.role = static_cast<Role*>(p);
}

void ModeWalker::number(void* p, std::size_t, sinter::Leaf kind) {
  if (kind == sinter::Leaf::Bool && field_ == "training") *static_cast<bool*>(p) = training_;
}

namespace {

// * stands for any text, ? for one character.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++mark;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string names_of(const std::vector<Leaf>& leaves) {
  std::string text;
  std::size_t shown = 0;
  for (const Leaf& leaf : leaves) {
    if (shown++ == 20) return text + ", ...";
    text += (text.empty() ? "" : ", ") + leaf.name;
  }
  return text.empty() ? "none" : text;
}

std::string described(const Array& a) { return str(a.dtype(), " ", a.shape()); }

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

}  // namespace

void set_role(const char* what, const std::vector<Leaf>& leaves, const std::string& pattern, Role from, Role to) {
  std::vector<Role*> chosen;
  bool found = false;
  for (const Leaf& leaf : leaves) {
    if (!matches(pattern, leaf.name)) continue;
    if (leaf.role == nullptr) {
      if (leaf.trainable()) throw Error(str(what, ": a plain Array has no role; got ", leaf.name, "; declare it as nn::Parameter"));
      continue;
    }
    found = true;
    if (*leaf.role == from) chosen.push_back(leaf.role);
  }
  if (!found) throw Error(str(what, ": no parameter matches; got \"", pattern, "\"; the names are ", names_of(leaves)));
  for (Role* role : chosen) *role = to;
}

std::int64_t count(const std::vector<Leaf>& leaves, bool trainable_only) {
  std::int64_t total = 0;
  for (const Leaf& leaf : leaves)
    if (leaf.array->valid() && (leaf.trainable() || !trainable_only)) total += leaf.array->size();
  return total;
}

std::string summary(const std::vector<Leaf>& leaves) {
  std::vector<std::array<std::string, 5>> rows{{"parameter", "shape", "dtype", "count", "role"}};
  std::int64_t bytes = 0;
  for (const Leaf& leaf : leaves) {
    if (!leaf.array->valid()) continue;
    const Array& a = *leaf.array;
    bytes += a.nbytes();
    rows.push_back({leaf.name, str(a.shape()), str(a.dtype()), with_commas(a.size()),
                    leaf.trainable()                                     ? "trainable"
                    : leaf.role != nullptr && *leaf.role == Role::frozen ? "frozen"
                                                                         : "buffer"});
  }
  std::array<std::size_t, 5> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  auto line = [&](const std::array<std::string, 5>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      text += i == 3 ? space + row[i] : i == 4 ? row[i] : row[i] + space;
      text += i == 4 ? "\n" : "  ";
    }
  };
  line(rows[0]);
  std::size_t width = 8;
  for (std::size_t w : widths) width += w;
  text += std::string(width, '-') + '\n';
  for (std::size_t i = 1; i < rows.size(); ++i) line(rows[i]);
  text += std::string(width, '-') + '\n';
  const std::int64_t all = count(leaves, false), trained = count(leaves, true);
  return text + str(with_commas(all), " elements, ", with_commas(trained), " trainable, ", with_commas(bytes), " bytes\n");
}

void save(const std::string& path, const std::vector<Leaf>& leaves, const std::map<std::string, std::string>& metadata) {
  std::map<std::string, Array> arrays;
  for (const Leaf& leaf : leaves)
    if (leaf.array->valid() && !arrays.emplace(leaf.name.empty() ? "array" : leaf.name, *leaf.array).second)
      throw Error(str("save: two arrays have one name; got ", leaf.name, "; rename a field"));
  save_safetensors(path, arrays, metadata);
}

std::map<std::string, std::string> load(const std::string& path, const std::vector<Leaf>& leaves) {
  Safetensors file = load_safetensors(path);
  std::string missing, wrong, unexpected;
  std::vector<Array> found;
  for (const Leaf& leaf : leaves) {
    if (!leaf.array->valid()) continue;
    const auto at = file.arrays.find(leaf.name.empty() ? "array" : leaf.name);
    if (at == file.arrays.end()) {
      missing += str(missing.empty() ? "" : ", ", leaf.name);
      continue;
    }
    if (at->second.dtype() != leaf.array->dtype() || !(at->second.shape() == leaf.array->shape()))
      wrong += str(wrong.empty() ? "" : ", ", leaf.name, " is ", described(at->second), " for ", described(*leaf.array));
    found.push_back(std::move(at->second));
    file.arrays.erase(at);
  }
  for (const auto& [name, array] : file.arrays) unexpected += str(unexpected.empty() ? "" : ", ", name);
  if (!missing.empty() || !wrong.empty() || !unexpected.empty()) {
    std::string text;
    for (const auto& [title, names] : {std::pair("missing: ", &missing), {"unexpected: ", &unexpected}, {"of another kind: ", &wrong}})
      if (!names->empty()) text += str(text.empty() ? "" : "; ", title, *names);
    throw IoError(str("load: the file does not fit the model; got \"", path, "\"; ", text));
  }
  std::size_t next = 0;
  for (const Leaf& leaf : leaves)
    if (leaf.array->valid()) *leaf.array = std::move(found[next++]);
  return file.metadata;
}

}  // namespace sinter::nn::detail
