# Writes generated/sinter/elementwise.h: the declarations of elementwise.def's functions.
set(table ${CMAKE_CURRENT_SOURCE_DIR}/src/ops/elementwise.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
file(STRINGS ${table} lines REGEX "^OP[123]\\(")
set(text "// Generated from elementwise.def by cmake/functions.cmake: the elementwise functions. Included by sinter/functions.h.
// Where <cmath> has a function of the name, sqrt(dim) would not know which to call: hence the exact overload for a Dim.
#pragma once
#include \"sinter/array.h\"

namespace sinter {

")
foreach(line ${lines})
  string(REGEX MATCH "^OP([123])\\( *[A-Za-z0-9]+, *([a-z0-9_]+)," found "${line}")
  set(function ${CMAKE_MATCH_2})
  if(CMAKE_MATCH_1 EQUAL 1)
    string(APPEND text "SINTER_API Array ${function}(const Operand& x);\n")
    string(APPEND text "template <std::same_as<Dim> D> Array ${function}(const D& x) { return ${function}(Operand(x)); }\n")
  elseif(CMAKE_MATCH_1 EQUAL 2)
    string(APPEND text "SINTER_API Array ${function}(const Operand& x, const Operand& y);\n")
  else()
    string(APPEND text "SINTER_API Array ${function}(const Operand& x, const Operand& y, const Operand& z);\n")
  endif()
endforeach()
string(APPEND text "\n}  // namespace sinter\n")
file(WRITE ${CMAKE_BINARY_DIR}/generated/sinter/elementwise.h.new "${text}")
configure_file(${CMAKE_BINARY_DIR}/generated/sinter/elementwise.h.new ${CMAKE_BINARY_DIR}/generated/sinter/elementwise.h COPYONLY)
