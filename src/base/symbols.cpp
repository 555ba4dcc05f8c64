#include "base/symbols.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace sinter::detail {

struct DimAccess {
  static std::int64_t value(const Dim& d) { return d.value_; }
  static std::uint32_t symbol(const Dim& d) { return d.symbol_; }
  static std::uint32_t table(const Dim& d) { return d.table_; }
  static Dim make(std::int64_t value, std::uint32_t symbol, std::uint32_t table) {
    Dim d(value);
    d.symbol_ = symbol;
    d.table_ = table;
    return d;
  }
};

}  // namespace sinter::detail

namespace sinter::base {

using detail::DimAccess;
using detail::DimOp;
using detail::DimTest;

namespace {

thread_local constinit Symbols* open_table = nullptr;
std::atomic<std::uint32_t> next_serial{1};
constexpr std::size_t kMostTerms = 64;  // a longer product is an operation of its own

std::int64_t product_of(std::span<const std::int64_t> n) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(n[0]) * static_cast<std::uint64_t>(n[1]));
}

std::int64_t calculate(DimOp op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  switch (op) {
    case DimOp::Add: return static_cast<std::int64_t>(x + y);
    case DimOp::Subtract: return static_cast<std::int64_t>(x - y);
    case DimOp::Multiply: return static_cast<std::int64_t>(x * y);
    case DimOp::Divide: return detail::divide_dim(a, b);
    default: return detail::remainder_dim(a, b);
  }
}

bool decide(std::int64_t x, DimTest t, std::int64_t y) {
  switch (t) {
    case DimTest::Equal: return x == y;
    case DimTest::NotEqual: return x != y;
    case DimTest::Less: return x < y;
    case DimTest::Greater: return x > y;
    case DimTest::LessEqual: return x <= y;
    default: return x >= y;
  }
}

// The test between -x and -y that says the same as t between x and y.
DimTest mirrored(DimTest t) {
  switch (t) {
    case DimTest::Less: return DimTest::Greater;
    case DimTest::Greater: return DimTest::Less;
    case DimTest::LessEqual: return DimTest::GreaterEqual;
    case DimTest::GreaterEqual: return DimTest::LessEqual;
    default: return t;
  }
}

DimTest opposite(DimTest t) {
  switch (t) {
    case DimTest::Equal: return DimTest::NotEqual;
    case DimTest::NotEqual: return DimTest::Equal;
    case DimTest::Less: return DimTest::GreaterEqual;
    case DimTest::Greater: return DimTest::LessEqual;
    case DimTest::LessEqual: return DimTest::Greater;
    default: return DimTest::Less;
  }
}

}  // namespace

struct Access {
  static bool is_open(const Dim& d) { return open_table && DimAccess::symbol(d) != 0 && DimAccess::table(d) == open_table->serial_; }
  static Dim combine(DimOp op, const Dim& x, const Dim& y) { return open_table->combine(op, x, y); }
  static bool test(const Dim& x, DimTest t, const Dim& y) { return open_table->test(x, t, y); }
  static Dim apply(const char* name, DimFunction f, std::span<const Dim> arguments, std::int64_t low, std::size_t shown,
                   std::int64_t value) {
    Symbols::Atom a{Symbols::Atom::Kind::Apply, 0, name, f, low, shown, {}};
    for (const Dim& d : arguments)
      a.arguments.push_back(is_open(d) ? std::pair(DimAccess::symbol(d), std::int64_t{0}) : std::pair(0u, peek(d)));
    return open_table->atom(std::move(a), value);
  }
};

std::int64_t peek(const Dim& d) { return DimAccess::value(d); }

