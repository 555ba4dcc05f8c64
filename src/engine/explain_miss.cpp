// Why a call found no entry, and the text of explain(). Layer: engine.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/check.h"
#include "engine/compiled.h"
#include "engine/tracing.h"

namespace sinter::engine {
namespace {

constexpr std::size_t kMostDifferences = 4;

// `float32[32,784]` of each array, from the end of a key; `changing` sizes by their symbols.
std::vector<std::string> array_types(std::string_view key, std::size_t types_at, std::size_t sizes_at,
                                     std::span<const std::size_t> changing = {}) {
  const std::vector<std::int64_t> sizes = sizes_in(key.substr(sizes_at));
  std::vector<std::string> types;
  std::size_t place = 0, symbol = 0;
  for (std::size_t at = types_at; at < sizes_at; at += 2) {
    std::string s = name(static_cast<Dtype>(key[at]));
    const int rank = static_cast<unsigned char>(key[at + 1]);
    s += '[';
    for (int i = 0; i < rank; ++i, ++place) {
      if (i) s += ',';
      if (symbol < changing.size() && changing[symbol] == place)
        s += str('s', symbol++);
      else
        s += std::to_string(sizes[place]);
    }
    types.push_back(s + ']');
  }
  return types;
}

// A tree as lines: path and text of every leaf and length.
class Describe final : public detail::Paths {
 public:
  Describe(std::string root, std::span<const std::string> types) : Paths(std::move(root)), types_(types) {}
  std::vector<Difference> lines;
  std::size_t used() const { return at_; }  // types
  void array(Array& a) override {
    if (a.valid() && at_ < types_.size())
      add(types_[at_++]);
    else
      add("unset");
  }
  void number(void* p, std::size_t bytes, Leaf kind) override {
    auto as = [p]<class T>(T v) {
      std::memcpy(&v, p, sizeof v);
      return v;
    };
    if (kind == Leaf::Dtype)
      add(name(as(Dtype{})));
    else if (kind == Leaf::Bool)
      add(as(false) ? "true" : "false");
    else if (kind == Leaf::Floating)
      add(bytes == 4 ? str(as(0.0f)) : str(as(0.0)));
    else if (kind == Leaf::Integer)
      add(std::to_string(bytes == 1   ? as(std::int8_t{})
                         : bytes == 2 ? as(std::int16_t{})
                         : bytes == 4 ? as(std::int32_t{})
                                      : as(std::int64_t{})));
    else
      add(std::to_string(bytes == 1   ? as(std::uint8_t{})
                         : bytes == 2 ? as(std::uint16_t{})
                         : bytes == 4 ? as(std::uint32_t{})
                                      : as(std::uint64_t{})));
  }
  void text(std::string& s) override { add('"' + s + '"'); }
  void shape(Shape& s) override { add(str(s)); }
  std::size_t length(std::size_t n) override {
    add(str(n, n == 1 ? " element" : " elements"));
    return n;
  }

 private:
  void add(std::string text) { lines.push_back({now_, std::move(text)}); }
  std::span<const std::string> types_;
  std::size_t at_ = 0;
};

// The paths of the arrays that are set.
class NameArrays final : public detail::Paths {
 public:
  NameArrays(std::string root, std::vector<std::string>& names) : Paths(std::move(root)), names_(names) {}
  void array(Array& a) override {
    if (a.valid()) names_.push_back(now_);
  }
  void number(void*, std::size_t, Leaf) override {}
  void text(std::string&) override {}
  void shape(Shape&) override {}
  std::size_t length(std::size_t n) override { return n; }

 private:
  std::vector<std::string>& names_;
};

std::string root_name(const Frame& f, std::size_t slot) {
  std::size_t parameters = f.slots.size() - f.captured.size();
  if (slot >= parameters) return str("captured ", slot - parameters);
  return str(f.slots[slot]->state ? "state " : "input ", slot);
}

void compare(const std::vector<Difference>& before, const std::vector<Difference>& now, std::vector<Difference>& out) {
  std::map<std::string_view, std::string_view> old;
  for (const Difference& d : before) old.emplace(d.where, d.what);
  for (const Difference& d : now) {
    auto it = old.find(d.where);
    if (it == old.end() || it->second != d.what) out.push_back({d.where, str(it == old.end() ? "none" : it->second, " -> ", d.what)});
    if (it != old.end()) old.erase(it);
  }
  for (const Difference& d : before)
    if (old.erase(d.where)) out.push_back({d.where, d.what + " -> none"});
}

const char* mode_name(char mode) {
  switch (static_cast<CompileMode>(mode)) {
    case CompileMode::enabled: return "enabled";
    case CompileMode::disabled: return "disabled";
    case CompileMode::no_simplify: return "no_simplify";
    case CompileMode::no_fuse: return "no_fuse";
  }
  return "unknown";
}

}  // namespace

std::vector<std::int64_t> sizes_in(std::string_view bytes) {
  std::vector<std::int64_t> sizes(bytes.size() / sizeof(std::int64_t));
  if (!sizes.empty()) std::memcpy(sizes.data(), bytes.data(), bytes.size());
  return sizes;
}

bool Traced::same_arrays(std::span<const Array> inputs) const {
  return std::all_of(same.begin(), same.end(), [&](const auto& s) { return inputs[s.first].get() == s.second.get(); });
}

std::vector<std::int64_t> Traced::sizes_of(std::string_view other_key) const {
  const std::vector<std::int64_t> all = sizes_in(other_key.substr(sizes_at));
  std::vector<std::int64_t> sizes;
  for (std::size_t place : changing) sizes.push_back(all[place]);
  return sizes;
}

bool Traced::serves(std::string_view other_key) const {
  const std::vector<std::int64_t> mine = sizes_in(std::string_view(key).substr(sizes_at)), other = sizes_in(other_key.substr(sizes_at));
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i] != other[i] && !std::binary_search(changing.begin(), changing.end(), i)) return false;
  const std::vector<std::int64_t> sizes = sizes_of(other_key);
  if (graph) return graph->hold(guards, sizes);
  const auto numbers = symbols->evaluate(sizes);
  return numbers && base::Symbols::hold(guards, *numbers);
}

