// The public debug_print. Layer: api.
#include "sinter/debug.h"

#include "api/common.h"
#include "base/check.h"
#include "engine/debug_print.h"

namespace sinter::detail {

void debug_print(std::string_view format, std::span<const Operand> values) {
  engine::Pieces pieces(1);
  for (std::size_t i = 0; i < format.size(); ++i) {
    const std::string_view two = format.substr(i, 2);
    if (two == "{}")
      pieces.emplace_back(), ++i;
    else
      pieces.back() += format[i], i += two == "{{" || two == "}}";
  }
  if (pieces.size() != values.size() + 1)
    throw Error(str("debug_print: the format has another number of {} than there are values; got \"", format, "\" and ", values.size(),
                    "; write one {} for each"));
  std::vector<Array> arrays;
  for (const Operand& o : values) arrays.push_back(api::to_array(o, "debug_print"));
  engine::print(std::move(pieces), std::move(arrays));
}

}  // namespace sinter::detail