bool same(const Dim& x, const Dim& y) {
  return DimAccess::value(x) == DimAccess::value(y) && DimAccess::symbol(x) == DimAccess::symbol(y) &&
         (DimAccess::symbol(x) == 0 || DimAccess::table(x) == DimAccess::table(y));
}
bool same(std::span<const Dim> x, std::span<const Dim> y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Dim& a, const Dim& b) { return same(a, b); });
}
bool changes(const Dim& d) { return Access::is_open(d); }
bool changes(std::span<const Dim> d) {
  return std::any_of(d.begin(), d.end(), [](const Dim& x) { return changes(x); });
}

Dim apply(const char* name, DimFunction f, std::span<const Dim> arguments, std::int64_t low, std::size_t shown) {
  std::vector<std::int64_t> numbers;
  for (const Dim& d : arguments) numbers.push_back(peek(d));
  const std::int64_t value = f(numbers);
  return changes(arguments) ? Access::apply(name, f, arguments, low, shown, value) : Dim(value);
}

bool Interval::contains(std::int64_t v) const {
  return v >= low && v <= high && std::find(others.begin(), others.end(), v) == others.end();
}

// ---- expressions ------------------------------------------------------------------------------------------------------------------------

Symbols::Symbols() : serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

Dim Symbols::input(std::int64_t value, std::string name) {
  names_.push_back(std::move(name));
  Atom a{Atom::Kind::Input, static_cast<std::int64_t>(inputs_), nullptr, nullptr, 0, 0, {}};
  atoms_.push_back(std::move(a));
  const auto index = static_cast<std::uint32_t>(inputs_++);
  check(atoms_.size() == inputs_, "symbols: inputs come first");
  items_.push_back({true, index});
  return dim_of({{{index}, 1}}, value);
}

Symbols::Sum Symbols::sum_of(const Dim& d) const {
  if (follows(d)) return sums_[DimAccess::symbol(d) - 1];
  if (peek(d) == 0) return {};
  return {{{}, peek(d)}};
}

Dim Symbols::dim_of(Sum s, std::int64_t value) {
  if (s.empty()) return Dim(0);
  if (s.size() == 1 && s[0].atoms.empty()) return Dim(s[0].factor);
  return DimAccess::make(value, index_of(s), serial_);
}

std::uint32_t Symbols::index_of(const Sum& s) {
  auto [it, fresh] = index_.try_emplace(s, static_cast<std::uint32_t>(sums_.size() + 1));
  if (fresh) {
    sums_.push_back(s);
    items_.push_back({false, it->second});
  }
  return it->second;
}

Dim Symbols::atom(Atom a, std::int64_t value) {
  auto it = std::find(atoms_.begin() + static_cast<std::ptrdiff_t>(inputs_), atoms_.end(), a);
  const auto index = static_cast<std::uint32_t>(it - atoms_.begin());
  if (it == atoms_.end()) {
    atoms_.push_back(std::move(a));
    items_.push_back({true, index});
  }
  return dim_of({{{index}, 1}}, value);
}

namespace {

template <class Sum>
Sum tidy(Sum s) {
  std::sort(s.begin(), s.end(), [](const auto& x, const auto& y) { return x.atoms < y.atoms; });
  Sum out;
  for (auto& t : s) {
    if (!out.empty() && out.back().atoms == t.atoms)
      out.back().factor = calculate(DimOp::Add, out.back().factor, t.factor);
    else
      out.push_back(std::move(t));
  }
  std::erase_if(out, [](const auto& t) { return t.factor == 0; });
  return out;
}

// Each term divided by the one term d; none where something is left over.
template <class Sum>
std::optional<Sum> divided(const Sum& s, const Sum& d) {
  if (d.size() != 1 || d[0].factor == 0) return std::nullopt;
  Sum out;
  for (const auto& t : s) {
    if (!std::includes(t.atoms.begin(), t.atoms.end(), d[0].atoms.begin(), d[0].atoms.end()) || t.factor % d[0].factor != 0)
      return std::nullopt;
    auto q = t;
    q.atoms.clear();
    std::set_difference(t.atoms.begin(), t.atoms.end(), d[0].atoms.begin(), d[0].atoms.end(), std::back_inserter(q.atoms));
    q.factor = t.factor / d[0].factor;
    out.push_back(std::move(q));
  }
  return tidy(std::move(out));
}

}  // namespace

