// Modules: any tree is one. Parameters, their names and roles, modes, files. See docs/TRAINING.md.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sinter/tree.h"

namespace sinter::nn {

/// What training does with an array of a model.
enum class Role : std::uint8_t {
  trainable,  // it has a gradient, and optimizers change it
  frozen,     // left as it is, until unfreeze()
  buffer,     // the layer's own: running statistics
};

/// An Array with a role: what layers keep their weights in. A plain Array in a model is trainable if it is floating, and cannot be frozen.
struct Parameter : Array {
  Parameter() = default;
  Parameter(Array value, Role r = Role::trainable) noexcept : Array(std::move(value)), role(r) {}
  /// The role stays.
  Parameter& operator=(Array value) noexcept {
    static_cast<Array&>(*this) = std::move(value);
    return *this;
  }
  Role role = Role::trainable;
  SINTER_FIELDS_AND_BASE(Array, role)
};

namespace detail {

// An array of a model, set or not.
struct Leaf {
  std::string name;
  Array* array;
  Role* role = nullptr;  // null: a plain Array
  SINTER_API bool trainable() const;
};
class SINTER_API LeafWalker final : public sinter::detail::Paths {
 public:
  LeafWalker() : Paths("") {}
  std::vector<Leaf> leaves;
  void array(Array& a) override;
  void number(void* p, std::size_t bytes, sinter::Leaf kind) override;
};
template <Tree M>
std::vector<Leaf> leaves_of(const M& model) {
  LeafWalker walker;
  sinter::detail::walk_const(model, walker);
  return std::move(walker.leaves);
}
// Sets every bool field called `training`.
class SINTER_API ModeWalker final : public Walker {
 public:
  explicit ModeWalker(bool training) : Walker(true), training_(training) {}
  void array(Array&) override {}
  void number(void* p, std::size_t bytes, sinter::Leaf kind) override;
  void text(std::string&) override {}
  void shape(Shape&) override {}
  std::size_t length(std::size_t n) override { return n; }
  void enter(std::string_view name, std::size_t) override { field_ = name; }
  void leave() override { field_ = {}; }

 private:
  bool training_;
  std::string_view field_;
};

SINTER_API void set_role(const char* what, const std::vector<Leaf>& leaves, const std::string& pattern, Role from, Role to);
SINTER_API std::int64_t count(const std::vector<Leaf>& leaves, bool trainable_only);
SINTER_API std::string summary(const std::vector<Leaf>& leaves);
SINTER_API void save(const std::string& path, const std::vector<Leaf>& leaves, const std::map<std::string, std::string>& metadata);
SINTER_API std::map<std::string, std::string> load(const std::string& path, const std::vector<Leaf>& leaves);

}  // namespace detail

/// The arrays of a model that are set, by name: {"up.weight", ...}.
template <Tree M>
std::vector<std::pair<std::string, Array>> parameters(const M& model) {
  std::vector<std::pair<std::string, Array>> all;
  for (const detail::Leaf& leaf : detail::leaves_of(model))
    if (leaf.array->valid()) all.emplace_back(leaf.name, *leaf.array);
  return all;
}
/// The number of elements of all parameters, or of those that are trained.
template <Tree M>
std::int64_t parameter_count(const M& model, bool trainable_only = false) {
  return detail::count(detail::leaves_of(model), trainable_only);
}
/// A table: name, shape, dtype, number of elements, role of each parameter; and sums.
template <Tree M>
std::string summary(const M& model) {
  return detail::summary(detail::leaves_of(model));
}

/// Sets every bool field that is called `training` and listed in SINTER_FIELDS: that of Dropout, of BatchNorm, of the user's own layers.
template <Tree M>
void train(M& model, bool training = true) {
  detail::ModeWalker walker(training);
  sinter::detail::walk(model, walker);
}
/// train(model, false): nn::eval(model). (An object: an unqualified eval(layer) is then sinter::eval, which computes arrays, and never
/// this.)
inline constexpr struct Eval {
  template <Tree M>
  void operator()(M& model) const {
    train(model, false);
  }
} eval;

/// Freezes the parameters whose names match a pattern, in which * stands for any text and ? for one character: freeze(model, "up.*").
/// Frozen parameters have no gradient in nn::value_and_grad, and optimizers leave them alone. Error when nothing matches, or a plain
/// Array does.
template <Tree M>
void freeze(M& model, const std::string& pattern = "*") {
  detail::set_role("freeze", detail::leaves_of(model), pattern, Role::trainable, Role::frozen);
}
template <Tree M>
void unfreeze(M& model, const std::string& pattern = "*") {
  detail::set_role("unfreeze", detail::leaves_of(model), pattern, Role::frozen, Role::trainable);
}

/// Writes the set arrays of a tree (a model, an optimizer, a struct of both) as .safetensors, under their names. IoError when it cannot be
/// written; the file at `path` is then what it was.
template <Tree M>
void save(const std::string& path, const M& model, const std::map<std::string, std::string>& metadata = {}) {
  detail::save(path, detail::leaves_of(model), metadata);
}
/// Reads them back, and returns the metadata. IoError lists what is missing, unexpected, or of another shape or dtype; the model is then
/// what it was. A lazily made optimizer is init()-ed first.
template <Tree M>
std::map<std::string, std::string> load(const std::string& path, M& model) {
  return detail::load(path, detail::leaves_of(model));
}

}  // namespace sinter::nn
