#include "engine/debug_print.h"

#include <iostream>
#include <sstream>

#include "base/check.h"
#include "engine/tape.h"
#include "engine/trace.h"
#include "engine/tracing.h"
#include "graph/bodies.h"

namespace sinter::engine {
namespace {

using ops::Op;

// The pieces of a format between its `{}`, one more than values.
std::vector<std::string> pieces_of(std::string_view format) {
  std::vector<std::string> pieces(1);
  for (std::size_t i = 0; i < format.size(); ++i) {
    const std::string_view two = format.substr(i, 2);
    if (two == "{}")
      pieces.emplace_back(), ++i;
    else
      pieces.back() += format[i], i += two == "{{" || two == "}}";
  }
  return pieces;
}

// Where lines are kept: in a trace of a compiled function, or in a transform that runs its function without data, or within such.
struct Level {
  Array* chain = nullptr;  // its last link; null: nothing is traced
  Array first = {};        // a variable of the transform
  bool compiled = false;   // the trace itself
};
Level level() {
  Trace* trace = open_trace();
  const bool compiling = trace && trace->callee.program;
  OpenTape* innermost = nullptr;
  bool traced = compiling;
  for (OpenTape* t = innermost_tape(); t && !(compiling && t->within != trace); t = t->outer()) {
    if (t->closed) continue;
    if (!innermost) innermost = t;
    traced = traced || !t->has_data;
  }
  if (innermost && traced) return {&innermost->printed, innermost->first, false};
  if (compiling) return {&trace->printed, {}, true};
  return {};
}

Array link(const Level& l, const Array& after, std::int64_t depth, std::string_view text, std::span<const Array> values) {
  std::vector<Array> operands{after};
  operands.insert(operands.end(), values.begin(), values.end());
  const Array node = make(Op::Print, std::move(operands), graph::print_attributes(depth, text), Dtype::bool_, Shape{0});
  if (l.compiled) node.get()->symbolic = true;  // to be done in each call, whatever it depends on
  return make(Op::Get, {node}, {0}, after.dtype(), after.shape());
}

// The last link, or what a chain begins with: a bool that depends on a variable of the transform, so that the chain is part of it.
Array last_of(const Level& l) {
  if (l.chain->valid()) return *l.chain;
  if (!l.first.valid()) return constant(Dtype::bool_, 0);
  const std::size_t rank = l.first.shape().size();
  ops::Attrs part(2 * rank, 0), axes{static_cast<std::int64_t>(Dtype::bool_)};
  part.resize(3 * rank, 1);
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  const Shape none(std::vector<Dim>(rank, 0));
  const Array x = rank == 0 ? l.first : make(Op::Slice, {l.first}, std::move(part), l.first.dtype(), none);
  const Array differs = make(Op::NotEqual, {x, x}, {}, Dtype::bool_, x.shape());
  return rank == 0 ? differs : make(Op::Any, {differs}, std::move(axes), Dtype::bool_, Shape{});
}

}  // namespace

std::size_t values_in(std::string_view format) { return pieces_of(format).size() - 1; }

void write_line(std::string_view format, std::span<const Array> values) {
  std::ostringstream line;
  line.exceptions(std::ios::badbit);  // running out of memory is no shorter line
  const std::vector<std::string> pieces = pieces_of(format);
  for (std::size_t i = 0; i < values.size(); ++i) line << pieces[i] << values[i];
  line << pieces.back() << '\n';
  std::cout << std::move(line).str();
}

void print(std::string_view format, std::vector<Array> values) {
  for (const Array& a : values) check_operand(a, "debug_print");
  const Level l = level();
  if (!l.chain) return write_line(format, values);
  *l.chain = link(l, last_of(l), 0, format, values);
}

bool shows_at_once() { return !level().chain; }

Array after_prints(const Array& a) {
  const Level l = level();
  if (!l.chain) return a;
  return link(l, a, -1, "", std::vector<Array>{last_of(l)});
}

void note_printed(const Array& result) {
  const Level l = level();
  if (!l.chain) return evaluate({&result, 1}, "debug_print");
  *l.chain = link(l, last_of(l), -1, "", std::vector<Array>{result});
}

}  // namespace sinter::engine
