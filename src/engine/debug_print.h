// debug_print: lines that a function shows whenever it runs, compiled, transformed or not. Layer: engine.
//
// Outside of traces a line is written at once. In a trace it becomes a node (graph/bodies.h), and the nodes of one trace are a chain: each
// has the one before it as operand 0, so that they run in the order of the program, and what runs the graph keeps the last. A branch or a
// loop whose bodies show values is a link of the chain: its first operand waits for what comes before. In a body the chain ends in the
// first output.
#pragma once
#include <span>
#include <string_view>

#include "sinter/array.h"

namespace sinter::engine {

/// How many `{}` the format has.
std::size_t values_in(std::string_view format);
/// Writes the line. Evaluates the values.
void write_line(std::string_view format, std::span<const Array> values);

/// Shows the values now, or whenever runs what is being traced on this thread.
void print(std::string_view format, std::vector<Array> values);

/// Whether it is now.
bool shows_at_once();

/// The array, when all that the trace shows so far has been shown.
Array after_prints(const Array& a);
/// Of a branch or a loop that shows values: one of its results, to keep it where it is among what the trace shows. Outside of traces it
/// runs now.
void note_printed(const Array& result);

}  // namespace sinter::engine
