// Trace: one run of a user's function on placeholders, and the rules for what it may touch. Layer: engine.
#pragma once
#include <cstdint>
#include <string>

#include "sinter/array.h"

namespace sinter::engine {

/// Id of the trace open on this thread; 0: none.
std::uint64_t current_trace();

/// Called for every operand of every operation. Throws TraceError for a placeholder that escaped from its trace, and CaptureError for
/// an array that is neither made in the open trace, nor held by value (SPEC 4.4), naming `op`.
void check_operand(const Array& a, const char* op);

/// Throws the TraceError for looking at the value of placeholder `a` (in its trace, or escaped from it). `what`: eval, item, ...
[[noreturn]] void throw_no_data(const Array& a, const char* what);

}  // namespace sinter::engine
