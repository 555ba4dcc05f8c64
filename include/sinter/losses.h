// Loss functions. Names, argument order and defaults are those of MLX's mlx.nn.losses.
//
// They compute in float32 where the arrays are halves, and round once.
#pragma once
#include "sinter/array.h"

namespace sinter {

/// What becomes of one loss an element: itself, their mean, their sum.
enum class Reduction : std::uint8_t { none, mean, sum };

struct CrossEntropyOptions {
  std::optional<Array> weights = {};              // one for each target; broadcasts
  Axis axis = -1;                                 // of the classes
  double label_smoothing = 0;                     // this share of a target is spread evenly over the classes
  std::optional<std::int64_t> ignore_index = {};  // targets of this class count neither in the loss nor in its mean
  Reduction reduction = Reduction::none;
};
/// -log softmax(logits) at the target. Targets are classes (integers, of the logits' shape without the axis; negative ones count from the
/// end, others are clamped) or probabilities (floating, of the logits' shape). ShapeError, DtypeError for others; Error unless
/// 0 <= label_smoothing < 1.
SINTER_API Array cross_entropy(const Array& logits, const Array& targets, const CrossEntropyOptions& options = {});
SINTER_API Array cross_entropy(const Array& logits, const Array& targets, Reduction reduction);

/// Of targets in [0, 1], given logits (stable for any) or probabilities (whose logarithm is cut off at -100). Weights broadcast.
SINTER_API Array binary_cross_entropy(const Array& inputs, const Array& targets, const std::optional<Array>& weights = {},
                                      bool with_logits = true, Reduction reduction = Reduction::mean);
/// -inputs at the target, given log probabilities along the axis.
SINTER_API Array nll_loss(const Array& inputs, const Array& targets, Axis axis = -1, Reduction reduction = Reduction::none);
/// sum(exp(targets) * (targets - inputs)) along the axis; both are log probabilities.
SINTER_API Array kl_div_loss(const Array& inputs, const Array& targets, Axis axis = -1, Reduction reduction = Reduction::none);

// Of the difference d of predictions and targets, whose shapes are equal.
/// d^2.
SINTER_API Array mse_loss(const Array& predictions, const Array& targets, Reduction reduction = Reduction::mean);
/// |d|.
SINTER_API Array l1_loss(const Array& predictions, const Array& targets, Reduction reduction = Reduction::mean);
/// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2.
SINTER_API Array smooth_l1_loss(const Array& predictions, const Array& targets, double beta = 1, Reduction reduction = Reduction::mean);
/// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).
SINTER_API Array huber_loss(const Array& predictions, const Array& targets, double delta = 1, Reduction reduction = Reduction::none);

}  // namespace sinter
