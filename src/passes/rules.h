// Rules: simplify_rules.def as data, for the simplify pass and for the test that proves each rule. Layer: passes.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace sinter::passes {

enum class When : std::uint8_t { exact, fast };
enum class Dtypes : std::uint8_t { Any, Real, Float, Whole };

/// A tree in postfix order: the last item is its root. Wildcards 0 to 3 are x, y, z and c.
struct Pattern {
  enum class Is : std::uint8_t { Wildcard, Literal, Operation };
  struct Item {
    Is is;
    std::uint8_t wildcard = 0;
    double literal = 0;
    ops::Op op{};
    std::array<int, 3> in = {-1, -1, -1};
  };
  std::vector<Item> items;

  Pattern(double literal) : items{{Is::Literal, 0, literal}} {}
  explicit Pattern(Item item) : items{item} {}
  int root() const { return static_cast<int>(items.size()) - 1; }
};
inline constexpr int kWildcards = 4, kCondition = 3;

struct Rule {
  std::string_view name;
  When when;
  Dtypes dtypes;
  Pattern lhs, rhs;
};
std::span<const Rule> rules();

/// Whether the rule holds where x has this dtype.
bool applies(const Rule& rule, Dtype t);
/// The bits of a literal in a dtype; none if the dtype does not hold the value.
std::optional<std::uint64_t> literal_bits(double v, Dtype t);

using Bindings = std::array<graph::Id, kWildcards>;  // kKeep: not bound
/// Matches a node, whose operands are in g, with the rule's lhs; respects dtypes.
bool match(const graph::Graph& g, const graph::Node& n, const Rule& rule, Bindings& bindings);
/// The rule's rhs as a node of g (added), for bindings of its wildcards. `t` is the dtype of literals.
graph::Id build(graph::Graph& g, const Pattern& rhs, const Bindings& bindings, Dtype t);

}  // namespace sinter::passes
