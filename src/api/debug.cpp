// The public debug_print. Layer: api.
#include "sinter/debug.h"

#include "api/common.h"
#include "base/check.h"
#include "engine/debug_print.h"

namespace sinter::detail {

void debug_print(std::string_view format, std::span<const Operand> values) {
  if (engine::values_in(format) != values.size())
    throw Error(str("debug_print: the format has another number of {} than there are values; got \"", format, "\" and ", values.size(),
                    "; write one {} for each"));
  std::vector<Array> arrays;
  for (const Operand& o : values) arrays.push_back(api::to_array(o, "debug_print"));
  engine::print(format, std::move(arrays));
}

}  // namespace sinter::detail
