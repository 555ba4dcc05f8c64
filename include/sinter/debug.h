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
/// In a compiled function it prints in each call, in program order; elsewhere at once. In a branch of cond it prints if that is taken, in a
/// loop (while_loop, fori_loop, scan) in each step, under vmap once for each element of the batch, or once where no value differs between
/// them, and under a gradient as the function itself does. A batch of different conditions takes both branches, and steps until the last
/// element is done. It changes no result. Throws Error where there are other numbers of `{}` and of values, TraceError in a body that gives
/// no array.
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
