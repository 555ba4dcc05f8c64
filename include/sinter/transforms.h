// Function transforms: grad, value_and_grad, vjp, jvp, vmap. See docs/TRANSFORMS.md.
//
// A transform is a callable like the function it is made from, so transforms nest, in each other and with compile(). Under grad, vjp and jvp
// the function may look at values (loops until convergence, printing), unless it is being compiled; under vmap it may not.
#pragma once
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "sinter/compile.h"

namespace sinter {

/// The axis of an argument or result over which vmap maps; none: the same for every element of the batch.
using BatchAxis = std::optional<int>;

namespace detail {

// One application of a transform on this thread: what the function computes from the variables is found again, as a graph.
class SINTER_API Tape {
 public:
  // `what` is the transform's name, for messages: it must outlive the tape.
  explicit Tape(const char* what);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Stand-ins for these arrays, with their data where they have any. Throws DtypeError for integers and bool.
  std::vector<Array> variables(std::span<const Array> arrays);
  // Stand-ins for one element of the batch: without the axis, without data. Throws ShapeError when sizes differ.
  std::vector<Array> elements(std::span<const Array> arrays, std::span<const BatchAxis> axes);

  // What `outputs` are, in terms of the arrays that the variables stand for.
  struct Results {
    std::vector<Array> outputs, derivatives;
  };
  // The derivatives: of the sum of outputs times cotangents (one per output; unset: zero), by variable.
  Results backward(std::span<const Array> outputs, std::span<const Array> cotangents);
  // The derivatives: of each output, along the tangents (one per variable).
  Results forward(std::span<const Array> outputs, std::span<const Array> tangents);
  // The outputs for the whole batch, along `axes`.
  std::vector<Array> batch(std::span<const Array> outputs, std::span<const BatchAxis> axes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// The scalar 1 of the loss' dtype. Throws for an output that is no scalar, or no floating number.
SINTER_API Array one_for_loss(std::span<const Array> outputs, const char* what);
[[noreturn]] SINTER_API void throw_transform(const char* what, const std::string& text);

template <class T>
Flatten flatten(const T& t) {
  Flatten f;
  walk_const(t, f);
  return f;
}
// A copy of the tree with other arrays in it.
template <class T>
T with_leaves(const T& t, std::span<const Array> leaves, std::string_view structure) {
  T copy(t);
  Fill fill(structure, leaves);
  walk(copy, fill);
  return copy;
}

}  // namespace detail
}  // namespace sinter