Dim Symbols::combine(DimOp op, const Dim& x, const Dim& y) {
  const std::int64_t a = peek(x), b = peek(y);
  Sum p = sum_of(x), q = sum_of(y);
  switch (op) {
    case DimOp::Add:
    case DimOp::Subtract: {
      for (const Term& t : q) p.push_back({t.atoms, op == DimOp::Add ? t.factor : calculate(DimOp::Subtract, 0, t.factor)});
      return dim_of(tidy(std::move(p)), calculate(op, a, b));
    }
    case DimOp::Multiply: {
      if (p.size() * q.size() > kMostTerms) return apply("product", product_of, {x, y});
      Sum s;
      for (const Term& t : p)
        for (const Term& u : q) {
          Term v{{}, calculate(DimOp::Multiply, t.factor, u.factor)};
          std::merge(t.atoms.begin(), t.atoms.end(), u.atoms.begin(), u.atoms.end(), std::back_inserter(v.atoms));
          s.push_back(std::move(v));
        }
      return dim_of(tidy(std::move(s)), calculate(op, a, b));
    }
    case DimOp::Divide:
    case DimOp::Remainder: {
      const bool zero = test(y, DimTest::Equal, 0);
      const std::int64_t value = calculate(op, a, b);  // throws where b is 0
      check(!zero, "a division of sizes by 0 was not noticed");
      if (auto exact = divided(p, q)) return op == DimOp::Divide ? dim_of(std::move(*exact), value) : Dim(0);
      if (p == q) return op == DimOp::Divide ? 1 : 0;
      Atom made{op == DimOp::Divide ? Atom::Kind::Divide : Atom::Kind::Remainder, 0, nullptr, nullptr, kNoBound, 0, {}};
      if (low_of(p) >= 0 && low_of(q) >= 0) made.low = 0;
      for (const Dim* d : {&x, &y})
        made.arguments.push_back(Access::is_open(*d) ? std::pair(DimAccess::symbol(*d), std::int64_t{0}) : std::pair(0u, peek(*d)));
      return atom(std::move(made), value);
    }
  }
  throw InternalError("internal: an operation on sizes that is none");
}

std::optional<Symbols::Numbers> Symbols::evaluate(std::span<const std::int64_t> sizes) const {
  std::vector<std::int64_t> of_atom(atoms_.size()), numbers(sums_.size() + 1), arguments;
  for (const Item& item : items_) {
    if (item.is_atom) {
      const Atom& a = atoms_[item.index];
      arguments.clear();
      for (auto [expression, number] : a.arguments) arguments.push_back(expression ? numbers[expression] : number);
      std::int64_t& v = of_atom[item.index];
      if (a.kind == Atom::Kind::Input) {
        v = sizes[static_cast<std::size_t>(a.input)];
      } else if (a.kind == Atom::Kind::Apply) {
        v = a.function(arguments);
      } else {
        if (arguments[1] == 0) return std::nullopt;
        v = calculate(a.kind == Atom::Kind::Divide ? DimOp::Divide : DimOp::Remainder, arguments[0], arguments[1]);
      }
      continue;
    }
    std::int64_t total = 0;
    for (const Term& t : sums_[item.index - 1]) {
      std::int64_t n = t.factor;
      for (std::uint32_t a : t.atoms)
        if (__builtin_mul_overflow(n, of_atom[a], &n)) return std::nullopt;
      if (__builtin_add_overflow(total, n, &total)) return std::nullopt;
    }
    numbers[item.index] = total;
  }
  return numbers;
}

Dim Symbols::at(const Numbers& numbers, const Dim& d) const {
  return follows(d) ? DimAccess::make(numbers[DimAccess::symbol(d)], DimAccess::symbol(d), serial_) : d;
}
Shape Symbols::at(const Numbers& numbers, const Shape& s) const {
  Shape out = s;
  for (Dim& d : out) d = at(numbers, d);
  return out;
}

