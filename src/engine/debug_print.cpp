#include "engine/debug_print.h"

#include <iostream>
#include <sstream>

#include "base/check.h"
#include "engine/trace.h"
#include "engine/tracing.h"

namespace sinter::engine {

std::string printed(const Pieces& pieces, std::span<const Array> values) {
  std::ostringstream line;
  line.exceptions(std::ios::badbit);  // running out of memory is no shorter line
  for (std::size_t i = 0; i < values.size(); ++i) line << pieces[i] << values[i];
  line << pieces.back() << '\n';
  return std::move(line).str();
}

void print(Pieces pieces, std::vector<Array> values) {
  for (const Array& a : values) check_operand(a, "debug_print");
  Trace* trace = open_trace();
  if (!trace)
    std::cout << printed(pieces, values);
  else if (trace->callee.program)
    trace->prints.emplace_back(std::move(pieces), std::move(values));
  else
    throw TraceError(str("debug_print: inside vmap, or in the body of a branch or a loop of arrays, which is traced apart; got \"",
                         pieces[0], "...\"; return the value, or print it outside"));
}

}  // namespace sinter::engine
