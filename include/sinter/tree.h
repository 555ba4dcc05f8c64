// Trees: what may be a parameter, a result or a state of a compiled function.
//
// One template per type, walk(T&, Walker&); everything done with trees (read, write, describe) is a Walker. So a new tree type costs one
// instantiation and a new use of trees costs none.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <tuple>

#include "sinter/array.h"

/// Lists the fields of a struct that make it a tree, in any access section, once: `SINTER_FIELDS(weight, bias)`. Private fields, templates
/// and local structs are fine, and aggregates stay aggregates. Fields that are not listed are neither state nor part of a key.
#define SINTER_FIELDS(...)                                                   \
  friend struct ::sinter::detail::TreeAccess;                                \
  static constexpr const char* sinter_field_names() { return #__VA_ARGS__; } \
  auto sinter_fields() { return ::std::tie(__VA_ARGS__); }

/// The same for a struct that derives from a struct with fields: the fields of `Base` come first. Write it whenever the base has fields:
/// SINTER_FIELDS in a derived struct would hide them.
#define SINTER_FIELDS_AND_BASE(Base, ...)                                                           \
  friend struct ::sinter::detail::TreeAccess;                                                       \
  static constexpr const char* sinter_field_names() { return #__VA_ARGS__; }                        \
  auto sinter_fields() { return ::std::tie(static_cast<Base&>(*this) __VA_OPT__(, ) __VA_ARGS__); } \
  static constexpr bool sinter_has_base() { return true; }

namespace sinter {

/// What a static leaf is, for messages.
enum class Leaf : std::uint8_t { Bool, Integer, Unsigned, Floating, Dtype };

/// Sees the parts of a tree in order.
class SINTER_API Walker {
 public:
  virtual ~Walker() = default;
  virtual void array(Array& a) = 0;                                // dynamic leaf, or unset
  virtual void number(void* p, std::size_t bytes, Leaf kind) = 0;  // static leaf
  virtual void text(std::string& s) = 0;                           // static leaf
  virtual void shape(Shape& s) = 0;                                // static leaf
  /// Called with the length of a container (0 or 1 for an optional); answers the length that it shall get.
  virtual std::size_t length(std::size_t n) = 0;
  /// The name of a field, or "" and a position: only called when `wants_names`.
  virtual void enter(std::string_view, std::size_t) {}
  virtual void leave() {}

  const bool wants_names;
  const bool rebuilds;  // keyed containers are emptied and read back

 protected:
  explicit Walker(bool names = false, bool rebuild = false) : wants_names(names), rebuilds(rebuild) {}
};

namespace detail {

struct TreeAccess {
  template <class T>
  static auto fields(T& t) {
    return t.sinter_fields();
  }
  template <class T>
  static const char* names() {
    return T::sinter_field_names();
  }
  // `&T::sinter_fields` of an inherited member names the base: that is how a forgotten macro is found.
  template <class C, class R>
  static C owner(R (C::*)());
  template <class T>
  static auto owner_of() -> decltype(owner(&T::sinter_fields));
  template <class T>
  static constexpr bool has = requires { &T::sinter_fields; };
  template <class T>
  static constexpr bool own = std::is_same_v<decltype(owner_of<T>()), T>;
  template <class T>
  static constexpr bool with_base = requires { T::sinter_has_base(); };
};
/// Field number i of a list "a, b, c".
SINTER_API std::string_view field_name(const char* list, std::size_t i);
[[noreturn]] SINTER_API void throw_fixed_length();

template <class T>
inline constexpr bool is_array_like = false;  // of fixed size: std::array
template <class T, std::size_t N>
inline constexpr bool is_array_like<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_tuple_like = false;
template <class... T>
inline constexpr bool is_tuple_like<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple_like<std::pair<A, B>> = true;
// Containers are known by what they can do, so <map>, <unordered_map> and <deque> need not be included here.
template <class T>
concept MapLike = requires(T& t) {
  typename T::mapped_type;
  typename T::key_type;
  t.clear();
  t.begin();
  t.size();
};
template <class T>
concept SortedMap = MapLike<T> && requires { typename T::key_compare; };
template <class T>
concept ListLike = requires(T& t, std::size_t n) {
  t.resize(n);
  t.begin();
  t.size();
  typename T::value_type;
} && !std::same_as<T, std::string>;
template <class T>
concept OptionalLike = requires(T& t) {
  t.has_value();
  t.reset();
  t.emplace();
  *t;
};
template <class T>
concept StaticLeaf = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept Fields = TreeAccess::has<T>;

template <class T>
constexpr bool tree_check();
template <class T>
inline constexpr bool is_tree = tree_check<std::remove_cv_t<T>>();
template <template <class...> class C, class... T>
constexpr bool all_trees(C<T...>*) {
  return (is_tree<T> && ...);
}

template <class T>
constexpr bool tree_check() {
  if constexpr (std::same_as<T, Array> || StaticLeaf<T> || std::same_as<T, std::string> || std::same_as<T, Shape> || std::same_as<T, Dim>)
    return true;
  else if constexpr (Fields<T>)
    return TreeAccess::own<T>;  // its fields are checked when it is walked, so recursive structs work
  else if constexpr (is_array_like<T> || ListLike<T>)
    return is_tree<typename T::value_type>;
  else if constexpr (is_tuple_like<T>)
    return all_trees(static_cast<T*>(nullptr));
  else if constexpr (MapLike<T>)
    return is_tree<typename T::key_type> && is_tree<typename T::mapped_type>;
  else if constexpr (OptionalLike<T>)
    return is_tree<typename T::value_type>;
  else
    return false;
}

}  // namespace detail

/// An Array; bool, number, enum, std::string, Shape, Dim; std::vector, array, pair, tuple, optional, map, unordered_map of trees; a struct
/// with SINTER_FIELDS. Arrays are dynamic leaves; the rest is structure.
template <class T>
concept Tree = detail::is_tree<T>;

namespace detail {

// The readable message. The type is in the compiler's "required from" line next to it.
template <class T>
constexpr void require_tree() {
  if constexpr (Fields<T>)
    static_assert(
        TreeAccess::own<T>,
        "sinter: this struct inherits SINTER_FIELDS from a base and adds none: write SINTER_FIELDS_AND_BASE(Base, own, fields) in it");
  else
    static_assert(Tree<T>,
                  "sinter: this type is not a tree: use Array, numbers, enums, strings, std containers of trees, or a struct with "
                  "SINTER_FIELDS(a, b, ...)");
}

template <class T>
constexpr Leaf leaf_kind() {
  if constexpr (std::same_as<T, Dtype>)
    return Leaf::Dtype;
  else if constexpr (std::same_as<T, bool>)
    return Leaf::Bool;
  else if constexpr (std::floating_point<T>)
    return Leaf::Floating;
  else if constexpr (std::is_enum_v<T>)
    return leaf_kind<std::underlying_type_t<T>>();
  else
    return std::signed_integral<T> ? Leaf::Integer : Leaf::Unsigned;
}

template <class T>
void walk(T& t, Walker& w);

template <class T>
void walk_item(T& t, Walker& w, std::size_t i, std::string_view name = {}) {
  if (w.wants_names) w.enter(name, i);
  walk(t, w);
  if (w.wants_names) w.leave();
}

template <class K, class V, class M>
void walk_map(M& m, Walker& w) {
  std::size_t n = w.length(m.size());
  auto pair = [&w](std::size_t i, K& k, V& v) {
    if (w.wants_names) w.enter({}, i);
    walk(k, w);
    walk(v, w);
    if (w.wants_names) w.leave();
  };
  if (w.rebuilds) {
    M out;
    for (std::size_t i = 0; i < n; ++i) {
      K k{};
      V v{};
      pair(i, k, v);
      out.emplace(std::move(k), std::move(v));
    }
    m = std::move(out);
  } else if constexpr (SortedMap<M>) {
    std::size_t i = 0;
    for (auto& [k, v] : m) pair(i++, const_cast<K&>(k), v);
  } else {  // equal hash maps may iterate in different orders: go by key
    std::vector<typename M::value_type*> order;
    for (auto& kv : m) order.push_back(&kv);
    for (std::size_t gap = order.size() / 2; gap > 0; gap /= 2)  // shell sort: <algorithm> would cost every user compile time
      for (std::size_t i = gap; i < order.size(); ++i)
        for (std::size_t j = i; j >= gap && order[j]->first < order[j - gap]->first; j -= gap) std::swap(order[j], order[j - gap]);
    std::size_t i = 0;
    for (auto* kv : order) pair(i++, const_cast<K&>(kv->first), kv->second);
  }
}

template <class T>
void walk_list(T& t, Walker& w) {
  std::size_t i = 0;
  for (auto& x : t) walk_item(x, w, i++);
}

// `const` trees are walked through const_cast by walkers that do not write: one instantiation serves both.
template <class T>
void walk(T& t, Walker& w) {
  static_assert(!std::is_const_v<T>, "sinter: a const field cannot be part of a tree");
  require_tree<T>();
  if constexpr (std::same_as<T, Array>) {
    w.array(t);
  } else if constexpr (std::same_as<T, long double>) {  // 6 of its 16 bytes are padding
    double high = static_cast<double>(t), low = static_cast<double>(t - static_cast<long double>(high));
    w.number(&high, sizeof high, Leaf::Floating);
    w.number(&low, sizeof low, Leaf::Floating);
    if (w.rebuilds) t = static_cast<long double>(high) + low;
  } else if constexpr (StaticLeaf<T>) {
    w.number(&t, sizeof t, leaf_kind<T>());
  } else if constexpr (std::same_as<T, Dim>) {
    std::int64_t v = t;
    w.number(&v, sizeof v, Leaf::Integer);
    if (w.rebuilds) t = Dim(v);
  } else if constexpr (std::same_as<T, std::string>) {
    w.text(t);
  } else if constexpr (std::same_as<T, Shape>) {
    w.shape(t);
  } else if constexpr (Fields<T>) {
    constexpr std::size_t base = TreeAccess::with_base<T> ? 1 : 0;
    [[maybe_unused]] std::size_t i = 0;
    [[maybe_unused]] auto one = [&](auto& field) {
      if (i < base || !w.wants_names)
        walk(field, w);
      else
        walk_item(field, w, i, field_name(TreeAccess::names<T>(), i - base));
      ++i;
    };
    std::apply([&](auto&... field) { (one(field), ...); }, TreeAccess::fields(t));
  } else if constexpr (is_array_like<T>) {
    walk_list(t, w);
  } else if constexpr (std::same_as<T, std::vector<bool>>) {
    t.resize(w.length(t.size()));
    for (std::size_t i = 0; i < t.size(); ++i) {
      bool b = t[i];
      w.number(&b, sizeof b, Leaf::Bool);
      if (w.rebuilds) t[i] = b;
    }
  } else if constexpr (ListLike<T>) {
    std::size_t n = w.length(t.size());
    if (n != t.size()) {
      if constexpr (std::is_default_constructible_v<typename T::value_type>)
        t.resize(n);
      else
        throw_fixed_length();
    }
    walk_list(t, w);
  } else if constexpr (is_tuple_like<T>) {
    [[maybe_unused]] std::size_t i = 0;
    std::apply([&](auto&... item) { (walk_item(item, w, i++), ...); }, t);
  } else if constexpr (MapLike<T>) {
    walk_map<typename T::key_type, typename T::mapped_type>(t, w);
  } else if constexpr (OptionalLike<T>) {
    if (w.length(t.has_value()) == 0) {
      t.reset();
    } else {
      if (!t.has_value()) t.emplace();
      walk(*t, w);
    }
  }
}
template <class T>
void walk_const(const T& t, Walker& w) {
  walk(const_cast<T&>(t), w);
}

// The array leaves of a tree in order, unset ones too.
class SINTER_API Collect final : public Walker {
 public:
  explicit Collect(std::vector<Array*>& out) : out_(out) {}
  void array(Array& a) override;
  void number(void*, std::size_t, Leaf) override {}
  void text(std::string&) override {}
  void shape(Shape&) override {}
  std::size_t length(std::size_t n) override { return n; }

 private:
  std::vector<Array*>& out_;
};

}  // namespace detail

/// The set arrays of a tree, in order: fields as listed, elements by position, maps by key.
template <Tree T>
std::vector<Array> tree_flatten(const T& tree) {
  std::vector<Array*> found;
  detail::Collect collect(found);
  detail::walk_const(tree, collect);
  std::vector<Array> leaves;
  for (Array* a : found)
    if (a->valid()) leaves.push_back(*a);
  return leaves;
}

/// A copy of `like` with other arrays in place of its own. Throws Error when their number differs.
template <Tree T>
T tree_unflatten(const T& like, std::span<const Array> leaves);

/// A copy of the tree in which each set array is replaced by f(array, arrays at the same place in `rest`...). Throws Error when the trees
/// differ in their number of arrays.
template <Tree T, class F, std::same_as<T>... U>
T tree_map(F&& f, const T& tree, const U&... rest);

/// The names of the arrays, "up.weight", "layers[1].bias".
template <Tree T>
std::vector<std::string> tree_paths(const T& tree, std::string root = "");

namespace detail {
class SINTER_API Paths : public Walker {
 public:
  explicit Paths(std::string root) : Walker(true), now_(std::move(root)) {}
  std::vector<std::string> names;
  void array(Array& a) override;
  void number(void*, std::size_t, Leaf) override {}
  void text(std::string&) override {}
  void shape(Shape&) override {}
  std::size_t length(std::size_t n) override { return n; }
  void enter(std::string_view name, std::size_t i) override;
  void leave() override;

 protected:
  std::string now_;
  std::vector<std::size_t> marks_;
};
[[noreturn]] SINTER_API void throw_leaf_count(const char* what, std::size_t got, std::size_t want);
SINTER_API void eval_all(std::span<const Array> arrays);
}  // namespace detail

template <Tree T>
T tree_unflatten(const T& like, std::span<const Array> leaves) {
  T out(like);
  std::vector<Array*> slots;
  detail::Collect collect(slots);
  detail::walk(out, collect);
  std::size_t n = 0;
  for (Array* a : slots) n += a->valid();
  if (n != leaves.size()) detail::throw_leaf_count("tree_unflatten", leaves.size(), n);
  n = 0;
  for (Array* a : slots)
    if (a->valid()) *a = leaves[n++];
  return out;
}
template <Tree T, class F, std::same_as<T>... U>
T tree_map(F&& f, const T& tree, const U&... rest) {
  std::array<std::vector<Array>, sizeof...(U) + 1> in{tree_flatten(tree), tree_flatten(rest)...};
  for (const auto& leaves : in)
    if (leaves.size() != in[0].size()) detail::throw_leaf_count("tree_map", leaves.size(), in[0].size());
  auto at = [&]<std::size_t... I>(std::size_t k, std::index_sequence<I...>) -> Array { return f(std::as_const(in[I][k])...); };
  std::vector<Array> out;
  for (std::size_t k = 0; k < in[0].size(); ++k) out.push_back(at(k, std::make_index_sequence<sizeof...(U) + 1>()));
  return tree_unflatten(tree, out);
}
template <Tree T>
std::vector<std::string> tree_paths(const T& tree, std::string root) {
  detail::Paths paths(std::move(root));
  detail::walk_const(tree, paths);
  return std::move(paths.names);
}

/// Evaluates every array of these trees; together, where one needs what another computes.
template <Tree... T>
void eval(const T&... trees) {
  std::vector<Array> all;
  auto add = [&all](const auto& tree) {
    for (Array& a : tree_flatten(tree)) all.push_back(std::move(a));
  };
  (add(trees), ...);
  detail::eval_all(all);
}

}  // namespace sinter
