// Nodes that show values: their text, and graphs without them. Layer: graph.
#include <algorithm>
#include <cstring>

#include "graph/bodies.h"

namespace sinter::graph {

using ops::Op;

namespace {
constexpr std::size_t kWord = sizeof(std::int64_t);
}

ops::Attrs print_attributes(std::int64_t depth, std::string_view text) {
  ops::Attrs attrs{depth, static_cast<std::int64_t>(text.size())};
  for (std::size_t at = 0; at == 0 || at < text.size(); at += kWord) {
    std::int64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(kWord, text.size() - at));
    attrs.push_back(word);
  }
  return attrs;
}

std::string print_text(const Node& n) {
  std::string text;
  for (std::size_t i = 2; i < n.attrs.size(); ++i) {
    const std::int64_t word = n.attrs[i];
    text.append(reinterpret_cast<const char*>(&word), kWord);
  }
  text.resize(count_attribute(n, 1));
  return text;
}

bool prints(const Graph& g) {  // graphs in graphs are as deep as the user's code nests
  for (Id id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Print || std::ranges::any_of(g[id].bodies, [](const Body& b) { return prints(*b); })) return true;
  return false;
}

Graph without_prints(const Graph& g) {
  if (!prints(g)) return g;
  const Graph stripped = rewrite(g, [](Graph& to, const Node& n) -> Id {
    if (n.op == Op::Get && to[n.in[0]].op == Op::Print) return to[n.in[0]].in[0];
    if (n.bodies.empty()) return kKeep;
    Node copy = n;
    for (Body& b : copy.bodies) b = without_prints(*b);
    return to.add(std::move(copy));
  });
  return rewrite(stripped, [](Graph&, const Node&) { return kKeep; });  // what nothing reads any more
}

}  // namespace sinter::graph
