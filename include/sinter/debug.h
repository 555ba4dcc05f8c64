// Looking at values inside compiled functions.
#pragma once
#include <span>
#include <string_view>

#include "sinter/array.h"

namespace sinter {

namespace detail {
SINTER_API void debug_print(std::string_view format, std::span<const Operand> values);
}

/// Prints one line to standard output: `format` with each `{}` replaced by a value, arrays as `<<` prints them; `{{` and `}}` are braces.
/// In a compiled function it prints in each call, when all values of the call are computed, in program order; elsewhere at once. It changes
/// no result. Throws Error where there are other numbers of `{}` and of values, TraceError inside vmap and in bodies of branches and loops
/// of arrays: what is traced there runs any number of times.
template <class... T>
void debug_print(std::string_view format, const T&... values) {
  if constexpr (sizeof...(T) == 0) {
    detail::debug_print(format, {});
  } else {
    const Operand all[] = {Operand(values)...};
    detail::debug_print(format, all);
  }
}

}  // namespace sinter
