// Convolution: the sizes and the geometry of Conv, ConvInput and ConvWeight. Layer: ops.
//
// The sum over all n, y, k, c and o of input[n, y * stride + k * dilation - low, c] * weight[o, k, c] * output[n, y, o] has three
// arrays. Each operation gives the array of one role: the factor by which the sum depends on it, made of the other two. So the derivatives
// of one are the others. With groups the channels are cut into as many parts, and each part of the outputs sees its part of the inputs.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "ops/op.h"
#include "sinter/shape.h"

namespace sinter::ops {

/// One spatial axis: the sizes of input and kernel, and how the kernel walks. What lies in the padding is zero.
struct ConvAxis {
  Dim input = 1, kernel = 1, stride = 1, low = 0, high = 0, dilation = 1;
  /// The number of places, or at most 0 where the kernel does not fit.
  Dim output() const {
    const Dim room = input + low + high - (kernel - 1) * dilation - 1;
    return room < 0 ? Dim(0) : room / stride + 1;
  }
};

struct Convolution {
  /// Layouts: input (batch, axes..., in), weight (out, axes..., in / groups), output (batch, axes..., out).
  enum Role : std::uint8_t { kInput, kWeight, kOutput };

  Dim batch = 0, in = 0, out = 0, groups = 1;
  std::vector<ConvAxis> axes;

  Shape shape(Role role) const;
  /// Attributes of the three operations.
  Attrs attrs() const;
  /// Products of numbers: what it costs.
  std::int64_t work() const;
  /// What the role is called in messages.
  static const char* name(Role role);
};

/// The role of an operation's result, and of its operands: input and weight, of which the output takes the result's place.
Convolution::Role result_role(Op op);
Op convolution_op(Convolution::Role result);
std::array<Convolution::Role, 2> operand_roles(Op op);
/// From the attributes and the shapes of the operands. InternalError where they do not fit each other.
Convolution convolution_of(Op op, Ints attrs, std::span<const Shape> in);

}  // namespace sinter::ops