// ---- guards -----------------------------------------------------------------------------------------------------------------------------

std::int64_t Symbols::low_of(const Sum& s) const {
  std::int64_t low = 0;
  for (const Term& t : s) {
    if (t.atoms.empty()) {
      low = calculate(DimOp::Add, low, t.factor);
      continue;
    }
    if (t.factor < 0) return kNoBound;
    for (std::uint32_t a : t.atoms)
      if (atoms_[a].low < 0) return kNoBound;
  }
  return low;
}

bool Symbols::test(const Dim& x, DimTest t, const Dim& y) {
  const bool answer = decide(peek(x), t, peek(y));
  Sum p = sum_of(x);
  for (const Term& u : sum_of(y)) p.push_back({u.atoms, calculate(DimOp::Subtract, 0, u.factor)});
  p = tidy(std::move(p));
  std::int64_t k = 0;  // the test is p against k
  if (!p.empty() && p[0].atoms.empty()) {
    k = calculate(DimOp::Subtract, 0, p[0].factor);
    p.erase(p.begin());
  }
  if (p.empty()) return answer;
  if (!answer) t = opposite(t);
  if (p[0].factor < 0) {
    for (Term& u : p) u.factor = calculate(DimOp::Subtract, 0, u.factor);
    k = calculate(DimOp::Subtract, 0, k);
    t = mirrored(t);
  }
  if (t == DimTest::NotEqual && k == 0 && p.size() == 1) {  // a product is not 0: no factor is
    for (std::uint32_t a : p[0].atoms) restrict({{{a}, 1}}, t, 0);
  } else {
    restrict(p, t, k);
  }
  return answer;
}

void Symbols::restrict(const Sum& p, DimTest t, std::int64_t k) {
  const std::int64_t low = low_of(p);
  const std::uint32_t expression = index_of(p);
  auto found = guards_->find(expression);
  Interval i = found != guards_->end() ? found->second : Interval{low, Interval{}.high, {}};
  const Interval before = i;
  switch (t) {
    case DimTest::Equal: i.low = i.high = k; break;
    case DimTest::NotEqual:
      if (i.contains(k)) i.others.push_back(k);
      break;
    case DimTest::Less: i.high = std::min(i.high, k - 1); break;
    case DimTest::LessEqual: i.high = std::min(i.high, k); break;
    case DimTest::Greater: i.low = std::max(i.low, k + 1); break;
    default: i.low = std::max(i.low, k);
  }
  for (bool moved = true; moved;) {
    const std::size_t n = i.others.size();
    std::erase_if(i.others, [&](std::int64_t v) {
      return v < i.low || v > i.high || (v == i.low && (++i.low, true)) || (v == i.high && (--i.high, true));
    });
    moved = i.others.size() != n;
  }
  if (!(i == before)) (*guards_)[expression] = std::move(i);
}

bool Symbols::hold(const Guards& guards, const Numbers& numbers) {
  return std::all_of(guards.begin(), guards.end(), [&](const auto& g) { return g.second.contains(numbers[g.first]); });
}

std::optional<std::size_t> Symbols::fixed_input(const Guards::value_type& guard) const {
  const auto& [expression, interval] = guard;
  const Sum& s = sums_[expression - 1];
  if (interval.low != interval.high || interval.low < 2 || s.size() != 1 || s[0].atoms.size() != 1) return std::nullopt;
  const Atom& a = atoms_[s[0].atoms[0]];
  return a.kind == Atom::Kind::Input ? std::optional(static_cast<std::size_t>(a.input)) : std::nullopt;
}

// ---- texts ------------------------------------------------------------------------------------------------------------------------------

