// Printing and division of sizes (sinter/shape.h). Layer: base.
#include "sinter/shape.h"

#include <limits>
#include <ostream>

#include "base/check.h"
#include "base/symbols.h"

namespace sinter {
namespace {

void check_divisor(std::int64_t a, std::int64_t b, char op) {
  if (b == 0) throw ShapeError(str("Dim: division by a size of 0; got ", a, " ", op, " 0; test the size first"));
}

}  // namespace

namespace detail {

std::int64_t divide_dim(std::int64_t a, std::int64_t b) {
  check_divisor(a, b, '/');
  return b == -1 ? static_cast<std::int64_t>(-static_cast<std::uint64_t>(a)) : a / b;  // the minimum wraps
}

std::int64_t remainder_dim(std::int64_t a, std::int64_t b) {
  check_divisor(a, b, '%');
  return b == -1 ? 0 : a % b;
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const Dim& d) { return out << base::peek(d); }

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  out << '(';
  const char* separator = "";
  for (const Dim& d : s) {
    out << separator << d;
    separator = ",";
  }
  return out << ')';
}

}  // namespace sinter
