// What the table tests share: the public functions by Op, operands of every layout, comparison of the ways to run a graph, and the count of
// kernels and time printed at the end.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sinter/sinter.h"
#include "support/graphs.h"

namespace sinter::tests {

using ops::Op;

/// SINTER_TEST_ALL is set: every operation in every layout at every length.
bool test_all();

/// The public function of an elementwise operation.
Array call(Op op, const std::vector<Array>& operands);
/// The elementwise operations with this many operands that take operands of dtype t.
std::vector<Op> elementwise_ops(int operands, Dtype t);
inline Dtype operand_dtype(Op op, int operand, Dtype t) {
  return ops::info(op).rule == ops::Rule::Where && operand == 0 ? Dtype::bool_ : t;
}

/// Layouts of operands. All operands of a call have one shape, but their strides differ; `scalar_operand`: those after the first are 0-d.
enum class Form { contiguous, stepped, reversed, transposed, broadcast, scalar_operand, zero_d, empty };
inline constexpr Form kForms[] = {Form::contiguous, Form::stepped,        Form::reversed, Form::transposed,
                                  Form::broadcast,  Form::scalar_operand, Form::zero_d,   Form::empty};
const char* name(Form f);
/// zero_d and empty have no length.
inline bool has_length(Form f) { return f != Form::zero_d && f != Form::empty; }

/// An operand as it lies in memory, and its elements.
struct Input {
  Array array;
  Tensor tensor;
};
/// Numbers in [low, high] and, with `special`, every eighth or so a zero of either sign, an infinity, NaN, a denormal or a number that
/// overflows narrow dtypes; integers and bool take the numbers' conversion, every fourth integer any bits.
Input operand(Dtype t, const Shape& shape, const graph::Strides& strides, std::uint32_t seed, double low, double high, bool special);
Input operand(Form f, int length, int number, Dtype t, std::uint32_t seed, double low = -3, double high = 3);

/// Runs a graph as compiled, unfused, interpreted, and at other levels of code generation, and compares each with `regular` bit for bit
/// (empty: with the node-by-node evaluation), that with graph::interpret within `tolerance`. The first difference, or "".
struct Ways {
  bool unfused = false, levels = false;
  double tolerance = 0;
  std::vector<char> rounded = {};  // outputs that are not compared with the reference, one flag an output; empty: none
};
std::string disagreement(const Graph& g, std::span<const Input> inputs, const Ways& ways, std::vector<Tensor> regular = {});

/// Runs the jobs on all cores; each returns a difference, or "". All differences are reported (the first 20).
void run_jobs(std::vector<std::function<std::string()>> jobs);

}  // namespace sinter::tests
