#include "passes/rules.h"

#include <bit>

#include "base/once.h"
#include "base/symbols.h"
#include "graph/build.h"
#include "ops/elements.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

// The functions of elementwise.def on patterns, in which the table's columns are written.
namespace pattern {

Pattern make(Op op, std::initializer_list<const Pattern*> operands) {
  Pattern p(0.0);
  p.items.clear();
  Pattern::Item root{.is = Pattern::Is::Operation, .op = op};
  std::size_t n = 0;
  for (const Pattern* operand : operands) {
    const int base = static_cast<int>(p.items.size());
    for (Pattern::Item item : operand->items) {
      for (int& in : item.in) in += in >= 0 ? base : 0;
      p.items.push_back(item);
    }
    root.in[n++] = p.root();
  }
  p.items.push_back(root);
  return p;
}

#define OP1(Name, function, ...) \
  [[maybe_unused]] Pattern function(const Pattern& a) { return make(Op::Name, {&a}); }
#define OP2(Name, function, ...) \
  [[maybe_unused]] Pattern function(const Pattern& a, const Pattern& b) { return make(Op::Name, {&a, &b}); }
#define OP3(Name, function, ...) \
  [[maybe_unused]] Pattern function(const Pattern& a, const Pattern& b, const Pattern& c) { return make(Op::Name, {&a, &b, &c}); }
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3

std::vector<Rule> read_table() {
  auto wildcard = [](std::uint8_t i) { return Pattern(Pattern::Item{.is = Pattern::Is::Wildcard, .wildcard = i}); };
  [[maybe_unused]] const Pattern x = wildcard(0), y = wildcard(1), z = wildcard(2), c = wildcard(kCondition);
  std::vector<Rule> table;
#define RULE(name, when, dtypes, lhs, rhs) table.push_back({#name, When::when, Dtypes::dtypes, lhs, rhs});
#include "passes/simplify_rules.def"
#undef RULE
  return table;
}

}  // namespace pattern

// Literals of the table in every dtype, made once.
struct LiteralBits {
  double value;
  std::array<std::optional<std::uint64_t>, kDtypeCount> bits;
};
LiteralBits make_literal(double v) {
  LiteralBits l{v, {}};
  const std::uint64_t word = std::bit_cast<std::uint64_t>(v);
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto t = static_cast<Dtype>(i);
    std::uint64_t bits = 0, back = 0;
    ops::convert_elements(Dtype::float64, t, {&word, 1}, {&bits, 1});
    ops::convert_elements(t, Dtype::float64, {&bits, 1}, {&back, 1});
    if (std::bit_cast<double>(back) == v) l.bits[static_cast<std::size_t>(i)] = bits;
  }
  return l;
}
const LiteralBits* find_literal(double v) {
  static constinit std::atomic<std::vector<LiteralBits>*> place{nullptr};
  const std::vector<LiteralBits>& table = base::once(place, [] {
    std::vector<LiteralBits> made;
    for (const Rule& r : rules()) {
      for (const Pattern* p : {&r.lhs, &r.rhs}) {
        for (const Pattern::Item& i : p->items) {
          if (i.is == Pattern::Is::Literal) made.push_back(make_literal(i.literal));
        }
      }
    }
    return made;
  });
  for (const LiteralBits& l : table) {
    if (std::bit_cast<std::uint64_t>(l.value) == std::bit_cast<std::uint64_t>(v)) return &l;
  }
  return nullptr;
}

bool match_operands(const Graph& g, const Node& n, const Pattern& p, const Pattern::Item& item, Bindings& bindings);

bool match_item(const Graph& g, Id id, const Pattern& p, int at, Bindings& bindings) {
  const Pattern::Item& item = p.items[static_cast<std::size_t>(at)];
  const Node& n = g[id];
  switch (item.is) {
    case Pattern::Is::Wildcard: {
      Id& bound = bindings[item.wildcard];
      if (bound == graph::kKeep) bound = id;
      return bound == id && (item.wildcard != kCondition || n.type.dtype == Dtype::bool_);
    }
    case Pattern::Is::Literal: {
      if (n.op != Op::Constant || n.attrs.size() != 1 || base::changes(n.attrs)) return false;
      const auto bits = literal_bits(item.literal, n.type.dtype);
      return bits && *bits == static_cast<std::uint64_t>(n.attrs[0]);
    }
    case Pattern::Is::Operation: return n.op == item.op && match_operands(g, n, p, item, bindings);
  }
  return false;
}

// Patterns are a few levels deep, so this recursion is bounded.
bool match_operands(const Graph& g, const Node& n, const Pattern& p, const Pattern::Item& item, Bindings& bindings) {
  const Bindings before = bindings;
  bool ok = true;
  for (std::size_t i = 0; i < n.in.size() && ok; ++i) ok = match_item(g, n.in[i], p, item.in[i], bindings);
  if (ok || !(ops::info(n.op).traits & ops::kCommutative)) return ok;
  bindings = before;
  return match_item(g, n.in[1], p, item.in[0], bindings) && match_item(g, n.in[0], p, item.in[1], bindings);
}

}  // namespace

std::span<const Rule> rules() {
  static constinit std::atomic<std::vector<Rule>*> place{nullptr};
  return base::once(place, [] { return pattern::read_table(); });
}

bool applies(const Rule& rule, Dtype t) {
  switch (rule.dtypes) {
    case Dtypes::Any: return true;
    case Dtypes::Real: return !is_complex(t);
    case Dtypes::Float: return is_floating(t);
    case Dtypes::Whole: return is_integer(t) || t == Dtype::bool_;
  }
  return false;
}

std::optional<std::uint64_t> literal_bits(double v, Dtype t) {
  const LiteralBits* l = find_literal(v);
  return l ? l->bits[static_cast<std::size_t>(t)] : make_literal(v).bits[static_cast<std::size_t>(t)];
}

bool match(const Graph& g, const Node& n, const Rule& rule, Bindings& bindings) {
  bindings.fill(graph::kKeep);
  const Pattern::Item& root = rule.lhs.items.back();
  if (n.op != root.op || !match_operands(g, n, rule.lhs, root, bindings)) return false;
  const Id x = bindings[0] != graph::kKeep ? bindings[0] : bindings[kCondition];
  return applies(rule, g[x].type.dtype);
}

Id build(Graph& g, const Pattern& rhs, const Bindings& bindings, Dtype t) {
  std::vector<Id> ids;
  for (const Pattern::Item& item : rhs.items) {
    switch (item.is) {
      case Pattern::Is::Wildcard: ids.push_back(bindings[item.wildcard]); break;
      case Pattern::Is::Literal: ids.push_back(graph::constant(g, t, literal_bits(item.literal, t).value())); break;
      case Pattern::Is::Operation: {
        std::vector<Id> in;
        for (int i : item.in) {
          if (i >= 0) in.push_back(ids[static_cast<std::size_t>(i)]);
        }
        ids.push_back(graph::elementwise(g, item.op, std::move(in)));
      }
    }
  }
  return ids.back();
}

}  // namespace sinter::passes