std::string Symbols::text_of(const Atom& a) const {
  if (a.kind == Atom::Kind::Input) return str('s', a.input);
  std::vector<std::string> in;
  for (auto [expression, number] : a.arguments) in.push_back(expression ? text_of(sums_[expression - 1]) : std::to_string(number));
  if (a.kind != Atom::Kind::Apply) {
    for (std::string& s : in)
      if (s.find(' ') != std::string::npos) s.insert(0, "(").append(")");
    return in[0].append(a.kind == Atom::Kind::Divide ? "/" : "%").append(in[1]);
  }
  std::string s = str(a.name, '(');
  for (std::size_t i = 0; i < std::min(in.size(), a.shown); ++i) s.append(i ? ", " : "").append(in[i]);
  return s.append(")");
}

std::string Symbols::text_of(const Sum& s) const {
  std::string out;
  auto add = [&](const Term& t) {
    const bool minus = t.factor < 0;
    out.append(out.empty() ? (minus ? "-" : "") : minus ? " - " : " + ");
    const std::string factor = std::to_string(minus ? -t.factor : t.factor);
    if (t.atoms.empty() || factor != "1") out.append(factor).append(t.atoms.empty() ? "" : "*");
    for (std::size_t i = 0; i < t.atoms.size(); ++i) out.append(i ? "*" : "").append(text_of(atoms_[t.atoms[i]]));
  };
  for (const Term& t : s)
    if (!t.atoms.empty()) add(t);
  for (const Term& t : s)
    if (t.atoms.empty()) add(t);
  return out.empty() ? "0" : out;
}

bool Symbols::follows(const Dim& d) const { return DimAccess::symbol(d) != 0 && DimAccess::table(d) == serial_; }
std::string Symbols::text(const Dim& d) const { return follows(d) ? text_of(sums_[DimAccess::symbol(d) - 1]) : std::to_string(peek(d)); }

std::vector<std::string> Symbols::texts(const Guards& guards) const {
  std::vector<std::string> out;
  for (const auto& [expression, i] : guards) {
    // What is subtracted stands on the other side: "s0 == s1".
    Sum left, right;
    for (const Term& t : sums_[expression - 1]) {
      if (t.factor > 0)
        left.push_back(t);
      else
        right.push_back({t.atoms, -t.factor});
    }
    auto say = [&](const char* relation, std::int64_t k) {
      Sum r = right;
      if (k != 0 || r.empty()) r.insert(r.begin(), {{}, k});
      out.push_back(str(text_of(left), ' ', relation, ' ', text_of(r)));
    };
    if (i.low == i.high) {
      say("==", i.low);
      continue;
    }
    if (i.low > low_of(sums_[expression - 1])) say(">=", i.low);
    if (i.high != Interval{}.high) say("<=", i.high);
    for (std::int64_t v : i.others) say("!=", v);
  }
  return out;
}

// ---- scopes -----------------------------------------------------------------------------------------------------------------------------

OpenSymbols::OpenSymbols(Symbols& symbols, Guards& guards) : outer_(open_table), mine_(symbols), before_(symbols.guards_) {
  open_table = &symbols;
  symbols.guards_ = &guards;
}
OpenSymbols::~OpenSymbols() {
  open_table = outer_;
  mine_.guards_ = before_;
}

}  // namespace sinter::base

namespace sinter::detail {

using base::Access;

Dim combine_dims(DimOp op, const Dim& x, const Dim& y) {
  return Access::is_open(x) || Access::is_open(y) ? Access::combine(op, x, y) : Dim(base::calculate(op, base::peek(x), base::peek(y)));
}
bool test_dims(const Dim& x, DimTest test, const Dim& y) {
  return Access::is_open(x) || Access::is_open(y) ? Access::test(x, test, y) : base::decide(base::peek(x), test, base::peek(y));
}
std::int64_t pin_dim(const Dim& x) {
  if (Access::is_open(x)) Access::test(x, DimTest::Equal, Dim(base::peek(x)));
  return base::peek(x);
}

}  // namespace sinter::detail
