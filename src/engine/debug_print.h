// debug_print: lines that a compiled function prints in each call. Layer: engine.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "sinter/array.h"

namespace sinter::engine {

/// A format, cut at its `{}`: one piece more than values.
using Pieces = std::vector<std::string>;

/// The line. Evaluates the values.
std::string printed(const Pieces& pieces, std::span<const Array> values);

/// Prints it at once; or, in the trace of a compiled function, in each of its calls. Throws TraceError in any other trace.
void print(Pieces pieces, std::vector<Array> values);

}  // namespace sinter::engine