std::vector<std::string> names_of_inputs(const Frame& f) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < f.slots.size(); ++i) {
    NameArrays name(root_name(f, i), names);
    f.slots[i]->walk_user(name);
  }
  return names;
}

std::vector<Difference> differences(const Frame& f, const Entry& entry) {
  const Traced& e = *entry.traced;
  std::vector<Difference> out;
  if (f.key[0] != e.key[0]) out.push_back({"compile mode", str(mode_name(e.key[0]), " -> ", mode_name(f.key[0]))});
  if (f.slots.size() != e.texts.size()) {
    out.push_back({"arguments", str(e.texts.size(), " -> ", f.slots.size())});
    return out;
  }
  std::size_t header = f.slots.empty() ? f.types_at : f.slots[0]->text, old_header = e.texts.empty() ? e.types_at : e.texts[0].first;
  if (std::string_view(f.key).substr(1, header - 1) != std::string_view(e.key).substr(1, old_header - 1)) {
    out.push_back({"arguments", "other C++ types"});
    return out;
  }
  std::vector<std::string> before = array_types(entry.key, e.types_at, e.sizes_at), now = array_types(f.key, f.types_at, f.sizes_at);
  std::size_t old_at = 0;
  for (std::size_t i = 0; i < f.slots.size(); ++i) {
    detail::Slot& s = *f.slots[i];
    std::string root = root_name(f, i);
    std::string_view text = std::string_view(f.key).substr(s.text, s.text_end - s.text);
    std::string_view old_text = std::string_view(e.key).substr(e.texts[i].first, e.texts[i].second - e.texts[i].first);
    Describe mine(root, std::span(now).subspan(s.leaves));
    s.walk_user(mine);
    Describe old(root, std::span(before).subspan(std::min(old_at, before.size())));
    if (text == old_text) {
      s.walk_user(old);
    } else if (s.copyable) {
      // The old tree, made from the old structure: any array will do as a leaf.
      s.make_copy();
      std::vector<Array> leaves(before.size(), f.inputs.empty() ? Array(0) : f.inputs[0]);
      Fill fill(old_text, leaves);
      s.walk_copy(fill);
      s.walk_copy(old);
      s.drop_copy();
    } else {
      out.push_back({root, "another structure"});
      return out;
    }
    compare(old.lines, mine.lines, out);
    old_at += old.used();
  }
  if (out.size() > kMostDifferences) {
    std::size_t more = out.size() - kMostDifferences;
    out.resize(kMostDifferences);
    out.push_back({"", str("and ", more, " more")});
  }
  return out;
}

}  // namespace sinter::engine

namespace sinter::detail {

std::string explain_callee(const Callee& callee) {
  const Program& program = *callee.program;
  std::ostringstream out;
  print_callee(out, callee) << "\nlast miss: " << program.last_miss() << '\n';
  std::size_t number = 0;
  const Program::Contents contents = program.entries();
  for (const std::shared_ptr<engine::Traced>& t : contents.traced) {
    out << "entry " << number++ << ": (";
    const char* separator = "";
    for (const std::string& type : engine::array_types(t->key, t->types_at, t->sizes_at, t->changing)) {
      out << separator << type;
      separator = ", ";
    }
    out << "), hits: " << t->hits << (t->draws ? ", draws random numbers" : "") << '\n';
    const auto e = std::find_if(contents.entries.begin(), contents.entries.end(), [&](const auto& made) { return made->traced == t; });
    const bool graph = e != contents.entries.end() && (*e)->graph;
    std::istringstream lines(graph      ? (*e)->graph->explain()
                             : t->graph ? "no entry for its sizes is left"
                                        : "nothing is computed: every output is an input or a constant");
    for (std::string line; std::getline(lines, line);) out << "  " << line << '\n';
    for (const std::string& note : t->notes) out << "  " << note << '\n';
  }
  return out.str();
}

}  // namespace sinter::detail
